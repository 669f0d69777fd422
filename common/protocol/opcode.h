#ifndef GANNET_COMMON_PROTOCOL_OPCODE_H_
#define GANNET_COMMON_PROTOCOL_OPCODE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace gannet {

// The list of requests: X(name, number, called, kind). Opcodes, their names for people and in JSON
// and metrics, and what is the same for all of a kind follow from it; what differs within a kind is
// a switch that the compiler wants to be whole. docs/protocol-messages.md has the numbers, which
// are never given again.
//
// A heartbeat is answered with an empty reply, or with IndexNews. A server that is in no cluster
// answers MAP with kNotFound. APPEND, PREPEND and INCREMENT make an item's new content from the old
// one. If there is no item, they make one, with the request's user_flags and ttl_ms; an item that
// is there keeps its own.
#define GANNET_REQUESTS(X)                                                                    \
  X(Heartbeat, 0, heartbeat, kHeartbeat) /* no sequence number and no credit */               \
  X(Get, 1, get, kGet)                   /* the fallback for one-sided lookups */             \
  X(Put, 2, put, kWrite)                                                                      \
  X(Delete, 3, delete, kWrite)                                                                \
  X(Lock, 4, lock, kLock) /* for LockMode kRpc* */                                            \
  X(Unlock, 5, unlock, kLock)                                                                 \
  X(Stats, 6, stats, kBare) /* the reply's value is a StatsReply */                           \
  X(Ping, 7, ping, kBare)                                                                     \
  X(ExtendLock, 8, extend_lock, kLock) /* gives a lock a lease, counted from now */           \
  X(ListLocks, 9, list_locks, kList)   /* an array of LockEntry */                            \
  X(Append, 10, append, kWrite)                                                               \
  X(Prepend, 11, prepend, kWrite)                                                             \
  X(Increment, 12, increment, kWrite)     /* the value is CounterOperands */                  \
  X(Touch, 13, touch, kWrite)             /* a new time to live, and with it a new version */ \
  X(Flush, 14, flush, kFlush)             /* one step: removes the items of some homes */     \
  X(Storage, 20, storage, kStorage)       /* the reply's value is a StorageReply */           \
  X(ListClients, 23, list_clients, kList) /* an array of ClientEntry */                       \
  X(SlowLog, 24, slow_log, kList)         /* of SlowEntry, the newest first */                \
  X(Heats, 25, heats, kBare)              /* the reply's value is a HeatsReply */             \
  X(Map, 26, map, kList)                  /* the reply's value is a piece of a map */         \
  X(ItemLeases, 27, item_leases, kBare)   /* the reply's value is an ItemLeasesReply */       \
  X(Rails, 28, rails, kBare)              /* the reply's value is a RailsReply */

#define GANNET_OPCODE(name, number, called, kind) k##name = (number),
enum class Opcode : uint8_t { GANNET_REQUESTS(GANNET_OPCODE) };
#undef GANNET_OPCODE

// All opcodes, in the order of their numbers.
#define GANNET_OPCODE(name, number, called, kind) Opcode::k##name,
inline constexpr Opcode kAllOpcodes[] = {GANNET_REQUESTS(GANNET_OPCODE)};
#undef GANNET_OPCODE
static_assert(std::is_sorted(std::begin(kAllOpcodes), std::end(kAllOpcodes)));
// One more than the largest number: how long a table is that has a place for each.
inline constexpr size_t kOpcodesEnd = static_cast<size_t>(*std::rbegin(kAllOpcodes)) + 1;

// Which struct of RequestHeader a request has, and what the server does with it.
enum class RequestKind : uint8_t {
  kUnknown,  // of a later version
  kHeartbeat,
  kGet,
  kWrite,  // of one key; changes the store, so its answer is remembered, and streamed in a group
  kLock,   // changes a lock word; its answer is remembered
  kList,   // tells what the server knows, from a position on
  kFlush,  // a write of many keys
  kStorage,
  kBare,  // has no struct of its own; tells what the server knows
};

constexpr RequestKind KindOf(Opcode opcode) {
  switch (opcode) {
#define GANNET_KIND(name, number, called, kind) \
  case Opcode::k##name:                         \
    return RequestKind::kind;
    GANNET_REQUESTS(GANNET_KIND)
#undef GANNET_KIND
  }
  return RequestKind::kUnknown;
}

// Returns what people call a request; "other" if this version does not know it.
constexpr const char* OpcodeName(uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
#define GANNET_CALLED(name, number, called, kind) \
  case Opcode::k##name:                           \
    return #called;
    GANNET_REQUESTS(GANNET_CALLED)
#undef GANNET_CALLED
  }
  return "other";
}

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_OPCODE_H_
