#ifndef GANNET_CLIENT_ENGINE_SERVER_SET_H_
#define GANNET_CLIENT_ENGINE_SERVER_SET_H_

#include <gannet/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/engine/engine_server.h"
#include "client/engine/outcome.h"
#include "client/routing/router.h"

namespace gannet {

// The servers of an Engine as a whole: which server has which key, whether the client can start,
// and what to wait for while it sleeps. One owner thread.
class ServerSet {
 public:
  using Log = std::function<void(LogLevel, std::string_view)>;

  ServerSet(Router router, Log log) : router_(std::move(router)), log_(std::move(log)) {}

  // Adds the router's next server. REQUIRES: all are added before anything else is called.
  void Add(EngineServer server) { servers_.push_back(std::move(server)); }

  uint32_t size() const { return static_cast<uint32_t>(servers_.size()); }
  EngineServer& operator[](uint32_t server) { return servers_[server]; }
  auto begin() { return servers_.begin(); }
  auto end() { return servers_.end(); }
  const ClientSession& session(uint32_t server) const { return *servers_[server].session; }
  // See ClientSession.
  void LearnMembers(uint32_t server, const std::vector<std::string>& members) {
    servers_[server].session->LearnMembers(members);
  }

  // Returns the number of the server that has `key`. REQUIRES: routing_status() is OK.
  uint32_t ServerOf(std::string_view key) const { return router_.ServerOf(key); }
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
  // Returns how an operation for this server ends if its time is over before it was sent.
  Outcome LateOutcome(uint32_t server) const { return servers_[server].LateOutcome(); }

  // To sleep (wake_fd.h does it): Arm, Poll once more, wait until a descriptor is readable or
  // Engine::IdleNs is over. Calls use(server, descriptor, kind) for each descriptor.
  void ForEachFd(const std::function<void(uint32_t, int, FdKind)>& use) const;
  // Changes whenever the set of descriptors changes.
  uint64_t fds_version() const;
  // Something is queued, or a session expects completions.
  bool ExpectsCompletions() const;
  void Arm();
  void OnReadable(uint32_t server, FdKind kind);
  // How long Poll may be put off, as far as the sessions are concerned.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits) const;
  // A connection is being made or taken down; only the descriptors tell when to go on.
  bool in_motion() const;
  // The last Poll found completions. The next one may find those of the READs that it posted.
  bool progressed() const;
  // A request waits for a buffer that an operation gives back when it is released.
  bool wants_buffer() const;

  // For tests: what is queued, unanswered or lent.
  uint32_t busy() const;
  // For tests: breaks the connections to a server, as a failure would.
  void Break(uint32_t server, absl::Status why) { servers_[server].session->Break(std::move(why)); }

 private:
  Router router_;
  const Log log_;
  bool started_ = false;  // StartStatus was OK
  std::vector<EngineServer> servers_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_SERVER_SET_H_
