#include "server/session/connection_ids.h"

#include <limits>

namespace gannet {

std::optional<uint32_t> ConnectionIds::Take() {
  MutexLock lock(mutex_);
  if (next_ > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  const uint32_t id = static_cast<uint32_t>(next_++);
  alive_.insert(id);
  return id;
}

void ConnectionIds::Retire(uint32_t id) {
  MutexLock lock(mutex_);
  alive_.erase(id);
}

bool ConnectionIds::Alive(uint32_t id) const {
  MutexLock lock(mutex_);
  return alive_.contains(id);
}

size_t ConnectionIds::alive() const {
  MutexLock lock(mutex_);
  return alive_.size();
}

}  // namespace gannet
