#include "client/engine/server_events.h"

#include <algorithm>

namespace gannet {

void ServerEvents::ForEachFd(absl::FunctionRef<void(uint32_t, int, FdKind)> use) const {
  uint32_t number = 0;
  for (const EngineServer& server : servers_.all()) {
    server.session->waits().ForEachFd([&](int fd, FdKind kind) { use(number, fd, kind); });
    ++number;
  }
}

uint64_t ServerEvents::fds_version() const {
  uint64_t version = servers_.version();
  for (const EngineServer& server : servers_.all())
    version += server.session->waits().fds_version();
  return version;
}

void ServerEvents::Arm() const {
  for (const EngineServer& server : servers_.all()) server.session->waits().Arm();
}

void ServerEvents::OnReadable(uint32_t server, FdKind kind) const {
  if (server >= servers_.size()) return;  // it was dropped
  ClientSession& session = *servers_.all()[server].session;
  if (kind == FdKind::kCompletions) {
    session.waits().TakeEvents();
  } else {
    session.waits().LookAtConnections();
  }
}

bool ServerEvents::ExpectsCompletions() const {
  return std::ranges::any_of(servers_.all(), [](const EngineServer& it) {
    return it.HasQueued() || it.session->waits().ExpectsCompletions();
  });
}

int64_t ServerEvents::IdleNs(int64_t now_ns, bool somebody_waits) const {
  int64_t idle_ns = INT64_MAX;
  for (const EngineServer& server : servers_.all()) {
    if (server.CanSendQueued()) return 0;
    idle_ns = std::min(idle_ns, server.session->waits().IdleNs(now_ns, somebody_waits));
  }
  return idle_ns;
}

bool ServerEvents::in_motion() const {
  return std::ranges::any_of(
      servers_.all(), [](const EngineServer& it) { return it.session->waits().in_motion(); });
}

bool ServerEvents::progressed() const {
  return std::ranges::any_of(
      servers_.all(), [](const EngineServer& it) { return it.session->waits().progressed(); });
}

bool ServerEvents::wants_buffer() const {
  return std::ranges::any_of(servers_.all(),
                             [](const EngineServer& it) { return it.wants_buffer; });
}

}  // namespace gannet
