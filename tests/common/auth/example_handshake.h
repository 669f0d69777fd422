#ifndef GANNET_TESTS_COMMON_AUTH_EXAMPLE_HANDSHAKE_H_
#define GANNET_TESTS_COMMON_AUTH_EXAMPLE_HANDSHAKE_H_

#include <cstddef>
#include <span>
#include <string>

#include "common/auth/handshake_mac.h"
#include "common/protocol/message.h"
#include "common/rdma/address.h"

namespace gannet {

// The authenticated handshake of docs/protocol.md.

inline AuthKey ExampleKey() {
  AuthKey key{.id = 7};
  for (char byte = 0; byte < 32; ++byte) key.secret.push_back(byte);
  return key;
}

inline SocketAddress ExampleServer() { return Resolve("10.0.0.1:7471", 0).value(); }

inline ConnectRequest ExampleRequest() {
  ConnectRequest request = NewConnectRequest();
  request.nonce = 0x243f6a8885a308d3;
  request.time_ms = 1763650000000;
  SignRequest(ExampleKey(), ExampleServer().NetworkBytes(), &request);
  return request;
}

// The grant of the example without authentication, with a mac.
inline Grant ExampleGrant() {
  Grant grant = NewGrant();
  grant.incarnation = 0x9e3779b97f4a7c15;
  grant.region_address = 0x7f5a00000000;
  grant.region_bytes = 1 << 30;
  grant.lock_address = 0x7f5a80000000;
  grant.region_rkey = 0x1001;
  grant.lock_rkey = 0x1002;
  grant.lock_words = 65536;
  grant.connection_id = 1;
  grant.session_token = 0x13198a2e03707344;
  grant.session_id = 1;
  grant.hash_seed = 0xa4093822299f31d0;
  grant.index = {.generation = 1, .offset = 4096, .homes = 102400, .stash_homes = 2048};
  grant.message_bytes_max = kMessageBytesMax;
  grant.value_bytes_max = kValueBytesMax;
  grant.credits = 32;
  grant.lock_mode = static_cast<uint8_t>(LockMode::kNicCas);
  grant.time_ms = 1763650000000;
  SetName(&grant, "cache-1");
  SignGrant(ExampleKey(), ExampleRequest(), &grant);
  return grant;
}

template <class T>
std::span<const std::byte> BytesOf(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_AUTH_EXAMPLE_HANDSHAKE_H_
