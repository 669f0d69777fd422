#ifndef GANNET_CLIENT_API_REQUESTS_H_
#define GANNET_CLIENT_API_REQUESTS_H_

#include <gannet/types.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/engine/engine.h"
#include "common/base/wait_stages.h"

namespace gannet {

// From the public calls to an Engine's requests and back; shared by Client and AsyncClient. The
// requests lack only timeout and user data.

inline bool KeyFits(std::string_view key) { return !key.empty() && key.size() <= kKeyBytesMax; }
// InvalidArgument: why a key does not fit.
absl::Status KeyError(std::string_view key);

// InvalidArgument, each: what is wrong with the arguments. Nothing was sent.
absl::StatusOr<OpRequest> KeyRequest(OpType type, std::string_view key);
absl::StatusOr<OpRequest> PutRequest(std::string_view key, std::string_view value,
                                     const PutOptions& options);
absl::StatusOr<OpRequest> DeleteRequest(std::string_view key, const DeleteOptions& options);
// kLock or kLockAndGet.
absl::StatusOr<OpRequest> LockRequest(OpType type, std::string_view key,
                                      const LockOptions& options);
absl::StatusOr<OpRequest> UnlockRequest(const Lock& lock);
absl::StatusOr<OpRequest> ExtendRequest(const Lock& lock, std::chrono::milliseconds lease);
absl::StatusOr<OpRequest> ServerRequest(const Engine& engine, OpType type, uint32_t server);

// Of a finished operation, with a text for people. OK also for a miss and a lock not acquired.
absl::Status StatusOf(const Engine& engine, const Op& op);

// A Stats operation's answer.
ServerStats StatsOf(const Engine& engine, const Op& op);

// A ListLocks operation's answer, added to `locks`. Returns the index to go on from, 0 at the end.
uint64_t TakeLocks(const Op& op, std::vector<HeldLock>* locks);

// How those wait who have these options. They do not yield: a thread that sleeps keeps its claim to
// the core, and gets it as soon as its answer is there; one that yields has given it up. With 4 and
// 16 threads on two cores no number of yields (0, 1, 2) was better than none.
inline WaitStages StagesOf(const Options& options) {
  return WaitStages(
      {.poll_ns_max = std::clamp<int64_t>(options.poll_max.count(), 0, 1'000'000) * kNsPerUs,
       .yields = 0});
}

// An Engine that is connected to every server; blocks, at most for Options::connect_timeout.
absl::StatusOr<std::unique_ptr<Engine>> ConnectEngine(Engine::Settings settings);

}  // namespace gannet

#endif  // GANNET_CLIENT_API_REQUESTS_H_
