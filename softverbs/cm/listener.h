#ifndef GANNET_SOFTVERBS_CM_LISTENER_H_
#define GANNET_SOFTVERBS_CM_LISTENER_H_

#include <cstdint>
#include <memory>
#include <unordered_set>

#include "softverbs/base/unique_fd.h"
#include "softverbs/cm/wire.h"
#include "softverbs/nic/loop.h"

namespace softverbs::cm {

class CmId;
class Link;

// The listening socket of an id, and the connections that have not sent their request yet.
// Members are guarded by State::mutex.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // `backlog` bounds the requests that the application has not fetched yet.
  Listener(CmId* owner, UniqueFd fd, int backlog)
      : owner_(owner), fd_(std::move(fd)), backlog_(backlog) {}

  // Returns 0 or an errno. REQUIRES: mutex held; called once.
  int Start();
  // Stops accepting, closes the socket and the connections without request. When it returns, the
  // port is free. REQUIRES: mutex not held.
  void Close();

  // Takes one place of the backlog; false if there is none.
  bool TakePlace();
  void GivePlaceBack() { backlog_++; }

  // What links report while `Link::listener` is this.
  void OnFirstMessage(std::shared_ptr<Link> link, const Message& message);
  void OnLost(const std::shared_ptr<Link>& link);

 private:
  void OnReadable();
  void Adopt(UniqueFd fd);
  // Out of descriptors: refuses one connection with the descriptor kept for it, or else pauses.
  void RefuseOne();
  void Pause();

  CmId* owner_;  // null once closed
  UniqueFd fd_;
  int backlog_;
  Loop::Watch watch_ = 0;
  UniqueFd spare_;  // so that a connection can be refused when there are no descriptors left
  std::unordered_set<std::shared_ptr<Link>> silent_;
};

}  // namespace softverbs::cm

#endif  // GANNET_SOFTVERBS_CM_LISTENER_H_
