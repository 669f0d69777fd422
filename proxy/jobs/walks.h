#ifndef GANNET_PROXY_JOBS_WALKS_H_
#define GANNET_PROXY_JOBS_WALKS_H_

#include <vector>

#include "common/base/mutex.h"

namespace gannet::proxy {

struct Operation;

// Walks that ended, for the thread that asked for them.
class WalkInbox {
 public:
  // Takes the descriptor of an eventfd, which is written when a walk ends.
  explicit WalkInbox(int event_fd) : event_fd_(event_fd) {}

  // From any thread.
  void Put(Operation* ended);
  std::vector<Operation*> TakeAll();

 private:
  const int event_fd_;
  Mutex mutex_;
  std::vector<Operation*> ended_ GANNET_GUARDED_BY(mutex_);
};

// Walks through a server's keys, for operations of kind kWalk. A walk waits for its READs, so the
// threads that serve connections do not walk.
class Walks {
 public:
  virtual ~Walks() = default;
  // Runs the operation, and puts it into the inbox. From any thread.
  virtual void Begin(Operation* walk, WalkInbox* inbox) = 0;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_WALKS_H_
