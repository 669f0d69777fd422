#ifndef GANNET_COMMON_BASE_CHECKED_STATE_H_
#define GANNET_COMMON_BASE_CHECKED_STATE_H_

#include "common/base/check.h"

namespace gannet {

// A state of the enum E that takes no step its table does not have: MayFollow(from, to), which is
// declared beside E, says which there are. For control paths.
template <class E>
class CheckedState {
 public:
  explicit constexpr CheckedState(E first) : now_(first) {}

  E now() const { return now_; }
  // REQUIRES: MayFollow(now(), next). Otherwise the process ends.
  void To(E next) {
    GANNET_CHECK(MayFollow(now_, next), "there is no such step between states");
    now_ = next;
  }

 private:
  E now_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_CHECKED_STATE_H_
