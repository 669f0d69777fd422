#ifndef GANNET_COMMON_AUTH_HANDSHAKE_H_
#define GANNET_COMMON_AUTH_HANDSHAKE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/auth/auth_key.h"
#include "common/base/clocks.h"
#include "common/protocol/connect.h"

namespace gannet {

// The side of the handshake that connects, as functions without state.

// Token 0 asks for a new session, any other token joins or resumes the session it names.
ConnectRequest MakeConnectRequest(uint64_t session_token, uint16_t qp_index, uint64_t nonce,
                                  WallTime now);

// Proves that this client has the key: fills in key_id and mac, and a nonce that was never used.
// `server` is the address that it connects to (SocketAddress::NetworkBytes). Without a key, does
// nothing.
void AuthenticateRequest(const std::optional<AuthKey>& key, std::span<const std::byte> server,
                         ConnectRequest* request);

// PermissionDenied: the grant in the private data was not made for this request by somebody who has
// the key. Then nothing in it may be believed. Without a key, everything is.
absl::Status CheckGrantMac(std::span<const std::byte> private_data, std::string_view endpoint,
                           const std::optional<AuthKey>& key, const ConnectRequest& request);

// Decodes the grant in the private data of an accept, and checks what this client depends on. The
// Status names `endpoint` and says what is wrong with the server.
absl::StatusOr<Grant> CheckGrant(std::span<const std::byte> private_data,
                                 std::string_view endpoint);

// Both: returns the grant that a server answered to this request.
absl::StatusOr<Grant> TakeGrant(std::span<const std::byte> private_data, std::string_view endpoint,
                                const std::optional<AuthKey>& key, const ConnectRequest& request);

// Returns why a server refused, for the user: the server's reason, or `transport`, the error of the
// connection attempt, if the server sent none. Sets `code` to the server's code, or to 0.
//
// Unavailable: worth another try (starting, shutting down, too many connections, nobody listens).
// Unimplemented: no protocol version in common. PermissionDenied: authentication failed.
//
// A refusal proves nothing, because everybody can send one. So it may end calls and delay the next
// attempt, but must never make a client do without authentication.
absl::Status RefusalStatus(std::span<const std::byte> private_data, std::string_view endpoint,
                           const absl::Status& transport, RejectCode* code);

// Returns "nic", "rpc-loopback" or "rpc-server".
std::string_view LockModeName(LockMode mode);

}  // namespace gannet

#endif  // GANNET_COMMON_AUTH_HANDSHAKE_H_
