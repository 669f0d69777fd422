// What a server tells clients of how much its items are used.

#include "common/protocol/heats.h"

#include <cstring>

#include "common/layout/slot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/memory/store/heat.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

class HeatsTest : public ServerTest {
 protected:
  void Start(bool evict) {
    StartServer([evict](Server::Options* options) { options->evict = evict; });
  }
  static HeatsReply Ask(RawPeer& peer) {
    const auto reply = peer.Call(peer.Header(Opcode::kHeats));
    EXPECT_EQ(reply.value().status(), ReplyStatus::kOk);
    EXPECT_EQ(reply.value().value.size(), sizeof(HeatsReply));
    HeatsReply heats{};
    std::memcpy(&heats, reply.value().value.data(), sizeof(heats));
    return heats;
  }
};

TEST_F(HeatsTest, AServerThatEvictsShowsHowMuchAnItemIsUsed) {
  Start(/*evict=*/true);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const HeatsReply heats = Ask(peer);
  EXPECT_GE(heats.bytes, peer.grant().region_bytes / heats.granule_bytes);
  RequestHeader put = peer.Header(Opcode::kPut);
  put.key_bytes = 3;
  put.value_bytes = 100;
  const auto reply = peer.Call(put, "key", std::string(100, 'v'));
  ASSERT_EQ(reply.value().status(), ReplyStatus::kOk);
  const uint64_t offset = Slot(reply.value().header.write.slot).offset();
  const uint64_t at = heats.address + offset / heats.granule_bytes;
  const auto word = peer.ReadAt(at - at % sizeof(uint64_t), heats.rkey);
  ASSERT_TRUE(word.has_value());
  EXPECT_EQ(static_cast<uint8_t>(*word >> 8 * (at % sizeof(uint64_t))), heats.used_once);
  EXPECT_EQ(heats.used_once, Heat::kUsedOnce);
}

TEST_F(HeatsTest, NobodyElseWritesThem) {
  Start(/*evict=*/true);
  RawPeer writer(this);
  ASSERT_TRUE(writer.Connect());
  const HeatsReply heats = Ask(writer);
  EXPECT_FALSE(writer.WriteAt(heats.address, heats.rkey, UINT64_MAX));
  EXPECT_TRUE(writer.WaitBroken());
  RawPeer reader(this);
  ASSERT_TRUE(reader.Connect());
  EXPECT_EQ(reader.ReadAt(heats.address, heats.rkey), 0u);
  // Not behind their end either.
  const uint64_t page = 1 << 16;
  const uint64_t end = (heats.address + heats.bytes + page - 1) / page * page;
  EXPECT_EQ(reader.ReadAt(end, heats.rkey), std::nullopt);
}

TEST_F(HeatsTest, AServerThatDoesNotEvictHasNone) {
  Start(/*evict=*/false);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const HeatsReply heats = Ask(peer);
  EXPECT_EQ(heats.bytes, 0u);
  EXPECT_EQ(heats.rkey, 0u);
}

}  // namespace
}  // namespace gannet
