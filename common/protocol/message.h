#ifndef GANNET_COMMON_PROTOCOL_MESSAGE_H_
#define GANNET_COMMON_PROTOCOL_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "common/layout/item.h"
#include "common/protocol/limits.h"

namespace gannet {

// The bytes in SENDs. A request is a header, the key, and the value if it is eager. A reply is a
// header and a value. docs/protocol.md has the layouts byte by byte. Unknown opcodes are answered
// kUnimplemented.

enum class Opcode : uint8_t {
  kHeartbeat = 0,  // has no sequence number and no credit; answered with an empty reply,
                   // or with IndexNews
  kGet = 1,        // the fallback for one-sided lookups
  kPut = 2,
  kDelete = 3,
  kLock = 4,    // LockMode kRpc*: lock_word = the word to set; ttl_ms = its lease, 0 = none
  kUnlock = 5,  // lock_word = the word held; with kForce any word, and it may be 0
  kStats = 6,   // the reply's value is a StatsReply
  kPing = 7,
  kExtendLock = 8,  // gives the lock named by lock_word a lease of ttl_ms, counted from now
  kListLocks = 9,   // the reply's value is an array of LockEntry
  // These make an item's new content from the old one. If there is no item, they make one, with
  // the request's flags and ttl_ms; an item that is there keeps its own.
  kAppend = 10,
  kPrepend = 11,
  kIncrement = 12,  // the value is CounterOperands; the reply's lock_word is the new number
  kTouch = 13,      // gives the item a new time to live, and with it a new version
  kFlush = 14,      // one step: removes the items of some homes, from expected_version on; the
                    // reply's version is where to go on, its lock_word how many were removed
  kStorage = 20,    // the reply's value is a StorageReply (storage.h); expected_version =
                    // StorageAsk; the reply's version is the number of the snapshot asked for
  // What the server knows of its clients, for people. The reply's version is where to go on.
  kListClients = 23,  // the reply's value is an array of ClientEntry (observation.h)
  kSlowLog = 24,      // the reply's value is an array of SlowEntry, the newest first
  kHeats = 25,        // the reply's value is a HeatsReply (heats.h)
};

enum RequestFlag : uint8_t {
  kOnlyIfAbsent = 1 << 0,
  kOnlyIfVersion = 1 << 1,    // expected_version must match; 0 = absent
  kUnderLock = 1 << 2,        // lock_word must be the lock word's value; implies kOnlyIfVersion
  kValueInBuffer = 1 << 3,    // PUT: READ the value from (buffer_address, buffer_rkey);
                              // GET: a value too long for a reply may be written there
  kForce = 1 << 4,            // UNLOCK: breaks the lock, whoever holds it
  kOnlyIfPresent = 1 << 5,    // PUT, APPEND, PREPEND, INCREMENT: the key must exist
  kValueInSegments = 1 << 6,  // PUT: READ the value from the segments behind the key, in order;
                              // buffer_rkey = how many there are
};

// Outcome of a request, one byte. The client API turns it into an absl::Status once, at its edge.
enum class ReplyStatus : uint8_t {
  kOk = 0,
  kNotFound = 1,
  kExists = 2,           // kOnlyIfAbsent, but the key exists
  kVersionMismatch = 3,  // version = the current one (0 = absent)
  kLockLost = 4,         // the lock word is not the one sent; lock_word = its present value
  kLockHeld = 5,         // kLock: held by another; lock_word = its present value
  kHeapFull = 6,         // no memory for the item; nothing was changed
  kInvalidArgument = 7,
  kUnimplemented = 8,
  kBufferTooSmall = 9,  // kGet: value_bytes = what is needed; or the item is large, and the client
                        // must READ it where `slot` says
  kTryAgain = 10,       // not applied; send it again
  kInternal = 11,       // not applied
  kIndexFull = 12,      // no slot for the key; nothing was changed
  kNotANumber = 13,     // kIncrement: the value is no decimal number; version = the current one
  kOutOfRange = 14,     // kIncrement: the new number would not fit 64 bits
  kTooLong = 15,        // kAppend, kPrepend: the new value would be too long
  kDiskRefuses = 16,    // the server's disk takes no change now; nothing was changed
  kPermissionDenied = 24,  // the session may only read; nothing was changed
};

struct RequestHeader {
  uint8_t opcode;  // Opcode
  uint8_t flags;   // RequestFlag bits
  uint16_t key_bytes;
  uint32_t value_bytes;  // PUT: of the value, wherever it is; GET: room in the named buffer;
                         // heartbeat: of the report and the touches (touch.h) that follow
  uint64_t sequence;     // of the session, from 1; less than `credits` after the oldest unanswered
  uint64_t ttl_ms;  // until the item (PUT, TOUCH ...) or lock (LOCK, EXTEND) expires; 0 = never;
                    // heartbeat: what the client knows of the index (IndexKnown)
  uint32_t user_flags;  // heartbeat: bytes of the report before the touches (client_report.h)
  uint32_t buffer_rkey;
  uint64_t buffer_address;
  uint64_t
      expected_version;  // LIST LOCKS, FLUSH ...: where to begin, from the last reply; 0 = anew
  uint64_t lock_word;
  uint64_t server_set;  // heartbeat: hash of the client's list of servers; 0 = not known
};
static_assert(sizeof(RequestHeader) == 64 && std::is_trivially_copyable_v<RequestHeader>);
static_assert(offsetof(RequestHeader, sequence) == 8 && offsetof(RequestHeader, user_flags) == 24);
static_assert(offsetof(RequestHeader, buffer_address) == 32 &&
              offsetof(RequestHeader, lock_word) == 48);

struct ReplyHeader {
  uint8_t opcode;           // of the request
  uint8_t status;           // ReplyStatus
  uint8_t value_in_buffer;  // 1: the value was written into the request's buffer
  uint8_t reserved0;        // zero
  uint32_t value_bytes;
  uint64_t sequence;   // of the request; 0 for a heartbeat
  uint64_t version;    // of the item after the request; LIST LOCKS, FLUSH: where to go on, 0 = end
  uint64_t slot;       // Slot word where the item is now; 0 = unknown or gone
  uint64_t expiry_ms;  // of the item, by the server's clock; 0 = never
  uint64_t lock_word;
  uint32_t user_flags;
  uint32_t reserved1;  // zero
  uint64_t time_ms;    // the server's clock; only in replies to heartbeats and PING, else 0
};
static_assert(sizeof(ReplyHeader) == 64 && std::is_trivially_copyable_v<ReplyHeader>);
static_assert(offsetof(ReplyHeader, sequence) == 8 && offsetof(ReplyHeader, slot) == 24);
static_assert(offsetof(ReplyHeader, lock_word) == 40 && offsetof(ReplyHeader, user_flags) == 48 &&
              offsetof(ReplyHeader, time_ms) == 56);

// Returns the longest value that fits into a request or reply with a key of `key_bytes` (0 in a
// reply).
constexpr size_t EagerValueBytesMax(size_t key_bytes) {
  return kMessageBytesMax - sizeof(RequestHeader) - key_bytes;
}

// The value of a kIncrement request: what is added, and what an absent key counts from.
struct CounterOperands {
  int64_t delta;
  int64_t initial;
};
static_assert(sizeof(CounterOperands) == 16 && std::is_trivially_copyable_v<CounterOperands>);

// A piece of the value of a PUT, in the client's memory.
struct ValueSegment {
  uint64_t address;
  uint32_t rkey;
  uint32_t bytes;  // not 0
};
static_assert(sizeof(ValueSegment) == 16 && std::is_trivially_copyable_v<ValueSegment>);
// With the longest key they fit into a message.
inline constexpr uint32_t kValueSegmentsMax = 64;

// A decoded message; the views point into the caller's private copy.
struct RequestView {
  RequestHeader header;
  std::string_view key;
  std::string_view value;  // empty when the value is in a buffer; the segments if it is in those
};
struct ReplyView {
  ReplyHeader header;
  std::string_view value;  // empty when it was written into the buffer
};

// Why a request could not be decoded, and so how it is answered: kInvalidArgument or kUnimplemented
// with its sequence number. (A message shorter than a header is not answered; it breaks the
// connection.)
struct RequestError {
  ReplyStatus status;
  const char* reason;  // static text for the log
};

// Checks lengths against the message, key and value limits, flag combinations and reserved bytes.
// On an error, `view->header` holds a copy of the header. REQUIRES: message.size() >=
// sizeof(RequestHeader).
std::optional<RequestError> DecodeRequest(std::span<const std::byte> message, RequestView* view);
// Returns false if the message is not a valid reply. Then the connection must be broken.
bool DecodeReply(std::span<const std::byte> message, ReplyView* view);

// Writes header, key and value, and returns the bytes used. Pass an empty `value` if it is in a
// buffer. REQUIRES: out has room for sizeof(header) + key.size() + value.size().
size_t EncodeRequest(const RequestHeader& header, std::string_view key, std::string_view value,
                     std::span<std::byte> out);

// The value of a kStats reply. New counters are appended, and a reader takes as many as it knows.
struct StatsReply {
  uint64_t rpcs;  // requests served, heartbeats aside, since start
  uint64_t heartbeats;
  uint64_t cpu_us;  // of the process, user + system
  uint64_t slots_used;
  uint64_t slots_total;
  uint64_t heap_bytes;  // allocated to items
  uint64_t heap_total;
  uint64_t sessions;
  uint64_t connections;
  uint64_t items;
  uint64_t displacements;
  uint64_t stash_used;
  uint64_t locks_broken;
  uint64_t uptime_ms;
  uint64_t session_bytes;       // of memory for sessions, without queue pairs
  uint64_t reply_posts;         // doorbells for replies and values
  uint64_t receive_posts;       // doorbells for receives
  uint64_t send_completions;    // polled
  uint64_t refused_heap_full;   // writes
  uint64_t refused_index_full;  // writes
  uint64_t items_expired;       // removed because their time was over
  uint64_t items_moved;         // to other blocks, to bring free memory together
  uint64_t locks_expired;       // broken because their lease was over
  uint64_t refused_connections;
  uint64_t refused_requests;  // malformed or against the rules
  // Of an index that grows.
  uint64_t index_growths;  // since start
  // Items that left, beside items_expired.
  uint64_t items_deleted;       // by a client
  uint64_t items_evicted;       // because the memory was full
  uint64_t evicted_by_writes;   // of these: by writes that found no room
  uint64_t eviction_watermark;  // bytes of the heap that are kept free; 0 if nothing is evicted
  uint64_t evicted_age_ms;      // how long ago the items evicted of late were written
  // Of a server that keeps its items on a disk; else all 0.
  uint64_t disk_sync;          // 1 none, 2 interval, 3 always
  uint64_t disk_bytes;         // of the journal and the snapshots
  uint64_t disk_behind_bytes;  // of the journal, that a power cut would take
  uint64_t disk_behind_ms;     // how old the oldest of those is
  uint64_t disk_refused;       // writes that the disk did not take
  uint64_t disk_snapshots;     // written since start
};
static_assert(sizeof(StatsReply) == 296 && std::is_trivially_copyable_v<StatsReply>);

// A held lock, in the value of a kListLocks reply.
struct LockEntry {
  uint64_t lock_word;   // names the holder's connection
  uint32_t index;       // of the lock word
  uint32_t session_id;  // of the holder; 0: its connection is gone
  uint32_t lease_ms;    // until it is broken; 0: it has no lease
  uint32_t reserved;    // zero
  char peer[40];        // the holder's address, NUL padded; empty: its connection is gone
};
static_assert(sizeof(LockEntry) == 64 && std::is_trivially_copyable_v<LockEntry>);
static_assert(offsetof(LockEntry, session_id) == 12 && offsetof(LockEntry, peer) == 24);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_MESSAGE_H_
