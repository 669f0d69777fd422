#ifndef GANNET_CLIENT_SESSION_CONNECTION_MAKER_H_
#define GANNET_CLIENT_SESSION_CONNECTION_MAKER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/session/client_connections.h"
#include "client/session/session_memory.h"
#include "client/session/session_options.h"
#include "common/auth/auth_key.h"
#include "common/protocol/connect.h"
#include "common/rdma/address.h"

namespace gannet {

// Makes a session's connections, each in three steps, and the memory they need. One owner thread.
class ConnectionMaker {
 public:
  struct Dependencies {  // outlive this
    const SessionOptions* options;
    std::unique_ptr<SessionMemory>* memory;  // made with the first connection
    ClientConnections* connections;
  };

  explicit ConnectionMaker(const Dependencies& given) : given_(given) {}

  // Reads the key again, because it may have been changed since the last connection. If the file is
  // wrong now, the key stays as it was.
  void TakeKey();

  // 1. Begins to make a connection over this rail: the session's next one, or `over` anew, if that
  // is not null.
  absl::Status Start(const SocketAddress& to, uint32_t rail, int64_t deadline_ns,
                     ClientConnection* over = nullptr);
  // 2. The address is resolved, so the device is known: makes the queue pair, posts its receives,
  // and asks the server for a grant.
  absl::Status Configure(ClientConnection& connection);
  // 3. It is established. Returns the grant if it is the server's, and one that this client can
  // use.
  absl::StatusOr<Grant> TakeGrant(const ClientConnection& connection) const;

  // The session that the next connection resumes; 0: it makes a new one.
  uint64_t token() const { return token_; }
  void set_token(uint64_t token) { token_ = token; }
  // Returns whether the server must prove that it has this client's key.
  bool has_key() const { return key_.has_value(); }

 private:
  static constexpr uint32_t kSendWrs = 512;

  absl::StatusOr<SessionDevice*> DeviceOf(ibv_context* verbs, bool joins_by_rails);

  const Dependencies given_;
  std::optional<AuthKey> key_;  // of the first connection and those that join it
  uint64_t token_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CONNECTION_MAKER_H_
