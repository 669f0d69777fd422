#ifndef GANNET_CLIENT_SESSION_CLIENT_NEWS_H_
#define GANNET_CLIENT_SESSION_CLIENT_NEWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "client/session/client_connection.h"
#include "client/session/touch_log.h"
#include "client/session/usage_log.h"
#include "common/protocol/connect.h"

namespace gannet {

// What a client tells its server of one-sided READs, which the server does not see: touches and
// reports. They ride on heartbeats of the first connection. Touches go out with the heartbeat that
// is due, or before it if there are many; a report when it is due. One buffer holds them, which is
// in use until the server answered. So a slow server is told less.
//
// One owner thread.
class ClientNews {
 public:
  TouchLog& touches() { return touches_; }
  UsageLog& usage() { return usage_; }
  const UsageLog& usage() const { return usage_; }

  // A connection was made. Reports go out at most every `period_ns`.
  void Restart(const Grant& grant, int64_t now_ns, int64_t period_ns);
  // Returns whether there is something to send now.
  bool CanSend(const ClientConnection& first, int64_t now_ns) const;
  // Makes a heartbeat with news in `message`, from the header of one without. Returns its bytes.
  // REQUIRES: CanSend; `message` has room for kMessageBytesMax.
  uint32_t Take(int64_t now_ns, std::span<ClientConnection> connections, RequestHeader heartbeat,
                std::span<std::byte> message);
  // That was sent as the heartbeat of this number.
  void OnSent(uint32_t heartbeat) { heartbeat_ = heartbeat; }

 private:
  TouchLog touches_;
  UsageLog usage_;
  uint32_t heartbeat_ = 0;  // the number of the one that uses the buffer; 0 = none
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CLIENT_NEWS_H_
