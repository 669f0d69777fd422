#include "softverbs/nic/link.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "softverbs/nic/shared_memory.h"

namespace softverbs {
namespace {

constexpr uint32_t kLinkQpn = 17;

PacketHeader LinkPacket(uint32_t payload) {
  PacketHeader header{};
  header.type = PacketType::kWrite;
  header.payload_bytes = payload;
  header.record_bytes = RecordBytes(payload);
  header.from_qpn = kLinkQpn;
  return header;
}

// A link whose two ends are the test's.
class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    const UniqueFd memory = CreateSealedMemory("softverbs-test", Link::MemoryBytes());
    EXPECT_TRUE(link_.Attach(memory.get(), Link::Side::kLoopback));
  }
  // Sends packets of this size until the ring is full. Then the queue pair waits.
  void Fill(uint32_t payload) {
    while (link_.Send(LinkPacket(payload), &waits_) == Link::SendResult::kSent) {
    }
    EXPECT_TRUE(waits_);
  }
  // Takes one packet out of the ring.
  void Receive() {
    PacketHeader header;
    const uint8_t* payload;
    ASSERT_EQ(link_.consumer().Next(&header, &payload), RingConsumer::Result::kPacket);
    link_.consumer().Release(header);
  }

  Link link_{1};
  bool waits_ = false;
};

TEST_F(LinkTest, AQueuePairThatFindsNoRoomIsNotedAndThePeerAsked) {
  Fill(kMaxPayload);
  EXPECT_TRUE(link_.HasWaiting());
  Receive();
  EXPECT_TRUE(link_.consumer().TakeStarving());
  EXPECT_EQ(link_.TakeWaiting(true), std::vector<uint32_t>{kLinkQpn});
  EXPECT_FALSE(link_.HasWaiting());
}

TEST_F(LinkTest, ARingForNoRoomIsNotTheLast) {
  Fill(kMaxPayload);
  EXPECT_TRUE(link_.consumer().TakeStarving());
  EXPECT_TRUE(link_.TakeWaiting(true).empty());
  Receive();
  EXPECT_TRUE(link_.consumer().TakeStarving()) << "the peer rings for nobody";
  EXPECT_EQ(link_.TakeWaiting(true), std::vector<uint32_t>{kLinkQpn});
}

TEST_F(LinkTest, ARingForTooLittleRoomIsNotTheLast) {
  Fill(0);
  std::vector<uint32_t> taken;
  uint32_t freed = 0;
  for (; taken.empty() && freed < kRingBytes; freed += RecordBytes(0)) {
    Receive();
    ASSERT_TRUE(link_.consumer().TakeStarving()) << "the peer rings for nobody";
    taken = link_.TakeWaiting(true);
  }
  EXPECT_EQ(taken, std::vector<uint32_t>{kLinkQpn});
  EXPECT_EQ(freed, RecordBytes(kMaxPayload));
}

// A refusal that finds no room is no queue pair's.
TEST_F(LinkTest, OneThatTriesAgainByItselfLeavesNobodyWaiting) {
  Fill(kMaxPayload);
  Receive();
  EXPECT_EQ(link_.TakeWaiting(true).size(), 1u);
  bool noted = true;
  while (link_.Send(LinkPacket(kMaxPayload), &noted) == Link::SendResult::kSent) {
  }
  EXPECT_TRUE(link_.consumer().TakeStarving());
  EXPECT_TRUE(link_.HasWaiting());
  EXPECT_TRUE(link_.TakeWaiting(true).empty());
  EXPECT_FALSE(link_.HasWaiting());
}

}  // namespace
}  // namespace softverbs
