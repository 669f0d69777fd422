#ifndef GANNET_CLIENT_API_MAKE_REQUESTS_H_
#define GANNET_CLIENT_API_MAKE_REQUESTS_H_

#include <gannet/types.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/engine/engine.h"
#include "common/base/wait_stages.h"

namespace gannet {

// Turns calls of the public API into an Engine's requests, and finished operations into what the
// API returns. Shared by Client and AsyncClient. The caller still sets a request's timeout and user
// data.

// Returns the text of a field that is padded with NULs.
template <size_t kBytes>
std::string TextOf(const char (&padded)[kBytes]) {
  return std::string(padded, strnlen(padded, kBytes));
}

inline bool KeyFits(std::string_view key) { return !key.empty() && key.size() <= kKeyBytesMax; }
// Returns InvalidArgument, with the reason why the key does not fit.
absl::Status KeyError(std::string_view key);

// Adds a write's conditions to a request. For a write under a lock, the server compares the lock
// word and the version that was read under it.
absl::Status AddConditions(const std::optional<uint64_t>& version, const Lock* lock,
                           OpRequest* request);
absl::Status AddTtl(std::chrono::milliseconds ttl, OpRequest* request);

// All return InvalidArgument, with the reason, if the arguments are not valid.
absl::StatusOr<OpRequest> KeyRequest(OpType type, std::string_view key);
absl::StatusOr<OpRequest> IfChangedRequest(std::string_view key, uint64_t version);
// Returns true if a GetIfChanged found the version that the caller has.
inline bool IsUnchanged(const Op& op) {
  return op.request.type == OpType::kGetIfChanged && op.done.found &&
         op.done.info.version == op.request.expected_version;
}
absl::StatusOr<OpRequest> PutRequest(std::string_view key, std::string_view value,
                                     const PutOptions& options);
// `spans` outlive the operation.
// InvalidArgument: too many or no spans, or not the client's memory.
absl::Status CheckSpans(const Engine& engine, std::span<const RegisteredSpan> spans);
absl::StatusOr<OpRequest> GetIntoRequest(const Engine& engine, std::string_view key,
                                         std::span<const RegisteredSpan> spans);
absl::StatusOr<OpRequest> PutFromRequest(const Engine& engine, std::string_view key,
                                         std::span<const RegisteredSpan> spans,
                                         const PutOptions& options);
absl::StatusOr<OpRequest> DeleteRequest(std::string_view key, const DeleteOptions& options);
// `type` is kLock or kLockAndGet.
absl::StatusOr<OpRequest> LockRequest(OpType type, std::string_view key,
                                      const LockOptions& options);
absl::StatusOr<OpRequest> UnlockRequest(const Lock& lock);
absl::StatusOr<OpRequest> ExtendRequest(const Lock& lock, std::chrono::milliseconds lease);
absl::StatusOr<OpRequest> ServerRequest(const Engine& engine, OpType type, uint32_t server);

// Returns how an operation ended, with a text for people. OK also for a miss, or a lock that was
// not acquired.
absl::Status MakeStatus(const Engine& engine, const Op& op);

// Returns the answer of a Stats operation that asked this server.
ServerStats ParseStats(std::string endpoint, const Op& op);

// Appends the answer of a ListLocks operation. Returns the index to go on from, or 0 at the end.
uint64_t AppendLocks(const Op& op, std::vector<HeldLock>* locks);

// Returns how a thread waits with these options. It does not yield: a thread that sleeps gets a
// core as soon as its answer is there, but one that yields has given up its claim to the core. With
// 4 and 16 threads on two cores, one or two yields were not better than none.
inline WaitStages MakeWaitStages(const Options& options) {
  return WaitStages(
      {.poll_ns_max = std::clamp<int64_t>(options.poll_max.count(), 0, 1'000'000) * kNsPerUs,
       .yields = 0});
}

// Makes the registered memory of a Client or an AsyncClient.
absl::StatusOr<RegisteredMemory> MakeRegistered(absl::StatusOr<std::unique_ptr<MemoryRange>> range);

}  // namespace gannet

#endif  // GANNET_CLIENT_API_MAKE_REQUESTS_H_
