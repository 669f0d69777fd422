#ifndef TESTS_SERVER_RPC_RAILS_FIXTURE_H_
#define TESTS_SERVER_RPC_RAILS_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/hash.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/protocol/rails_reply.h"
#include "gtest/gtest.h"
#include "server/rpc/rail.h"
#include "softverbs/control.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {

inline constexpr char kKey[] = "key";
inline constexpr uint32_t kLarge = 1 << 20;

// A server on two devices, a rail on each.
class RailsTest : public ServerTest {
 protected:
  void TearDown() override {
    softverbs_set_port(1, 1);
    ServerTest::TearDown();
  }
  void SetUp() override {
    // ctest sets SOFTVERBS_DEVICES=2.
    ASSERT_EQ(TestDevice().name, "softverbs0");
    auto second = OpenDevice("softverbs1");
    ASSERT_TRUE(second.ok()) << second.status();
    second_ = *second;
  }
  void Start(const std::function<void(Server::Options*)>& change = nullptr) {
    StartServer([&](Server::Options* options) {
      options->more_rails = {*Resolve("127.0.1.1:0", 0)};
      if (change) change(options);
    });
  }

  // A peer of the rail of this number.
  std::unique_ptr<RawPeer> PeerOf(uint32_t rail) {
    const Rail& to = server().context().rails[rail];
    return std::make_unique<RawPeer>(this, rail == 0 ? TestDevice() : second_, to.address);
  }
  std::unique_ptr<RawPeer> ConnectedOf(uint32_t rail) {
    auto peer = PeerOf(rail);
    EXPECT_TRUE(peer->Connect());
    return peer;
  }

  static RequestHeader InBuffer(RawPeer* peer, Opcode opcode, uint32_t bytes) {
    RequestHeader header = peer->Header(opcode, kValueInBuffer);
    header.key_bytes = sizeof(kKey) - 1;
    if (opcode == Opcode::kPut) {
      header.value_bytes = bytes;
      header.write.buffer_address = peer->lent().address();
      header.write.buffer_rkey = peer->lent().rkey();
    } else {
      header.get = {.buffer_address = peer->lent().address(),
                    .buffer_rkey = peer->lent().rkey(),
                    .buffer_bytes = bytes};
    }
    return header;
  }
  static void Fill(RawPeer* peer, uint32_t bytes, uint64_t seed) {
    for (uint32_t i = 0; i < bytes; ++i)
      peer->lent().data()[i] = static_cast<std::byte>(Mix64(seed + i));
  }
  static KeyHash HashOf(const RawPeer& peer) { return KeyHash::Of(kKey, peer.grant().hash_seed); }
  static uint64_t WordOf(const RawPeer& peer) {
    return LockWord::Of(peer.grant().connection_id, 1, HashOf(peer).LockTag()).word();
  }
  static ReplyHeader CallLock(RawPeer* peer, Opcode opcode) {
    RequestHeader header = peer->Header(opcode);
    header.key_bytes = sizeof(kKey) - 1;
    header.lock.lock_word = WordOf(*peer);
    const auto reply = peer->Call(header, kKey);
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(RawPeer::Reply{}).header;
  }

  static RailsReply Ask(RawPeer* peer) {
    const auto reply = peer->Call(peer->Header(Opcode::kRails));
    EXPECT_EQ(reply.value().status(), ReplyStatus::kOk);
    return DecodeRails(reply.value().value);
  }

  Device second_;
};

}  // namespace gannet

#endif  // TESTS_SERVER_RPC_RAILS_FIXTURE_H_
