#ifndef GANNET_TESTS_COMMON_AUTH_EXAMPLE_HANDSHAKE_H_
#define GANNET_TESTS_COMMON_AUTH_EXAMPLE_HANDSHAKE_H_

#include <cstddef>
#include <span>
#include <string>

#include "common/auth/handshake_mac.h"
#include "common/rdma/address.h"
#include "tests/common/protocol/example_handshake.h"

namespace gannet {

// The authenticated handshake of docs/protocol-handshake.md.

inline AuthKey ExampleKey() {
  AuthKey key{.id = 7};
  for (char byte = 0; byte < 32; ++byte) key.secret.push_back(byte);
  return key;
}

inline SocketAddress ExampleServer() { return Resolve("10.0.0.1:7471", 0).value(); }

inline ConnectRequest ExampleRequest() {
  ConnectRequest request = PlainExampleRequest();
  SignRequest(ExampleKey(), ExampleServer().NetworkBytes(), &request);
  return request;
}

inline Grant ExampleGrant() {
  Grant grant = PlainExampleGrant();
  SignGrant(ExampleKey(), ExampleRequest(), &grant);
  return grant;
}

template <class T>
std::span<const std::byte> BytesOf(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_AUTH_EXAMPLE_HANDSHAKE_H_
