#ifndef GANNET_CLIENT_SESSION_SESSION_OWNER_H_
#define GANNET_CLIENT_SESSION_SESSION_OWNER_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "client/session/in_flight_work.h"
#include "client/session/request_window.h"
#include "common/protocol/message.h"

namespace gannet {

// How a session came back after its connections broke.
enum class Comeback : uint8_t {
  kFirst,       // it is the first connection
  kResumed,     // the server knew the session: unanswered requests were sent again
  kNewSession,  // the same server run, but it forgot the session: their outcome is unknown
  // The server was started again, with other memory. As after kNewSession, the outcome of
  // unanswered requests is unknown. Locations that the client remembers are wrong.
  kNewIncarnation,
  // Another member of the group answers. It has the same items in other memory, so the client's
  // locations are wrong. If it knows the session, unanswered requests were sent again. Otherwise
  // their outcome is unknown.
  kFailedOver,
};

// What a ClientSession tells its owner. A session calls these only from within a call of its owner:
// OnDoorbell when the owner queues something, the others from Poll.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  // A READ or a compare-and-swap of `op` is the first work request of a chain, which costs one
  // doorbell. OnReply says what a request cost.
  virtual void OnDoorbell(uint32_t op) = 0;
  // These work requests are done, oldest first. If `signaled`, the last one had a completion of its
  // own. The owner may queue READs meanwhile.
  virtual void OnWorksDone(uint32_t session, std::span<const InFlightWork::Work> works,
                           bool signaled) = 0;
  // The answer to a request that `answered->op` waits for, and what the request cost. The owner may
  // take `answered->reply`. The session returns what is left to its pool.
  virtual void OnReply(RequestWindow::Entry* answered, const ReplyView& reply) = 0;
  // A connection is being made, and the server calls itself `name` (empty: it has no name). If the
  // owner returns an error, the session gives up the connection for that reason. Otherwise OnReady
  // follows.
  virtual absl::Status OnNamed(uint32_t session, std::string_view name) = 0;
  // The session is connected. The answers to the requests of the operations in `abandoned` will
  // never be known; there are none after kFirst and kResumed.
  virtual void OnReady(uint32_t session, Comeback comeback,
                       std::span<const uint32_t> abandoned) = 0;
  // The connections are gone and flushed: the NIC touches no memory of READs and compare-and-swaps
  // any more, and none of them will be reported. Locks are lost, unless
  // terms().may_keep_locks. Unanswered requests stay. Also
  // called after each failed attempt to connect while the session is down().
  virtual void OnLost(uint32_t session) = 0;
  // The answer to ClientSession::AskForMap.
  virtual void OnMapReply(uint32_t /*session*/, const ReplyView& /*reply*/) {}
  // The server has a lease, but none for the owner's map, which is older
  // (ClientSession::SetMapRevision).
  virtual void OnOldMap(uint32_t /*session*/) {}
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_OWNER_H_
