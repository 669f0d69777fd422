#ifndef GANNET_CLIENT_SESSION_SESSION_PHASE_H_
#define GANNET_CLIENT_SESSION_SESSION_PHASE_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

namespace gannet {

struct ClientConnection;

// Whose connections they are: a session's.
class ConnectionsOwner {
 public:
  // Sets another phase, and tells all parts that nothing may be posted any more.
  virtual void GiveUp(absl::Status why) = 0;

 protected:
  ~ConnectionsOwner() = default;
};

// Gives up one of them.
class OneConnectionOwner {
 public:
  // Gives up this connection, so that the others go on. Returns false if they cannot.
  virtual bool GiveUpOne(ClientConnection& connection, const absl::Status& why) = 0;

 protected:
  ~OneConnectionOwner() = default;
};

// Whether a session's connections may be used. The session sets it, its parts ask it, and any part
// can give the connections up. One owner thread.
class SessionPhase {
 public:
  enum class Value : uint8_t { kDown, kConnecting, kReady, kDraining };

  SessionPhase(ConnectionsOwner* owner, OneConnectionOwner* owner_of_one)
      : owner_(owner), owner_of_one_(owner_of_one) {}

  Value value() const { return value_; }
  void Set(Value value) { value_ = value; }
  bool ready() const { return value_ == Value::kReady; }
  // Gives the connections up before it returns, unless that was done before. So whoever calls
  // something that may break them asks ready() afterwards.
  void Break(absl::Status why) {
    if (!ready()) return;
    loss_ = true;
    owner_->GiveUp(std::move(why));
  }
  // The same if one connection broke. The others go on if they can.
  void BreakOne(ClientConnection& connection, const absl::Status& why) {
    if (ready() && !owner_of_one_->GiveUpOne(connection, why)) Break(why);
  }
  // The connections that are drained were ready, and the owner waits to hear of their loss.
  bool loss() const { return loss_; }
  // Returns loss(), which is told now.
  bool TakeLoss() { return std::exchange(loss_, false); }

 private:
  Value value_ = Value::kDown;
  bool loss_ = false;
  ConnectionsOwner* const owner_;
  OneConnectionOwner* const owner_of_one_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_PHASE_H_
