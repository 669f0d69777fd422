#include "proxy/jobs/walks.h"

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace gannet::proxy {

void WalkInbox::Put(Operation* ended) {
  {
    const MutexLock lock(mutex_);
    ended_.push_back(ended);
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(event_fd_, &one, sizeof(one));
}

std::vector<Operation*> WalkInbox::TakeAll() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(event_fd_, &count, sizeof(count));
  const MutexLock lock(mutex_);
  return std::exchange(ended_, {});
}

}  // namespace gannet::proxy
