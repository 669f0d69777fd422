#ifndef GANNET_CLIENT_SESSION_SESSION_WAITS_H_
#define GANNET_CLIENT_SESSION_SESSION_WAITS_H_

#include <cstdint>
#include <memory>

#include "client/session/client_connections.h"
#include "client/session/connect_attempts.h"
#include "client/session/joining_connections.h"
#include "client/session/primary_lease_watch.h"
#include "client/session/session_completions.h"
#include "client/session/session_memory.h"
#include "client/session/session_phase.h"
#include "client/session/session_requests.h"
#include "client/session/session_sends.h"
#include "common/base/clock.h"

namespace gannet {

// What a descriptor of a session tells.
enum class FdKind : uint8_t { kConnection, kCompletions };

// What a session waits for, and how its owner sleeps meanwhile: Arm, Poll once more, wait until a
// descriptor is readable or IdleNs is over. Knows when the session looks at its control path next,
// which costs a system call for each connection. One owner thread.
class SessionWaits {
 public:
  struct Dependencies {  // outlive this
    SessionPhase* phase;
    const ConnectAttempts* attempts;
    const std::unique_ptr<SessionMemory>* memory;
    ClientConnections* connections;
    const PrimaryLeaseWatch* lease;
    const SessionSends* sends;
    const SessionRequests* requests;
    const SessionCompletions* completions;
    const JoiningConnections* joining;
  };

  explicit SessionWaits(const Dependencies& given) : given_(given) {}

  // Makes the next Poll look at the connections, even if the last one did so a moment ago.
  void LookAtConnections() { next_control_ns_ = 0; }
  // Returns whether the control path is to be looked at now. OnControl: it is.
  bool ControlDue(int64_t now_ns) const { return now_ns >= next_control_ns_; }
  void OnControl(int64_t now_ns) { next_control_ns_ = now_ns + kControlNs; }

  // Calls use(descriptor, kind) for each:
  //   kConnection: one for each connection, readable while the connection manager has an event;
  //   kCompletions: one for each device, readable from an event of the armed completion queue until
  //   TakeEvents.
  template <class F>
  void ForEachFd(F use) const {
    for (const ClientConnection& it : *given_.connections)
      use(it.connector->fd(), FdKind::kConnection);
    if (*given_.memory == nullptr) return;
    for (const auto& it : (*given_.memory)->devices) {
      if (!it->lost) use(it->completions->fd(), FdKind::kCompletions);
    }
  }
  // Changes whenever the set of descriptors changes.
  uint64_t fds_version() const {
    uint64_t version = given_.connections->version();
    if (*given_.memory == nullptr) return version;
    for (const auto& it : (*given_.memory)->devices) version += it->lost ? 2 : 1;
    return version;
  }
  // May break the connections.
  void Arm();
  void TakeEvents() {
    for (const auto& it : (*given_.memory)->devices) {
      if (!it->lost) it->completions->TakeEvent();
    }
  }
  // How long Poll may be put off after `now_ns` if no descriptor becomes readable: until something
  // is due. 0: there is something to post or to read now. If nobody waits, a dead server may be
  // noticed later.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits) const;

  // Returns true if a request, a heartbeat or a READ is unanswered, or a connection is being made
  // or closed.
  bool ExpectsCompletions() const;
  // Its descriptors tell when to go on: it connects, drains, or makes one connection more.
  bool in_motion() const;
  // Returns whether operations are under way.
  bool HasWork() const;
  // Whether the last Poll found completions of READs, compare-and-swaps or requests.
  bool progressed() const { return given_.phase->ready() && given_.completions->completed() > 0; }
  // For tests: what is queued, unanswered or lent. 0 unless something is under way or leaks.
  uint32_t busy() const;

 private:
  static constexpr int64_t kControlNs = 2 * kNsPerMs;     // how often the control path is looked at
  static constexpr int64_t kDrainLookNs = 10 * kNsPerMs;  // how often draining is looked at

  int64_t ReadyIdleNs(int64_t now_ns, bool somebody_waits) const;

  const Dependencies given_;
  int64_t next_control_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_WAITS_H_
