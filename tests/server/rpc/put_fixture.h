#ifndef GANNET_TESTS_SERVER_RPC_PUT_FIXTURE_H_
#define GANNET_TESTS_SERVER_RPC_PUT_FIXTURE_H_

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {

// The measured part: tools/figures/instructions collects while this is on the stack. It is all of a
// worker's Poll: the receives, the store, the post of the replies and the repost of the receives.
__attribute__((noinline)) inline void ServePuts(Worker& worker, const Now& now) {
  worker.Poll(now);
}

// A server whose worker the test polls, and PUTs of 64 B under keys of 16.
class PutTest : public ServerTest {
 protected:
  void Start(uint32_t connections_max, uint32_t item_lease_ms = 0) {
    StartServer([=](auto* options) {
      options->memory_bytes = 64 << 20;
      options->connections_max = connections_max;
      options->item_lease_ms = item_lease_ms;
    });
  }
  void Send(RawPeer& peer, const std::string& key) {
    RequestHeader header = peer.Header(Opcode::kPut);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value_.size());
    ASSERT_TRUE(peer.Send(header, key, value_));
  }
  static std::string Key(int i) {
    const std::string number = std::to_string(i);
    return std::string(16 - number.size(), 'k') + number;
  }

  const std::string value_ = std::string(64, 'v');
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_RPC_PUT_FIXTURE_H_
