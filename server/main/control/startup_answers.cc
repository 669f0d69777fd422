#include "server/main/control/startup_answers.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clocks.h"
#include "common/base/status_macros.h"
#include "common/protocol/connect.h"
#include "glog/logging.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<StartupAnswers>> StartupAnswers::Start(Listener* listener,
                                                                      uint64_t bytes) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> stop, WakeUp::Create());
  std::unique_ptr<StartupAnswers> answers(new StartupAnswers(listener, bytes, std::move(stop)));
  answers->thread_ = std::thread([raw = answers.get()] { raw->Run(); });
  return answers;
}

StartupAnswers::~StartupAnswers() {
  stop_->Ask();
  thread_.join();
}

void StartupAnswers::Run() {
  pthread_setname_np(pthread_self(), "kv-starting");
  pollfd fds[] = {{listener_->fd(), POLLIN, 0}, {stop_->fd(), POLLIN, 0}};
  while (fds[1].revents == 0) {
    poll(fds, std::size(fds), -1);
    // Nothing was accepted yet, so there are only requests.
    while (std::optional<ListenerEvent> event = listener_->Poll()) {
      if (event->type == ListenerEvent::Type::kRequest) Refuse(std::move(*event->request));
    }
  }
}

void StartupAnswers::Refuse(IncomingRequest request) {
  const absl::StatusOr<ConnectRequest> decoded = DecodeConnectRequest(request.private_data());
  RejectCode code = RejectCode::kStarting;
  std::string reason = Reason();
  if (!decoded.ok()) {
    const bool version = decoded.status().code() == absl::StatusCode::kUnimplemented;
    code = version ? RejectCode::kVersion : RejectCode::kMalformed;
    reason = std::string(decoded.status().message());
  }
  if (const auto left_out = refusals_.Allow(MachineBootTime())) {
    LOG(WARNING) << "refused " << request.peer().ToString() << ": " << reason
                 << (*left_out > 0 ? absl::StrCat(" (and ", *left_out, " before it)") : "");
  }
  const struct Reject reject = NewReject(code, reason);
  listener_->Reject(std::move(request), std::as_bytes(std::span(&reject, 1)));
}

std::string StartupAnswers::Reason() const {
  const uint64_t ready = std::min(ready_.load(std::memory_order_relaxed), bytes_);
  return absl::StrCat(
      "the server is starting: ", 100 * (ready >> 10) / std::max(bytes_ >> 10, uint64_t{1}),
      " % of its memory is ready");
}

}  // namespace gannet
