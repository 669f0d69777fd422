#include "client/session/connect_attempts.h"

#include <utility>

#include "common/base/hash.h"

namespace gannet {

void ConnectAttempts::OnFailed(Failure failure) {
  // What a server said tells more than that nobody listens at another of its addresses.
  if (failure.answered || !answered_) {
    status_ = std::move(failure.why);
    refused_with_ = failure.code;
    answered_ = failure.answered;
  }
  if (failure.session_forgotten) {
    backoff_.Reset();  // ask the same address for a new session, at once
  } else if (failure.code == RejectCode::kStarting) {
    tried_ = addresses_;  // this address is the server's
  } else {
    ++tried_;
    address_ = (address_ + 1) % addresses_;
  }
  if (tried_ < addresses_) return;
  unreachable_ = true;
  NextRound();
}

void ConnectAttempts::OnConnected() {
  status_ = absl::OkStatus();
  refused_with_ = {};
  was_connected_ = true;
  unreachable_ = false;
  backoff_.Reset();
  NextRound();
}

void ConnectAttempts::NextRound() {
  tried_ = 0;
  answered_ = false;
}

// The next address is tried at once, the first one again after a pause. A server that is starting
// has answered already, so it is tried again also where a broken connection would not be.
void ConnectAttempts::ScheduleNext(int64_t now_ns) {
  const bool again = reconnect_ || (!was_connected_ && (tried_ > 0 || starting()));
  if (!again) {
    next_ns_ = kNever;
  } else if (tried_ > 0) {
    next_ns_ = now_ns;
  } else {
    next_ns_ = now_ns + backoff_.NextNs(Mix64(static_cast<uint64_t>(now_ns)));
  }
}

}  // namespace gannet
