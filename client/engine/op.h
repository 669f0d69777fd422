#ifndef GANNET_CLIENT_ENGINE_OP_H_
#define GANNET_CLIENT_ENGINE_OP_H_

#include <gannet/async_client.h>
#include <gannet/registered_memory.h>
#include <gannet/types.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client/engine/engine_server.h"
#include "client/engine/op_phase.h"
#include "client/engine/outcome.h"
#include "client/session/session_memory.h"
#include "common/base/clock.h"
#include "common/layout/item_proof.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/layout/slot.h"
#include "common/lookup/lookup.h"

namespace gannet {

// Clamps a user's timeout to 0..10^9 ms.
inline int64_t TimeoutNs(std::chrono::milliseconds timeout) {
  constexpr int64_t kMsMax = 1'000'000'000;
  return std::clamp<int64_t>(timeout.count(), 0, kMsMax) * kNsPerMs;
}

// Writes may have been applied if no answer came.
inline bool IsWrite(OpType type) {
  return type == OpType::kPut || type == OpType::kDelete ||
         (type >= OpType::kAppend && type <= OpType::kFlush);
}
// Writes that say whether the key was there.
inline bool TellsFound(OpType type) {
  return type == OpType::kDelete || type == OpType::kTouch || type == OpType::kGetAndTouch;
}
// Reads that need no value, or perhaps none (lookup_gets_head.cc).
inline bool ReadsHead(OpType type) {
  return type == OpType::kExists || type == OpType::kGetIfChanged;
}
inline bool TakesLock(OpType type) { return type == OpType::kLock || type == OpType::kLockAndGet; }

// What a caller asks of an Engine. The engine copies the key. `value` and `out` must live until the
// operation is finished.
struct OpRequest {
  OpType type = OpType::kGet;
  bool only_if_absent = false;
  bool only_if_version = false;
  bool only_if_present = false;
  bool under_lock = false;
  bool share_window = false;    // a GET whose window may come with that of another GET
  bool begin_snapshot = false;  // storage
  uint32_t server = 0;
  std::string_view key;
  int64_t timeout_ns = 0;  // from the next Poll on
  uint64_t user_data = 0;
  std::span<std::byte>
      out;  // AsyncClient: where the value goes, as much of it as there is room for
  // For writes and locks. Engine::BeginGet relies on these having their defaults in a free slot.
  std::string_view value;
  // GetInto: where the value goes. Put: where it is, instead of `value`. At most kValueSegmentsMax;
  // they and their memory live until the operation is finished.
  std::span<const RegisteredSpan> memory;
  uint64_t ttl_ms = 0;              // of the item, or the lease of a lock; 0: for ever
  union {                           // by the type; one word, because it is part of every slot
    uint64_t expected_version = 0;  // only_if_version, and GetIfChanged
    uint64_t position;              // lists, flush: where to go on
  };
  CounterOperands counter{};  // incr
  uint64_t lock_word = 0;     // unlock, extend lock, or of a write under a lock
  uint32_t flags = 0;
};

// One operation of an Engine, in a slot that is reused. A free slot is like a new one, except for
// what every operation sets itself (OpSlots::Release, OrdinaryGets::Report).
struct alignas(64) Op {
  using Phase = OpPhase;
  static constexpr OpPhaseSet kReading = {
      Phase::kStarved,       Phase::kReadingWindow, Phase::kReadingWindows, Phase::kReadingItem,
      Phase::kReadingCached, Phase::kLookingUp,     Phase::kReadingKnown,   Phase::kConfirmingKnown,
      Phase::kReadingValue,  Phase::kConfirming,    Phase::kReadingHead};

  bool over() const { return phase >= Phase::kFinished; }
  bool has_lock() const { return hold == Hold::kHas; }
  // Waits until `again_ns`.
  bool pauses() const { return phase == Phase::kPausing || busy.debt == LockDebt::kPausing; }
  // READs, or waits for a buffer to READ into. What it READ so far is of no use on another
  // connection.
  bool reads() const { return kReading.Contains(phase); }

  // Whether an operation that takes a lock has it. Stays as it was when the operation is over.
  enum class Hold : uint8_t {
    kNot,
    kTaking,  // a compare-and-swap that takes it is queued or posted
    kHas,
  };
  // What an operation that is over still has to do about a lock, as nobody else will.
  enum class LockDebt : uint8_t {
    kNone,
    kAnswer,     // it waits for the answer that tells whether its request took the lock
    kReleasing,  // a compare-and-swap, or a request, that releases it is on its way
    kPausing,    // that request is queued again at `again_ns`
  };
  // Why a released slot cannot be reused yet: something may still write to its memory, its number
  // is in a queue, or a lock is to be released.
  struct Busy {
    uint16_t in_flight = 0;       // READs and compare-and-swaps that are queued or posted
    bool queued_request = false;  // it is in its server's queue of requests
    bool starving = false;        // it is in the engine's queue for long buffers
    LockDebt debt = LockDebt::kNone;
    uint8_t zero[3] = {};  // makes the struct one word

    bool quiet() const { return std::bit_cast<uint64_t>(*this) == 0; }
    bool releases_lock() const { return debt >= LockDebt::kReleasing; }
  };

  // Hot: looked at for every READ.
  CheckedPhase phase;
  Outcome outcome = Outcome::kOk;
  Hold hold = Hold::kNot;
  bool item_is_reply = false;  // `item` is from SessionMemory::replies
  bool in_order = false;       // it is in the engine's KeyOrder
  // GetAndTouch: the item was touched, and is now to be read. Flush: all is removed, and the server
  // is asked for its map.
  bool second_step = false;
  // A write that the server put off, with all that is behind it of its key.
  bool put_off = false;
  // Its deadline is over, but the device may still use the caller's memory. It ends when that ends.
  bool late = false;
  // Its key's partition has changed since its server was found: op_rerouting.h.
  bool misplaced = false;
  uint8_t key_bytes = 0;
  Busy busy;
  uint32_t item_bytes = 0;         // of the item at `slot`
  EngineServer* server = nullptr;  // number request.server
  OpBuffers* buffers = nullptr;    // of its session; nullptr before that was ready
  KeyHash hash{0};
  LocationCache::Place place;  // of the hash, in its server's cache
  Slot slot;                   // ordinary GET: the item that it READs
  ItemSeal seal;               // ordinary GET: the item's, if it is this key's
  int64_t posted_ns = 0;       // when the READ in flight was posted, or earlier
  int64_t deadline_ns = 0;
  OpRequest request;  // without its key
  char key_memory[kKeyBytesMax];
  Completion done;  // what the caller is told; code, type and lock_word are filled in at the end

  std::string_view value;  // if found: in the operation's buffers, valid until Release
  LentBuffer item;         // holds a long item, or the reply of a GET by RPC
  Lookup lookup;
  // The GETs whose windows come with this one's READ, as a list; kInvalidOp ends it. Their
  // in_flight counts that READ. Both are kInvalidOp again when the READ is done or lost.
  uint32_t first_sharer = kInvalidOp;
  uint32_t next_sharer = kInvalidOp;
  uint32_t window_at = 0;        // of a sharer: where its window begins in what the reader READs
  LockWord word;                 // of the lock: ours, or after a refusal the holder's
  union {                        // by the type
    uint64_t next_position = 0;  // lists: where to go on, 0 = the end
    uint64_t snapshot;           // storage: the number of the one that was asked for
    uint64_t flush_map;          // flush: the revision of the map by which it began
  };
  uint64_t sequence = 0;      // of the request sent
  uint32_t value_needed = 0;  // GET by RPC: room to ask for
  // GET of a large item: bytes of the value that are to be READ, and whose READs were posted.
  uint32_t value_wanted = 0;
  uint32_t value_posted = 0;
  // GET of a large item: the version that the server said is alive.
  uint64_t version_alive = 0;
  uint32_t number = 0;   // of the slot
  int64_t again_ns = 0;  // when a pause ends
  // In a cluster of groups: how often the key's partition had changed when `place` was found, and
  // the revision of the map by which a server refused the request; 0: none did.
  uint32_t place_changes = 0;
  uint64_t refused_at = 0;

  static constexpr uint64_t kChangesStep = 0x9e3779b97f4a7c15;  // odd, and far from hashes' bits

  std::string_view key() const { return {key_memory, key_bytes}; }
  ClientSession& session() const { return *server->session; }
  bool uses_caller_memory() const { return !request.memory.empty(); }

  // When it was started, or an earlier time. All of its READs were posted later.
  int64_t begun_ns() const { return late ? 0 : deadline_ns - request.timeout_ns; }

  // Finds its buffers, which its session has once it was ready.
  void FindBuffers() { buffers = session().was_ready() ? session().memory().op(number) : nullptr; }
  // Finds what depends on the key's hash. Hashes are seeded by the server, so call it again for
  // every connection.
  void HashKey();
  // Does so for a key of a cluster. `changes`: Router::Route::changes of its partition.
  void HashKeyOf(uint32_t changes);
  // Returns the hash by which the heads of items are remembered (LargeItems). They are forgotten
  // when the partition changes, as its places are.
  KeyHash HeadHash() const { return KeyHash(hash.value() + place_changes * kChangesStep); }
  // Returns whether a write's value travels in the request. Otherwise the server fetches it. Also
  // false before the first connection, when this is not known.
  bool IsEager() const;

  // Returns whether an answer said that a part of it was done, so that it cannot end as if nothing
  // had happened.
  bool PartlyDone() const {
    return second_step || (request.type == OpType::kFlush && request.position != 0);
  }

  // Returns whether it is a write that the server has not answered at all.
  bool IsWholeWrite() const { return IsWrite(request.type) && !second_step; }

  // Puts its request into the server's queue, as the next thing to do.
  void QueueRequest();
  // The same, whatever its phase is. Does nothing if it is queued.
  void EnqueueRequest();
  // Takes the request out of the queue without waiting for a credit, which may never come.
  void CancelRequest();
  // Makes the session ignore the answer to the request that it sent last. When that comes, the slot
  // may be another operation's.
  void IgnoreAnswer();
  // Adds what a request cost. Each is charged once: when it is answered, or ignored.
  void Charge(const RequestWindow::Entry& request);

  // Borrows a buffer for an item of so many bytes, in `item`. Returns nullptr if none is free.
  std::byte* BorrowItem(uint32_t bytes);
  void ReturnItem();
};

static_assert(sizeof(Op::Busy) == sizeof(uint64_t));

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_H_
