#include "server/sessions/session/server_sets.h"

#include "common/base/check.h"

namespace gannet {

void ServerSets::Tell(uint32_t session_id, uint64_t set, std::string peer) {
  GANNET_CHECK(set != 0, "0 is no hash of a list");
  MutexLock lock(mutex_);
  told_[session_id] = {set, std::move(peer)};
}

void ServerSets::Forget(uint32_t session_id) {
  MutexLock lock(mutex_);
  told_.erase(session_id);
}

std::optional<std::pair<std::string, std::string>> ServerSets::Different() const {
  MutexLock lock(mutex_);
  const Told* first = nullptr;
  for (const auto& [session_id, told] : told_) {
    if (first == nullptr) first = &told;
    if (told.set != first->set) return std::pair(first->peer, told.peer);
  }
  return std::nullopt;
}

}  // namespace gannet
