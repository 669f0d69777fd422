#ifndef GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_HANDSHAKE_H_
#define GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_HANDSHAKE_H_

#include "common/protocol/connect.h"
#include "common/protocol/message.h"

namespace gannet {

// The handshake of the worked example in docs/protocol-handshake.md, without macs.

inline ConnectRequest PlainExampleRequest() {
  ConnectRequest request = NewConnectRequest();
  request.nonce = 0x243f6a8885a308d3;
  request.time_ms = 1763650000000;
  return request;
}

inline constexpr uint64_t kExampleRegionAddress = 0x7f5a00000000;

inline Grant PlainExampleGrant() {
  Grant grant = NewGrant();
  grant.incarnation = 0x9e3779b97f4a7c15;
  grant.region_address = kExampleRegionAddress;
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
  return grant;
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_HANDSHAKE_H_
