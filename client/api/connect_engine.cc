#include "client/api/connect_engine.h"

#include <optional>
#include <utility>

#include "client/engine/wake_fd.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

// An engine that is not used by others yet, and what wakes who waits for it.
class NewEngine {
 public:
  static absl::StatusOr<NewEngine> Create(Engine::Settings settings, int64_t deadline_ns) {
    GANNET_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Create(std::move(settings)));
    GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeFd> wake, WakeFd::Create());
    return NewEngine(std::move(engine), std::move(wake), deadline_ns);
  }

  // Waits until the engine can start.
  absl::Status Start() {
    std::optional<absl::Status> status;
    PollUntil([&](bool last_call) {
      status = engine_->servers().StartStatus(last_call);
      return status.has_value();
    });
    return *status;
  }

  // Waits until the engine knows the cluster's map, if the servers are in one.
  absl::Status WaitForMap() {
    std::optional<absl::Status> status;
    PollUntil([&](bool last_call) {
      status = engine_->MapStatus();
      const bool known = status.has_value() && !absl::IsUnavailable(*status);
      return known || last_call;
    });
    return status.value_or(absl::UnavailableError("no answer to the question for the map"));
  }

  std::unique_ptr<Engine> Take() && { return std::move(engine_); }

 private:
  NewEngine(std::unique_ptr<Engine> engine, std::unique_ptr<WakeFd> wake, int64_t deadline_ns)
      : engine_(std::move(engine)), wake_(std::move(wake)), deadline_ns_(deadline_ns) {}

  // Polls until done(last_call). REQUIRES: done(true).
  template <class F>
  void PollUntil(F done) {
    for (;;) {
      const int64_t now_ns = engine_->clock().MonotonicNs();
      engine_->Poll(now_ns);
      if (done(now_ns >= deadline_ns_)) return;
      GANNET_CHECK(now_ns < deadline_ns_, "who waits goes on beyond the deadline");
      // Arm polls once more. That Poll may bring what this waits for.
      if (wake_->Arm(*engine_, now_ns) || done(false)) continue;
      WakeFd::Sleep(wake_->fd(), deadline_ns_ - now_ns);
    }
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<WakeFd> wake_;
  int64_t deadline_ns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> ConnectEngine(Engine::Settings settings) {
  const int64_t deadline_ns =
      settings.clock.get().MonotonicNs() + TimeoutNs(settings.options.connect_timeout);
  GANNET_ASSIGN_OR_RETURN(NewEngine made, NewEngine::Create(std::move(settings), deadline_ns));
  GANNET_RETURN_IF_ERROR(made.Start());
  GANNET_RETURN_IF_ERROR(made.WaitForMap());
  GANNET_RETURN_IF_ERROR(made.Start());  // the map may have told of other servers
  return std::move(made).Take();
}

}  // namespace gannet
