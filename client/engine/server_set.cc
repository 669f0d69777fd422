#include "client/engine/server_set.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/auth/handshake.h"
#include "common/protocol/connection_epoch.h"
#include "common/rdma/device.h"

namespace gannet {
namespace {

// Time may mend such an error. Everything else is for a person to mend, so it is told at once.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

std::string WhyNotConnected(const ClientSession& session) {
  const std::string cause = session.status().ok() ? "no answer within the connect timeout"
                                                  : std::string(session.status().message());
  if (cause.find(session.endpoint()) != std::string::npos) return cause;
  return absl::StrCat(session.endpoint(), ": ", cause);
}

}  // namespace

std::optional<absl::Status> ServerSet::StartStatus(bool last_call) {
  uint32_t ready = 0;
  uint32_t pending = 0;
  std::vector<std::string> causes;
  for (const EngineServer& server : servers_) {
    const ClientSession& session = *server.session;
    if (session.ready()) {
      ++ready;
      continue;
    }
    if (session.down() && !MayPass(session.status())) return session.status();
    if (!session.down() || session.starting()) ++pending;
    causes.push_back(WhyNotConnected(session));
  }
  if (pending > 0 && !last_call) return std::nullopt;
  if (ready == 0) return absl::UnavailableError(absl::StrJoin(causes, "; "));
  if (routing_status().ok()) started_ = true;
  return routing_status();
}

absl::StatusOr<bool> ServerSet::OnNamed(uint32_t server, std::string_view name) {
  const absl::StatusOr<bool> moved = router_.OnName(server, name);
  if (!moved.ok()) return moved.status();
  for (const EngineServer& each : servers_) each.session->SetServerSet(router_.set_hash());
  return *moved && started_ && size() > 1;
}

void ServerSet::OnKeysMoved(uint32_t server) {
  const std::string why =
      absl::StrCat("the server at ", session(server).endpoint(), " is called ",
                   router_.NameOf(server), ", not as assumed: keys changed their servers");
  if (log_) log_(LogLevel::kWarning, why);
  for (const EngineServer& each : servers_) each.session->Break(absl::UnavailableError(why));
}

std::vector<ServerInfo> ServerSet::Info() const {
  std::vector<ServerInfo> infos;
  for (uint32_t i = 0; i < size(); ++i) {
    const ClientSession& its = session(i);
    ServerInfo& info = infos.emplace_back();
    info.endpoint = its.endpoint();
    info.name = router_.NameOf(i);
    info.connected = its.ready();
    if (!info.connected) info.why_not = WhyNotConnected(its);
    info.unreachable = its.down();
    if (!its.was_ready()) continue;
    const Grant& grant = its.grant();
    info.device = its.memory().device.name;
    info.kind = DeviceKindName(its.memory().device.kind);
    info.lock_mode =
        its.terms().read_only() ? std::string_view("none") : LockModeName(its.terms().lock_mode());
    info.authenticated = its.terms().authenticated;
    info.read_only = its.terms().read_only();
    info.incarnation = grant.incarnation;
    info.region_bytes = grant.region_bytes;
    info.index_slots = its.index_slots();
    info.lock_words = grant.lock_words;
    info.protocol_version = grant.version;
    info.session_id = grant.session_id;
    info.read_depth = its.terms().read_depth;
    info.silence_ms = grant.silence_ms;
    info.history = grant.history;
    if (info.history != 0) info.epoch = EpochOfConnection(grant.connection_id);
    info.address = its.address().ToString();
    info.reads_disbelieved = its.reads_disbelieved();
  }
  return infos;
}

void ServerSet::ForEachFd(const std::function<void(uint32_t, int, FdKind)>& use) const {
  for (uint32_t i = 0; i < size(); ++i) {
    session(i).ForEachFd([&](int fd, FdKind kind) { use(i, fd, kind); });
  }
}

uint64_t ServerSet::fds_version() const {
  uint64_t version = 0;
  for (const EngineServer& server : servers_) version += server.session->fds_version();
  return version;
}

bool ServerSet::ExpectsCompletions() const {
  return std::ranges::any_of(servers_, [](const EngineServer& it) {
    return it.HasQueued() || it.session->ExpectsCompletions();
  });
}

void ServerSet::Arm() {
  for (const EngineServer& server : servers_) server.session->Arm();
}

void ServerSet::OnReadable(uint32_t server, FdKind kind) {
  ClientSession& session = *servers_[server].session;
  if (kind == FdKind::kCompletions) {
    session.TakeEvents();
  } else {
    session.LookAtConnections();
  }
}

int64_t ServerSet::IdleNs(int64_t now_ns, bool somebody_waits) const {
  int64_t idle_ns = INT64_MAX;
  for (const EngineServer& server : servers_) {
    if (server.CanSendQueued()) return 0;
    idle_ns = std::min(idle_ns, server.session->IdleNs(now_ns, somebody_waits));
  }
  return idle_ns;
}

bool ServerSet::in_motion() const {
  return std::ranges::any_of(servers_,
                             [](const EngineServer& it) { return it.session->in_motion(); });
}

bool ServerSet::progressed() const {
  return std::ranges::any_of(servers_,
                             [](const EngineServer& it) { return it.session->progressed(); });
}

bool ServerSet::wants_buffer() const {
  return std::ranges::any_of(servers_, [](const EngineServer& it) { return it.wants_buffer; });
}

uint32_t ServerSet::busy() const {
  uint32_t busy = 0;
  for (const EngineServer& server : servers_) {
    busy += server.session->busy() + server.ordered.size() + server.requests.size();
  }
  return busy;
}

}  // namespace gannet
