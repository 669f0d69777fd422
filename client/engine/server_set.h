#ifndef GANNET_CLIENT_ENGINE_SERVER_SET_H_
#define GANNET_CLIENT_ENGINE_SERVER_SET_H_

#include <gannet/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/engine/engine_server.h"
#include "client/routing/router.h"

namespace gannet {

struct Op;

class ServerMaker;

// The servers of an Engine as a whole: which server has which key, and whether the client can
// start. ServerEvents tells what to wait for while it sleeps.
//
// The servers of a cluster are its groups. They change at run time, and with them the addresses of
// all EngineServers; a server's number changes if one before it is dropped (MapFollower does both).
//
// One owner thread, but for count().
class ServerSet {
 public:
  // `maker` makes waiting(), when it is needed, and outlives this.
  ServerSet(Router router, const ServerMaker* maker) : router_(std::move(router)), maker_(maker) {}

  // Adds the router's next server. If it has routes, SetRoutes follows.
  void Add(EngineServer server) {
    servers_.push_back(std::move(server));
    OnSetChanged();
  }
  // The servers share the memory for what is remembered of items from now on: each of them has a
  // `share`th of it. REQUIRES: nothing is remembered or queued.
  void Share(uint32_t share);
  // Removes a server and returns it. SetRoutes follows. Its session ends with it, which may take
  // seconds, unless that ended before (ClientSession::BeginEnd). REQUIRES: no operation is alive;
  // there is another server.
  EngineServer Drop(uint32_t server);
  // The servers are the groups of a cluster, and have these routes (Router).
  void SetRoutes(std::vector<Router::Server> servers, std::vector<Router::Route> routes);
  const Router& router() const { return router_; }
  // Returns what takes the place of the server of an operation whose key nobody serves now, or that
  // was refused: its session is never ready, so all waits.
  EngineServer& waiting();
  const EngineServer* waiting_or_null() const { return waiting_.get(); }

  uint32_t size() const { return static_cast<uint32_t>(servers_.size()); }
  // Returns the number of servers. For other threads: it may have changed already.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  EngineServer& operator[](uint32_t server) { return servers_[server]; }
  auto begin() { return servers_.begin(); }
  auto end() { return servers_.end(); }
  const ClientSession& session(uint32_t server) const { return *servers_[server].session; }
  // See ClientSession.
  void LearnMembers(uint32_t server, const std::vector<std::string>& members, bool only) {
    servers_[server].session->first().attempts().LearnMembers(members, only);
  }

  void AskForMap(uint32_t server, uint64_t position) {
    servers_[server].session->AskForMap(position);
  }
  // What was READ of leases on items goes before a session may have a lease for the new map.
  void SetMapRevision(uint64_t revision) {
    for (const EngineServer& server : servers_) {
      if (server.near_cache != nullptr) server.near_cache->DropLeases();
      server.session->SetMapRevision(revision);
    }
  }

  // Returns the number of the server that has `key`. REQUIRES: routing_status() is OK.
  uint32_t ServerOf(std::string_view key) const { return router_.ServerOf(key); }
  // Returns whether somebody serves `key`, and it is known who.
  bool Serves(std::string_view key) const {
    return !router_.has_routes() || router_.RouteOf(PartitionOf(key)).served;
  }
  // There is one server, which has all keys.
  bool one() const { return router_.one(); }
  // Gives an operation with a key the server that has the key, and finds all that depends on it. If
  // nobody serves the key now, that is waiting().
  void Aim(Op& op);
  // Aims an operation that is to wait in any case.
  void AimAtWaiting(Op& op);
  // Gives an operation about a lock the server where this client has that lock, if there is one.
  void AimAtLock(Op& op);
  // Finds what depends on the hash of the operation's key, for its server.
  void HashKey(Op& op) const;
  // Returns the hash by which KeyOrder knows the key of an operation: that of operations that begin
  // now.
  uint64_t OrderHash(const Op& op);
  // OK, or why keys cannot be routed.
  const absl::Status& routing_status() const { return router_.status(); }

  // Returns whether the client can start: at least one server is connected, every other one is
  // connected or cannot be reached, and it is known which server has which key. nullopt: not yet,
  // call it again after a Poll. An error says why the client cannot start. With `last_call` it does
  // not wait any longer.
  std::optional<absl::Status> StartStatus(bool last_call);
  // Takes note that a server calls itself `name`. Returns true if keys that the client may have
  // used changed their servers. An error if the name does not fit; then nothing has changed.
  absl::StatusOr<bool> OnNamed(uint32_t server, std::string_view name);
  // Logs that keys changed their servers, and breaks all connections. Unlocks follow their keys, so
  // they would not find the locks that are held elsewhere now. Those end with the connections.
  void OnKeysMoved(uint32_t server);

  std::vector<ServerInfo> Info() const;

  // All of them, and a number that changes whenever there are others.
  std::span<const EngineServer> all() const { return servers_; }
  uint64_t version() const { return version_; }

  // For tests: what is queued, unanswered or lent.
  uint32_t busy() const;
  // For tests: breaks the connections to a server, as a failure would.
  void Break(uint32_t server, absl::Status why) { servers_[server].session->Break(std::move(why)); }

 private:
  void OnSetChanged();
  Router::Route RouteOf(const Op& op) const;
  static void AimAt(Op& op, const Router::Route& route, EngineServer* server);

  Router router_;
  bool started_ = false;  // StartStatus was OK
  std::vector<EngineServer> servers_;
  const ServerMaker* const maker_;
  std::unique_ptr<EngineServer> waiting_;  // null as long as nothing had to wait
  std::atomic<uint32_t> count_ = 0;
  uint64_t version_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_SERVER_SET_H_
