#ifndef GANNET_CLIENT_ENGINE_OP_H_
#define GANNET_CLIENT_ENGINE_OP_H_

#include <gannet/async_client.h>
#include <gannet/types.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "client/engine/engine_server.h"
#include "client/engine/op_phase.h"
#include "client/engine/op_request.h"
#include "client/engine/outcome.h"
#include "client/session/session_memory.h"
#include "common/layout/item_proof.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/layout/slot.h"
#include "common/lookup/lookup.h"

namespace gannet {

// One operation of an Engine, in a slot that is reused: its phase (op_phase.h), what its caller
// asks, where it goes, and a part for each thing that operations do. A part counts only in the
// phases that it names, or for the types of operations that it names.
//
// 1. `phase` changes only as kOpTransitions allows. What it waits for ends in one function.
// 2. A loss ends it, or sends it back, as FateOf says (op_fate.h), and in no other way.
// 3. It ends once (OpTable::Finish). From then on it waits for its caller, and `busy` says what is
//    still under way.
// 4. A slot is free only if `busy` is quiet, and is then like a new one, except for what every
//    operation sets itself (OpSlots::Release, OrdinaryGets::Report): number, key, `server` and what
//    follows from it, times, and the parts of READs. A request sets the rest.
// 5. While READs or the server may use the caller's memory, it does not end.
//
// Knows nothing of the others. One owner thread.
struct alignas(64) Op {
  using Phase = OpPhase;
  // READs, or waits for a buffer to READ into. What it READ so far is of no use on another
  // connection.
  static constexpr OpPhaseSet kReading = {
      Phase::kStarved,       Phase::kReadingWindow, Phase::kReadingWindows, Phase::kReadingItem,
      Phase::kReadingCached, Phase::kLookingUp,     Phase::kReadingKnown,   Phase::kConfirmingKnown,
      Phase::kReadingValue,  Phase::kConfirming,    Phase::kReadingHead};

  // What an operation that is over still has to do about a lock, as nobody else will.
  enum class LockDebt : uint8_t {
    kNone,
    kAnswer,     // it waits for the answer that tells whether its request took the lock
    kReleasing,  // a compare-and-swap, or a request, that releases it is on its way
    kPausing,    // that request is queued again at Rpc::again_ns
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

  // An ordinary GET's item: kReadingItem, kReadingCached.
  struct OrdinaryItem {
    Slot slot;
    ItemSeal seal;       // the item's, if it is this key's
    uint32_t bytes = 0;  // of the item at `slot`
  };
  // The GETs whose windows come with this one's READ, as a list; kInvalidOp ends it. Their
  // in_flight counts that READ. Both numbers are kInvalidOp again when the READ is done or lost.
  // Begins in kReadingWindow and kReadingWindows; a sharer may end before the READ does.
  struct SharedWindow {
    uint32_t first_sharer = kInvalidOp;
    uint32_t next_sharer = kInvalidOp;
    uint32_t at = 0;  // of a sharer: where its window begins in what the reader READs
  };
  // The value of a large item: kReadingKnown, kReadingValue, and until it ends.
  struct ValueRead {
    uint32_t wanted = 0;  // bytes of the value that are to be READ
    uint32_t posted = 0;  // and whose READs were posted
  };
  // A long buffer. A long item is READ into it: kLookingUp to kConfirming. Or an answer is kept in
  // it, until Release.
  struct LongBuffer {
    LentBuffer lent;
    bool is_reply = false;  // it is of SessionMemory::replies
  };

  // What lock, unlock, and writes under a lock need.
  enum class Hold : uint8_t {
    kNot,
    kTaking,  // a compare-and-swap that takes it is queued or posted
    kHas,
    kMayHave,  // the request that takes it was sent over a connection that is lost since
  };
  struct Lock {
    LockWord word;           // ours, or after a refusal the holder's
    Hold hold = Hold::kNot;  // of what takes a lock; stays as it was when that is over
  };

  // What goes by RPC: kPausing, kRequestQueued, kRequestSent. The answer's part counts until
  // Release.
  struct Rpc {
    uint64_t sequence = 0;         // of the request sent last
    int64_t again_ns = 0;          // when a pause ends
    union {                        // by the type
      uint64_t next_position = 0;  // lists: where to go on, 0 = the end
      uint64_t snapshot;           // storage: the number of the one that was asked for
      uint64_t flush_map;          // flush: the revision of the map by which it began
    };
    // In a cluster of groups: the revision of the map by which a server refused the request; 0:
    // none did.
    uint64_t refused_at = 0;
    // GET of a large item: the version that the server said is alive. Counts for the READs that
    // follow.
    uint64_t version_alive = 0;
    uint32_t value_needed = 0;  // GET: room to ask for
    // GetAndTouch: the item was touched, and is now to be read. Flush: all is removed, and the
    // server is asked for its map.
    bool second_step = false;
    // A write that the server put off, with all that is behind it of its key.
    bool put_off = false;
  };

  // Looked at for every READ.
  CheckedPhase phase;
  Outcome outcome = Outcome::kOk;
  bool in_order = false;  // it is in the engine's KeyOrder
  // Its deadline is over, but the device may still use the caller's memory. It ends when that ends.
  bool late = false;
  // Its key's partition has changed since its server was found: op_rerouting.h.
  bool misplaced = false;
  uint8_t key_bytes = 0;
  Busy busy;
  uint32_t number = 0;  // of the slot
  // Where it goes.
  uint32_t place_changes = 0;      // how often the key's partition had changed when that was found
  EngineServer* server = nullptr;  // number request.server
  OpBuffers* buffers = nullptr;    // of its session; nullptr before that was ready
  KeyHash hash{0};
  LocationCache::Place place;  // of the hash, in its server's cache
  // What it READs.
  OrdinaryItem ordinary;
  int64_t posted_ns = 0;  // when the READ in flight was posted, or earlier
  int64_t deadline_ns = 0;
  // What its caller asks, and is told.
  OpRequest request;  // without its key
  char key_memory[kKeyBytesMax];
  Completion done;  // what the caller is told; code, type and lock_word are filled in at the end
  std::string_view value;  // if found: in the operation's buffers, valid until Release
  // What only some operations need.
  LongBuffer item;
  Lookup lookup;  // kStarved, kLookingUp to kReadingHead, and behind kLocking
  SharedWindow window;
  ValueRead value_read;
  Lock lock;
  Rpc rpc;

  static constexpr uint64_t kChangesStep = 0x9e3779b97f4a7c15;  // odd, and far from hashes' bits

  bool over() const { return phase >= Phase::kFinished; }
  bool reads() const { return kReading.Contains(phase); }
  bool has_lock() const { return lock.hold == Hold::kHas; }
  bool may_have_lock() const { return has_lock() || lock.hold == Hold::kMayHave; }
  // Waits until rpc.again_ns.
  bool pauses() const { return phase == Phase::kPausing || busy.debt == LockDebt::kPausing; }
  std::string_view key() const { return {key_memory, key_bytes}; }
  ClientSession& session() const { return *server->session; }
  bool uses_caller_memory() const { return !request.memory.empty(); }

  // When it was started, or an earlier time. All of its READs were posted later.
  int64_t begun_ns() const { return late ? 0 : deadline_ns - request.timeout_ns; }

  // Finds its buffers, which its session has once it was ready.
  void FindBuffers() {
    buffers = session().attempts().was_connected() ? session().memory().op(number) : nullptr;
  }
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
    return rpc.second_step || (request.type == OpType::kFlush && request.position != 0);
  }

  // Returns whether it is a write that the server has not answered at all.
  bool IsWholeWrite() const { return IsWrite(request.type) && !rpc.second_step; }

  // Puts its request into the server's queue, as the next thing to do. QueueGet: it asks for a
  // value.
  void QueueRequest();
  void QueueGet();
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
