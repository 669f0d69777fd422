#ifndef GANNET_CLIENT_SESSION_REQUEST_RAILS_H_
#define GANNET_CLIENT_SESSION_REQUEST_RAILS_H_

#include <array>
#include <cstdint>

#include "client/session/client_connections.h"
#include "client/session/request_window.h"
#include "client/session/session_memory.h"
#include "common/protocol/message.h"
#include "common/protocol/rails_reply.h"

namespace gannet {

// Which connection carries a request if the server has several rails, and which of them carried
// those that are unanswered. Each rail has one connection for requests: the first one made that
// lives. One owner thread.
//
// A request goes by the connection with the least load: bytes of unanswered requests, with those
// that the server READs or WRITEs for them. It stays with the last one unless another has clearly
// less, so that small requests share doorbells. Requests about locks go by the first connection,
// which holds them.
class RequestRails {
 public:
  // No connection has this index.
  static constexpr uint32_t kNowhere = UINT32_MAX;

  // How an unanswered request was sent.
  struct Sent {
    uint64_t sequence = 0;
    uint64_t load = 0;
    uint32_t connection = kNowhere;  // its index
    uint32_t position = 0;           // of the SEND, among its work requests
    uint32_t domain = 0;             // whose keys it names
    // Nobody waits for it, and this connection told the server so.
    uint32_t told_by = kNowhere;
    uint32_t answers = 0;       // since then
    bool server_knows = false;  // one of them said that it will not be executed any more
  };

  explicit RequestRails(ClientConnections* connections) : connections_(*connections) {}

  // There is one connection: all requests go by it.
  void Restart() {
    several_ = false;
    last_ = 0;
  }
  // The server takes requests by all rails.
  void Use() { several_ = true; }
  bool several() const { return several_; }

  // Returns the connection for a request; nullptr: none has room. `to_first`: it has to go by the
  // first one.
  ClientConnection* Choose(const RequestHeader& header, bool to_first, const RequestWindow& window);
  // Returns a connection for requests other than that one, with room; nullptr: there is none.
  ClientConnection* Other(uint32_t connection);
  // The request will be the next one that is posted to `to`.
  void OnSent(uint32_t place, uint64_t sequence, const RequestHeader& header,
              const ClientConnection& to);
  // Returns how the request was sent; nullptr if it was not, since several rails are used. `place`:
  // in the window.
  Sent* Find(uint32_t place, uint64_t sequence) {
    Sent& sent = sent_[place];
    return sent.sequence == sequence ? &sent : nullptr;
  }
  void Forget() { sent_.fill({}); }
  // An answer came to a request that nobody waits for. Returns whether it is over, and its buffers
  // may be used again. If not, `sent.connection` may be kNowhere now: something else is to be sent
  // for it.
  static bool EndsBy(const ReplyHeader& answer, Sent& sent);
  // Returns whether its device has sent it.
  bool WasSent(const Sent& sent) const {
    return connections_[sent.connection].work.IsDone(sent.position + 1);
  }
  // Returns what stands for a request that was given up.
  static RequestHeader GivenUp(RailsAsk ask, uint64_t sequence);
  // What the device of a connection has to do for the request: bytes of it, and of its value.
  static uint64_t LoadOf(const RequestHeader& header);
  static bool IsOfLock(const RequestHeader& header);

 private:
  // So much less load is worth another doorbell.
  static constexpr uint64_t kClearly = kMessageBytesMax;

  ClientConnections& connections_;
  bool several_ = false;
  uint32_t last_ = 0;  // the connection that was chosen
  std::array<Sent, RequestWindow::kCreditsMax> sent_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_REQUEST_RAILS_H_
