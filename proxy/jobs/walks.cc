#include "proxy/jobs/walks.h"

#include <utility>

#include "common/base/status_macros.h"

namespace gannet::proxy {

absl::StatusOr<std::unique_ptr<WalkInbox>> WalkInbox::Create() {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> wake_up, WakeUp::Create());
  return std::unique_ptr<WalkInbox>(new WalkInbox(std::move(wake_up)));
}

void WalkInbox::Put(Operation* ended) {
  {
    const MutexLock lock(mutex_);
    ended_.push_back(ended);
  }
  wake_up_->Ask();
}

std::vector<Operation*> WalkInbox::TakeAll() {
  wake_up_->Take();
  const MutexLock lock(mutex_);
  return std::exchange(ended_, {});
}

}  // namespace gannet::proxy
