#ifndef GANNET_CLIENT_ENGINE_OP_H_
#define GANNET_CLIENT_ENGINE_OP_H_

#include <gannet/async_client.h>
#include <gannet/types.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client/engine/outcome.h"
#include "client/location_cache/location_cache.h"
#include "client/lookup/lookup.h"
#include "client/session/session_memory.h"
#include "common/base/clock.h"
#include "common/layout/item_proof.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/layout/slot.h"

namespace gannet {

// Clamps a user's timeout to 0..10^9 ms.
inline int64_t TimeoutNs(std::chrono::milliseconds timeout) {
  constexpr int64_t kMsMax = 1'000'000'000;
  return std::clamp<int64_t>(timeout.count(), 0, kMsMax) * kNsPerMs;
}

// What a caller asks of an Engine. The key is copied, and is then the Op's; `value` and `out` must
// live until the operation is finished.
struct OpRequest {
  OpType type = OpType::kGet;
  bool only_if_absent = false;
  bool only_if_version = false;
  bool under_lock = false;
  bool share_window = false;  // GET: its window may come with that of another GET begun with it
  uint32_t server = 0;
  std::string_view key;
  int64_t timeout_ns = 0;  // from the next Poll on
  uint64_t user_data = 0;
  std::span<std::byte> out;  // AsyncClient: where as much of the value goes as it has room for
  // Of writes and unlocks. Engine::BeginGet does not set these: Engine::Free made them as here.
  std::string_view value;
  uint64_t ttl_ms = 0;            // of the item, or (lock, extend lock) the lease; 0: for ever
  uint64_t expected_version = 0;  // list locks: the index to begin with
  uint64_t lock_word = 0;         // unlock, extend lock, or of a write under a lock
  uint32_t flags = 0;
};

struct EngineServer;

// One operation of an Engine. Slots are reused: a free one is as a new one, but for what every
// operation sets itself (Engine::Free, Engine::Report).
struct alignas(64) Op {
  enum class Phase : uint8_t {
    kFree,
    kFresh,           // begun, to be started by the next Poll
    kHeldBack,        // until writes of its key are over (key_order.h)
    kWaiting,         // for the session to be ready
    kStarved,         // for a long buffer
    kReadingWindow,   // the READs of an ordinary GET (engine_ordinary_get.cc): of its home window,
    kReadingItem,     // of the item that the window names,
    kReadingCached,   // or of the item whose location is cached
    kReadingWindows,  // as kReadingWindow, for others too (engine_multi_get.cc)
    kLookingUp,       // READs as `lookup` wants them
    kLocking,         // compare-and-swap, in a LockAndGet with a READ behind it
    kUnlocking,       // compare-and-swap
    kRequestQueued,   // no credit or connection yet
    kRequestSent,
    kFinished,  // the caller has still to Release it
    kReleased,  // but its memory may still be written to, or its number is in a queue
  };
  bool over() const { return phase >= Phase::kFinished; }

  // Why a released slot cannot be reused yet: something may still write to its memory, or its
  // number is in a queue.
  struct Busy {
    uint16_t in_flight = 0;       // READs and compare-and-swaps queued or posted
    bool releasing = false;       // over, but a lock is still to be released: one that came too
                                  // late, or whose unlock did
    bool queued_request = false;  // in its session's queue of requests
    bool awaits_reply = false;    // over, but whether it got the lock is still to be heard
    bool starving = false;        // in the engine's queue for long buffers
    bool postponed = false;       // its request is to be sent again, at `again_ns`
    uint8_t zero = 0;             // so that all of it is one word

    bool quiet() const { return std::bit_cast<uint64_t>(*this) == 0; }
  };

  // Hot: looked at for every READ.
  Phase phase = Phase::kFree;
  Outcome outcome = Outcome::kOk;
  bool acquiring = false;      // a compare-and-swap that takes the lock is queued or posted
  bool lock_acquired = false;  // lock, LockAndGet
  bool item_is_reply = false;  // `item` is from SessionMemory::replies
  bool in_order = false;       // it is in the engine's KeyOrder
  uint8_t key_bytes = 0;
  Busy busy;
  uint32_t item_bytes = 0;         // READ, or being READ, by an ordinary GET from `slot`
  EngineServer* server = nullptr;  // request.server's
  OpBuffers* buffers = nullptr;    // of its session; nullptr before that is ready
  KeyHash hash{0};
  LocationCache::Place place;  // of the hash, in its server's cache
  // Of an ordinary GET: what it READs, or has READ.
  Slot slot;
  ItemSeal seal;          // if it is the key's item
  int64_t posted_ns = 0;  // of the window's READ in flight, or earlier
  int64_t deadline_ns = 0;
  OpRequest request;  // without its key
  char key_memory[kKeyBytesMax];
  Completion done;  // what the caller is told; its code, type and lock_word come at the end

  std::string_view value;  // found: into the operation's buffers, valid until Release
  LentBuffer item;         // a long item, or the reply of a GET by RPC
  Lookup lookup;
  // GETs whose windows come with this one's READ, as a list; they count as in flight. Both are
  // kNoOp again when that READ is done or lost.
  uint32_t first_sharer = kNoOp;
  uint32_t next_sharer = kNoOp;
  LockWord word;              // lock: ours, or after a refusal the holder's
  uint64_t sequence = 0;      // of the request sent
  uint32_t value_needed = 0;  // GET by RPC: room to ask for
  uint32_t number = 0;        // of the slot
  int64_t again_ns = 0;       // see Busy::postponed

  std::string_view key() const { return {key_memory, key_bytes}; }
};

static_assert(sizeof(Op::Busy) == sizeof(uint64_t));

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_H_
