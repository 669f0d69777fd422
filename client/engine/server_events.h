#ifndef GANNET_CLIENT_ENGINE_SERVER_EVENTS_H_
#define GANNET_CLIENT_ENGINE_SERVER_EVENTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "client/engine/server_set.h"

namespace gannet {

// What a client waits for while it sleeps, of all its servers. To sleep (wake_fd.h does it): Arm,
// Poll once more, wait until a descriptor is readable or Engine::IdleNs is over.
//
// One owner thread, the engine's. Refers to the set.
class ServerEvents {
 public:
  explicit ServerEvents(const ServerSet& servers) : servers_(servers) {}

  // Calls use(server, descriptor, kind) for each descriptor.
  void ForEachFd(absl::FunctionRef<void(uint32_t, int, FdKind)> use) const;
  // Changes whenever the set of descriptors changes.
  uint64_t fds_version() const;
  void Arm() const;
  void OnReadable(uint32_t server, FdKind kind) const;

  // Something is queued, or a session expects completions.
  bool ExpectsCompletions() const;
  // How long Poll may be put off, as far as the sessions are concerned.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits) const;
  // A connection is being made or taken down; only the descriptors tell when to go on.
  bool in_motion() const;
  // The last Poll found completions. The next one may find those of the READs that it posted.
  bool progressed() const;
  // A request waits for a buffer that an operation gives back when it is released.
  bool wants_buffer() const;

 private:
  const ServerSet& servers_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_SERVER_EVENTS_H_
