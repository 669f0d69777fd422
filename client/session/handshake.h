#ifndef GANNET_CLIENT_SESSION_HANDSHAKE_H_
#define GANNET_CLIENT_SESSION_HANDSHAKE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/connect.h"

namespace gannet {

// The client's side of the handshake, as pure functions.

// Token 0 creates a session; any other joins or resumes it.
ConnectRequest MakeConnectRequest(uint64_t session_token, uint16_t qp_index, uint64_t nonce,
                                  uint64_t wall_ms);

// The grant in the private data of an accept, checked for what this client depends on. The Status
// names `endpoint` and says what is wrong with the server.
absl::StatusOr<Grant> CheckGrant(std::span<const std::byte> private_data,
                                 std::string_view endpoint);

// Why a server refused, for the user. `transport` is what the connection attempt itself said (it
// names the local device); the server's own words, where it sent any, go in front. `code` gets the
// server's code, 0 when there was none.
//
// Unavailable: worth another try (starting, shutting down, too many connections, nobody listens).
// Unimplemented: no protocol version in common. PermissionDenied: authentication.
absl::Status RefusalStatus(std::span<const std::byte> private_data, std::string_view endpoint,
                           const absl::Status& transport, RejectCode* code);

// "nic", "rpc-loopback" or "rpc-server".
std::string_view LockModeName(LockMode mode);

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_HANDSHAKE_H_
