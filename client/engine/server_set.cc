// The servers of an engine and the way from a key to one of them. Operations know servers by their
// numbers and by pointers, so whoever adds, drops or shares servers anew has to point all
// operations at them again (MapFollower::PointAtServers). fds_version only grows, also when a
// server goes, so that a wait never misses a change.

#include "client/engine/server_set.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/engine/op.h"
#include "client/engine/server_maker.h"
#include "common/auth/handshake.h"
#include "common/base/check.h"
#include "common/protocol/connection_epoch.h"
#include "common/rdma/device.h"

namespace gannet {
namespace {

// Time may mend such an error. Everything else is for a person to mend, so it is told at once.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

std::string WhyNotConnected(const ClientSession& session) {
  const std::string cause = session.attempts().status().ok()
                                ? "no answer within the connect timeout"
                                : std::string(session.attempts().status().message());
  if (cause.find(session.endpoint()) != std::string::npos) return cause;
  return absl::StrCat(session.endpoint(), ": ", cause);
}

std::vector<RailInfo> RailsOf(const SessionRails& rails) {
  std::vector<RailInfo> infos;
  if (!rails.all().several() && !rails.all().awaited()) return infos;
  for (uint32_t i = 0; i < rails.all().size(); ++i) {
    const SessionRails::Use use = rails.UseOf(i);
    const RailEntry& told = rails.all()[i].entry;
    infos.push_back({.address = rails.all()[i].address.ToString(),
                     .connected = use.connected,
                     .works = use.works,
                     .moves = use.moves,
                     .alternate_path = use.connected && use.armed,
                     .up = told.state != static_cast<uint8_t>(RailState::kDown),
                     .mtu_bytes = told.mtu_bytes,
                     .mbit_per_second = told.mbit_per_second,
                     .port = told.port_number,
                     .connections = told.connections});
  }
  return infos;
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
    if (session.down() && !MayPass(session.attempts().status())) return session.attempts().status();
    if (!session.down() || session.attempts().starting()) ++pending;
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
  maker_->Warn(why);
  for (const EngineServer& each : servers_) each.session->Break(absl::UnavailableError(why));
}

void ServerSet::OnSetChanged() {
  count_.store(size(), std::memory_order_relaxed);
  ++version_;
}

void ServerSet::Share(uint32_t share) {
  std::vector<EngineServer> same;
  for (EngineServer& server : servers_) {
    same.push_back(EngineServer(server.cache_bytes / share, server.requests.capacity(),
                                std::move(server.session)));
    same.back().touches = server.touches;
    same.back().near_cache = std::move(server.near_cache);
    if (same.back().near_cache != nullptr) same.back().near_cache->Share(share);
    same.back().locks = std::move(server.locks);
  }
  servers_ = std::move(same);
}

EngineServer ServerSet::Drop(uint32_t server) {
  GANNET_CHECK(size() > 1 && server < size(), "no server would be left");
  version_ += servers_[server].session->waits().fds_version();  // the sum must not come back
  EngineServer dropped = std::move(servers_[server]);
  std::vector<EngineServer> left;
  for (uint32_t i = 0; i < size(); ++i) {
    if (i != server) left.push_back(std::move(servers_[i]));
  }
  servers_ = std::move(left);
  for (uint32_t i = 0; i < size(); ++i) servers_[i].session->SetNumber(i);
  OnSetChanged();
  return dropped;
}

void ServerSet::SetRoutes(std::vector<Router::Server> servers, std::vector<Router::Route> routes) {
  for (uint32_t p = 0; p < routes.size(); ++p) {
    const uint32_t before = router_.has_routes() ? router_.RouteOf(p).changes : 0;
    if (routes[p].changes == before) continue;
    for (EngineServer& server : servers_) {
      if (server.cache.ForgetsAllAt(routes[p].changes)) server.cache.Clear();
    }
  }
  router_.SetRoutes(std::move(servers), std::move(routes));
  for (const EngineServer& each : servers_) each.session->SetServerSet(router_.set_hash());
}

// Where there are no routes, an operation stays with its server.
Router::Route ServerSet::RouteOf(const Op& op) const {
  if (router_.has_routes()) return router_.RouteOf(PartitionOf(op.key()));
  return {.server = static_cast<uint16_t>(op.request.server)};
}

void ServerSet::AimAt(Op& op, const Router::Route& route, EngineServer* server) {
  op.request.server = route.server;
  op.server = server;
  op.FindBuffers();
  op.HashKeyOf(route.changes);
}

EngineServer& ServerSet::waiting() {
  if (waiting_ == nullptr) waiting_ = maker_->MakeWaiting();
  return *waiting_;
}

void ServerSet::Aim(Op& op) {
  const Router::Route route = RouteOf(op);
  AimAt(op, route, route.served ? &servers_[route.server] : &waiting());
}

void ServerSet::AimAtWaiting(Op& op) { AimAt(op, RouteOf(op), &waiting()); }

// It is where the lock was acquired, even if the key is elsewhere now.
void ServerSet::AimAtLock(Op& op) {
  Router::Route route = RouteOf(op);
  for (uint32_t i = 0; i < size(); ++i) {
    const KeyHash hash = KeyHash::Of(op.key(), session(i).terms().view.hash_seed);
    if (servers_[i].locks.HasToRelease(hash, op.lock.word)) route.server = static_cast<uint16_t>(i);
  }
  AimAt(op, route, &servers_[route.server]);
}

void ServerSet::HashKey(Op& op) const {
  if (!router_.has_routes()) return op.HashKey();
  op.HashKeyOf(RouteOf(op).changes);
}

uint64_t ServerSet::OrderHash(const Op& op) {
  const Router::Route route = RouteOf(op);
  const EngineServer& server = route.served ? servers_[route.server] : waiting();
  return KeyHash::Of(op.key(), server.session->terms().view.hash_seed).value();
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
    if (!its.attempts().was_connected()) continue;
    const Grant& grant = its.grant();
    info.rails = RailsOf(its.rails());
    info.device = its.memory().first->device.name;
    info.kind = DeviceKindName(its.memory().first->device.kind);
    info.lock_mode =
        its.terms().read_only() ? std::string_view("none") : LockModeName(its.terms().lock_mode());
    info.authenticated = its.terms().authenticated;
    info.read_only = its.terms().read_only();
    info.incarnation = grant.incarnation;
    info.region_bytes = grant.region_bytes;
    const IndexView& view = its.terms().view;
    info.index_slots = (view.next.homes != 0 ? view.next : view.index).slots();  // the newest
    info.lock_words = grant.lock_words;
    info.protocol_version = grant.version;
    info.session_id = grant.session_id;
    info.read_depth = its.terms().read_depth;
    info.silence_ms = grant.silence_ms;
    info.history = grant.history;
    if (info.history != 0) info.epoch = EpochOfConnection(grant.connection_id);
    info.address = its.attempts().address().ToString();
    info.reads_disbelieved = its.lease().disbelieved();
    if (const NearCache* near_cache = servers_[i].near_cache.get()) {
      info.near_cache_answers = near_cache->answers();
      info.near_cache_items = near_cache->items();
      info.near_cache_reads = near_cache->reads();
      info.near_cache_over = near_cache->over();
    }
  }
  return infos;
}

uint32_t ServerSet::busy() const {
  uint32_t busy = waiting_ == nullptr ? 0 : waiting_->requests.size();
  for (const EngineServer& server : servers_) {
    busy += server.session->waits().busy() + server.ordered.size() + server.requests.size();
  }
  return busy;
}

}  // namespace gannet
