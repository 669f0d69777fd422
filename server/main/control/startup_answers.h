#ifndef GANNET_SERVER_MAIN_CONTROL_STARTUP_ANSWERS_H_
#define GANNET_SERVER_MAIN_CONTROL_STARTUP_ANSWERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/wake_up.h"
#include "common/rdma/listener.h"
#include "server/rpc/log_limit.h"

namespace gannet {

// Refuses those who connect while a server prepares its memory: RejectCode::kStarting, and how much
// of the memory is ready. With much memory that takes minutes. A thread of its own polls the
// listener from Start to the destruction. Nobody else may poll it meanwhile.
class StartupAnswers {
 public:
  // `listener` outlives it; `bytes` is all memory that is prepared. ResourceExhausted: no file
  // descriptor.
  static absl::StatusOr<std::unique_ptr<StartupAnswers>> Start(Listener* listener, uint64_t bytes);
  ~StartupAnswers();

  // Takes note that so many bytes more are prepared. May be called from any thread.
  void AddReady(uint64_t bytes) { ready_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  StartupAnswers(Listener* listener, uint64_t bytes, std::unique_ptr<WakeUp> stop)
      : listener_(listener), bytes_(bytes), stop_(std::move(stop)) {}

  void Run();
  void Refuse(IncomingRequest request);
  std::string Reason() const;

  Listener* const listener_;
  const uint64_t bytes_;
  const std::unique_ptr<WakeUp> stop_;
  std::atomic<uint64_t> ready_{0};  // relaxed: only a figure to report
  LogLimit refusals_{10, kNsPerSecond};
  std::thread thread_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_STARTUP_ANSWERS_H_
