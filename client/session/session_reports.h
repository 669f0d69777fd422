#ifndef GANNET_CLIENT_SESSION_SESSION_REPORTS_H_
#define GANNET_CLIENT_SESSION_SESSION_REPORTS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "client/session/session_owner.h"

namespace gannet {

// Tells a session's owner what the session's parts have to report, until the session closes: then
// the operations may be gone. One owner thread.
class SessionReports {
 public:
  // `number` is the session's among its owner's.
  SessionReports(uint32_t number, SessionOwner* owner) : number_(number), owner_(owner) {}

  // From now on the owner is told nothing.
  void End() { owner_ = nullptr; }
  // The session has another number from now on.
  void SetNumber(uint32_t number) { number_ = number; }

  // The following pass on to the owner: see SessionOwner.
  void OnDoorbell(uint32_t op) {
    if (owner_ != nullptr) owner_->OnDoorbell(op);
  }
  void OnWorksDone(std::span<const InFlightWork::Work> works, bool signaled) {
    if (owner_ != nullptr) owner_->OnWorksDone(number_, works, signaled);
  }
  void OnReply(RequestWindow::Entry* answered, const ReplyView& reply) {
    if (owner_ != nullptr) owner_->OnReply(answered, reply);
  }
  absl::Status OnNamed(std::string_view name) {
    return owner_ != nullptr ? owner_->OnNamed(number_, name) : absl::OkStatus();
  }
  void OnReady(Comeback comeback, std::span<const uint32_t> abandoned) {
    if (owner_ != nullptr) owner_->OnReady(number_, comeback, abandoned);
  }
  void OnLost() {
    if (owner_ != nullptr) owner_->OnLost(number_);
  }
  void OnMapReply(const ReplyView& reply) {
    if (owner_ != nullptr) owner_->OnMapReply(number_, reply);
  }
  void OnOldMap() {
    if (owner_ != nullptr) owner_->OnOldMap(number_);
  }

 private:
  uint32_t number_;
  SessionOwner* owner_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_REPORTS_H_
