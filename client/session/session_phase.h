#ifndef GANNET_CLIENT_SESSION_SESSION_PHASE_H_
#define GANNET_CLIENT_SESSION_SESSION_PHASE_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"

namespace gannet {

// Whether a session's connections may be used. The session sets it, its parts ask it, and any part
// can give the connections up. One owner thread.
class SessionPhase {
 public:
  enum class Value : uint8_t { kDown, kConnecting, kReady, kDraining };

  // `give_up` sets another phase, and tells all parts that nothing may be posted any more.
  explicit SessionPhase(std::function<void(absl::Status why)> give_up)
      : give_up_(std::move(give_up)) {}

  Value value() const { return value_; }
  void Set(Value value) { value_ = value; }
  bool ready() const { return value_ == Value::kReady; }
  // Gives the connections up before it returns, unless that was done before. So whoever calls
  // something that may break them asks ready() afterwards.
  void Break(absl::Status why) {
    if (ready()) give_up_(std::move(why));
  }

 private:
  Value value_ = Value::kDown;
  const std::function<void(absl::Status)> give_up_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_PHASE_H_
