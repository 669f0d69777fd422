#ifndef GANNET_COMMON_AUTH_HANDSHAKE_MAC_H_
#define GANNET_COMMON_AUTH_HANDSHAKE_MAC_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/auth/auth_key.h"
#include "common/protocol/connect.h"

namespace gannet {

// The message authentication codes of the handshake: HMAC-SHA-256 (RFC 2104), its first 16 bytes.
// docs/protocol.md says what they cover and why.
//
// `server` is the address that the client connects to (SocketAddress::NetworkBytes). It is covered,
// but not sent: a request that was recorded on its way to one server is of no use at another one.

// Fills in the request's key_id and mac. REQUIRES: its other fields are right already.
void SignRequest(const AuthKey& key, std::span<const std::byte> server, ConnectRequest* request);
// Returns true if somebody who has the key made the request, for this server.
bool VerifyRequest(const AuthKey& key, std::span<const std::byte> server,
                   const ConnectRequest& request);

// Fills in the grant's mac. REQUIRES: its other fields are right already.
void SignGrant(const AuthKey& key, const ConnectRequest& request, Grant* grant);
// Returns true if somebody who has the key made the grant, as the answer to this very request.
// `private_data` is the grant as it came; it may be longer, or no grant at all.
bool VerifyGrant(const AuthKey& key, const ConnectRequest& request,
                 std::span<const std::byte> private_data);

// Returns 64 bits that nobody can predict, for a request's nonce.
uint64_t UnpredictableNonce();

}  // namespace gannet

#endif  // GANNET_COMMON_AUTH_HANDSHAKE_MAC_H_
