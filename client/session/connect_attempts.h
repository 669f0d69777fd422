#ifndef GANNET_CLIENT_SESSION_CONNECT_ATTEMPTS_H_
#define GANNET_CLIENT_SESSION_CONNECT_ATTEMPTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "client/session/liveness.h"
#include "common/protocol/connect.h"

namespace gannet {

// Decides when a session tries to connect next, and to which of its server's addresses. Keeps why
// the session is not connected.
//
// A round tries all addresses, one after the other. After a round that failed the server counts as
// unreachable until it is connected again, and the next round begins after a back-off.
//
// One owner thread.
class ConnectAttempts {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  struct Failure {
    absl::Status why;
    RejectCode code;         // the server's, if it refused; otherwise 0
    bool answered;           // the server answered, though it did not connect
    bool session_forgotten;  // it only refused to resume the session
  };

  // `reconnect`: whether to try again after a connection broke.
  ConnectAttempts(uint32_t addresses, bool reconnect)
      : addresses_(addresses), reconnect_(reconnect) {}

  void OnFailed(Failure failure);
  void OnConnected();
  // A connection broke, or could not go on.
  void OnBroken(absl::Status why) { status_ = std::move(why); }
  // Call it when nothing of the last attempt or connection is left.
  void ScheduleNext(int64_t now_ns);

  // The number of the address that is connected, or will be tried next.
  uint32_t address() const { return address_; }
  // When to try next; kNever: not again.
  int64_t next_ns() const { return next_ns_; }
  bool was_connected() const { return was_connected_; }
  // All addresses were tried in vain since the server was last connected.
  bool unreachable() const { return unreachable_; }
  // At the last attempt the server said that it is still preparing its memory.
  bool starting() const { return refused_with_ == RejectCode::kStarting; }
  // Why there is no connection. OK if there is one, or none was tried yet.
  const absl::Status& status() const { return status_; }
  // Returns whether a failure is worth a line in the log. Later rounds have the same to say, unless
  // the server refuses for another reason.
  bool IsNews(RejectCode code) const { return !unreachable_ || code != refused_with_; }

 private:
  void NextRound();

  const uint32_t addresses_;
  const bool reconnect_;
  absl::Status status_;
  int64_t next_ns_ = 0;
  uint32_t address_ = 0;
  uint32_t tried_ = 0;     // addresses that failed in this round
  bool answered_ = false;  // in this round the server answered, though it did not connect
  bool unreachable_ = false;
  bool was_connected_ = false;
  RejectCode refused_with_{};  // at the last attempt; 0: the server did not refuse it
  Backoff backoff_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CONNECT_ATTEMPTS_H_
