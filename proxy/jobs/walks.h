#ifndef GANNET_PROXY_JOBS_WALKS_H_
#define GANNET_PROXY_JOBS_WALKS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/wake_up.h"

namespace gannet::proxy {

struct Operation;

// Walks that ended, for the thread that asked for them.
class WalkInbox {
 public:
  // ResourceExhausted: there are no file descriptors left.
  static absl::StatusOr<std::unique_ptr<WalkInbox>> Create();

  // From any thread.
  void Put(Operation* ended);
  std::vector<Operation*> TakeAll();
  // Readable if there may be walks to take.
  int fd() const { return wake_up_->fd(); }

 private:
  explicit WalkInbox(std::unique_ptr<WakeUp> wake_up) : wake_up_(std::move(wake_up)) {}

  const std::unique_ptr<WakeUp> wake_up_;
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
