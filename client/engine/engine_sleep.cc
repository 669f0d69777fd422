// What an owner needs who sleeps between Polls.

#include <algorithm>

#include "client/engine/engine.h"

namespace gannet {

void Engine::ForEachFd(const std::function<void(uint32_t, int, FdKind)>& use) const {
  for (uint32_t s = 0; s < servers(); ++s) {
    session(s).ForEachFd([&](int fd, FdKind kind) { use(s, fd, kind); });
  }
}

uint64_t Engine::fds_version() const {
  uint64_t version = 0;
  for (const Server& server : servers_) version += server.session->fds_version();
  return version;
}

bool Engine::ExpectsCompletions() const {
  return alive() > 0 || std::ranges::any_of(servers_, [](const Server& s) {
           return s.session->ExpectsCompletions();
         });
}

void Engine::Arm() {
  for (const Server& server : servers_) server.session->Arm();
}

void Engine::OnReadable(uint32_t server, FdKind kind) {
  ClientSession& session = *servers_[server].session;
  if (kind == FdKind::kCompletions) {
    session.TakeEvents();
  } else {
    session.LookAtConnections();
  }
}

int64_t Engine::IdleNs(int64_t now_ns, bool somebody_waits) const {
  if (!fresh_.empty() || !released_.empty() || !finished_.empty()) return 0;
  int64_t idle_ns = INT64_MAX;
  if (earliest_deadline_ns_ != INT64_MAX) {
    idle_ns = std::max<int64_t>(earliest_deadline_ns_ - now_ns, 0);
  }
  for (const Server& server : servers_) {
    idle_ns = std::min(idle_ns, server.session->IdleNs(now_ns, somebody_waits));
  }
  return idle_ns;
}

bool Engine::in_motion() const {
  return std::ranges::any_of(servers_, [](const Server& s) { return s.session->in_motion(); });
}

bool Engine::progressed() const {
  return std::ranges::any_of(servers_, [](const Server& s) { return s.session->progressed(); });
}

bool Engine::wants_buffer() const {
  return !starved_.empty() ||
         std::ranges::any_of(servers_, [](const Server& s) { return s.session->wants_buffer(); });
}

}  // namespace gannet
