#ifndef GANNET_CLIENT_ENGINE_OP_REQUEST_H_
#define GANNET_CLIENT_ENGINE_OP_REQUEST_H_

#include <gannet/async_client.h>
#include <gannet/registered_memory.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/clock.h"
#include "common/protocol/message.h"

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
// Reads that need no value, or perhaps none (lookup_gets_heads.cc).
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

// Returns whether an operation that ReadsHead wants no value of the item with this version.
inline bool WantsNoValue(const OpRequest& request, uint64_t version) {
  return request.type == OpType::kExists || version == request.expected_version;
}

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_REQUEST_H_
