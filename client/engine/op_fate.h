#ifndef GANNET_CLIENT_ENGINE_OP_FATE_H_
#define GANNET_CLIENT_ENGINE_OP_FATE_H_

#include <cstdint>

#include "client/engine/op.h"
#include "client/engine/outcome.h"

namespace gannet {

// What an operation counted on and lost.
enum class Loss : uint8_t {
  kConnection,      // to its server. Nothing of it is in flight any more, and its locks are lost
  kOnlyConnection,  // the same, but the server may keep the session's locks
  kSession,         // the server forgot it, and with it the request that was sent
  kStore,           // another run of the server answers, which has other items
  kPlace,           // its key's partition moved, or may have (op_rerouting.h)
  kServer,          // another server has the key, as one has another name than was assumed
  kTime,            // its deadline is over
};

// Whether an operation's server can be asked.
enum class ServerReach : uint8_t {
  kReady,
  kAway,  // not connected; the session tries to
  kDown,  // cannot be reached (ClientSession::down)
};
inline ServerReach ReachOf(const ClientSession& session) {
  if (session.ready()) return ServerReach::kReady;
  return session.down() ? ServerReach::kDown : ServerReach::kAway;
}

// Returns how an operation ends whose time is over, if nothing can have changed by it.
inline Outcome LateOutcome(ServerReach reach) {
  return reach == ServerReach::kReady ? Outcome::kDeadlineExceeded : Outcome::kUnavailable;
}

// What becomes of an operation.
enum class Fate : uint8_t {
  kGoesOn,       // as it is. It may be over
  kWaits,        // it begins again when its session is ready
  kBeginsAnew,   // with its key's server
  kIsAimed,      // at its key's server; it goes on waiting
  kIsQueued,     // its request is queued at its key's server
  kReadsOut,     // it begins anew when its READs are done
  kMayHoldBack,  // a write that was sent behind one that was put off waits for that
  kLingers,      // it ends when no device uses its caller's memory any more
  kEnds,
};

// What an operation that ends still has to do about a lock. In all cases its request is taken out
// of the queue, or its answer is ignored, unless that is needed for this.
enum class Owes : uint8_t {
  kNothing,
  kAnswer,   // its request may take the lock: whoever gets the answer gives the lock back
  kRelease,  // it has the lock and gives it back, because nobody else will
  kUnlock,   // it was to release the lock, and goes on to
};

struct OpVerdict {
  Fate fate = Fate::kGoesOn;
  // If it ends:
  Outcome outcome = Outcome::kOk;
  Owes owes = Owes::kNothing;

  bool operator==(const OpVerdict&) const = default;
};

// Decides what becomes of an operation that suffers a loss. The only place that does; who notices
// the loss has OpRerouting::Apply do it.
//
//                  kConnection       kPlace          kTime              else
//   kFresh         -                 is aimed        -                  -
//   kHeldBack      goes on           is aimed        ends               ends (2)
//   kWaiting       goes on           begins anew     ends               ends (2)
//   kStarved       waits             begins anew (3) ends               -
//   reads          waits             reads out (3)   ends, lingers (4)  -
//   kOutOfDate     begins anew       -               ends, lingers (4)  -
//   kLocking       ends              ends            ends               -
//   kUnlocking     ends: lock lost   -               ends, and unlocks  -
//   kPausing and
//   kRequestQueued goes on (1)       is queued (5)   ends               ends (2)
//   kRequestSent   goes on           -               ends, lingers (4)  kSession: waits or ends
//
// By kOnlyConnection as by kConnection, but what releases or extends a lock is sent again on the
// next connection, and who ends without a lock that it may have taken owes its release.
//
// 1. What takes a lock, or needs one that it has, ends with the connection. So does everything, if
//    the server cannot be reached.
// 2. By kServer, and writes by kStore. The caller of kServer leaves out what follows no key.
// 3. Who takes a lock ends. What READs nothing just now begins anew at once.
// 4. It lingers if the device or the server may still use the caller's memory.
// 5. A read begins anew.
OpVerdict FateOf(const Op& op, Loss loss, ServerReach reach);

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_FATE_H_
