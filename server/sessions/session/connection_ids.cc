#include "server/sessions/session/connection_ids.h"

#include <algorithm>
#include <limits>

namespace gannet {

std::optional<uint32_t> ConnectionIds::Take() {
  MutexLock lock(mutex_);
  uint32_t id;
  if (!given_back_.empty()) {
    id = given_back_.back();
    given_back_.pop_back();
  } else {
    if (next_ > std::numeric_limits<uint32_t>::max()) return std::nullopt;
    id = static_cast<uint32_t>(next_++);
  }
  alive_[id] = Holder{};
  return id;
}

void ConnectionIds::Describe(uint32_t id, uint32_t session_id, std::string_view peer) {
  Holder holder{.session_id = session_id};
  peer = peer.substr(0, holder.peer.size());
  std::copy(peer.begin(), peer.end(), holder.peer.begin());
  MutexLock lock(mutex_);
  alive_[id] = holder;
}

void ConnectionIds::Retire(uint32_t id) {
  MutexLock lock(mutex_);
  alive_.erase(id);
}

void ConnectionIds::GiveBack(uint32_t id) {
  MutexLock lock(mutex_);
  if (alive_.erase(id) > 0) given_back_.push_back(id);
}

bool ConnectionIds::Alive(uint32_t id) const {
  MutexLock lock(mutex_);
  return alive_.contains(id);
}

std::optional<ConnectionIds::Holder> ConnectionIds::HolderOf(uint32_t id) const {
  MutexLock lock(mutex_);
  const auto it = alive_.find(id);
  if (it == alive_.end()) return std::nullopt;
  return it->second;
}

size_t ConnectionIds::alive() const {
  MutexLock lock(mutex_);
  return alive_.size();
}

}  // namespace gannet
