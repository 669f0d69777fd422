#include "softverbs/nic/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

#include "softverbs/nic/shared_memory.h"
#include "softverbs/tests/support/test_seed.h"

namespace softverbs {
namespace {

using Result = RingConsumer::Result;

class RingTest : public testing::Test {
 protected:
  static PacketHeader Header(uint32_t number, uint32_t payload) {
    PacketHeader header{};
    header.type = PacketType::kSend;
    header.psn = number;
    header.payload_bytes = payload;
    header.record_bytes = RecordBytes(payload);
    return header;
  }

  // Returns where the record is in the ring, or -1 if the ring is full.
  int64_t Send(uint32_t number, uint32_t payload) {
    const PacketHeader header = Header(number, payload);
    uint8_t* const record = producer_.Reserve(header.record_bytes);
    if (record == nullptr) return -1;
    std::memcpy(record, &header, sizeof(header));
    std::memset(record + sizeof(header), static_cast<int>(number), payload);
    producer_.Publish(header.record_bytes);
    return record - data();
  }

  // Receives the packet `number`, all of whose bytes are as they were sent.
  void Receive(uint32_t number) {
    PacketHeader header;
    const uint8_t* payload = nullptr;
    ASSERT_EQ(consumer_.Next(&header, &payload), Result::kPacket);
    ASSERT_EQ(header.psn, number);
    ASSERT_TRUE(std::all_of(payload, payload + header.payload_bytes, [number](uint8_t byte) {
      return byte == static_cast<uint8_t>(number);
    }));
    consumer_.Release(header);
  }

  Result Next() {
    PacketHeader header;
    const uint8_t* payload = nullptr;
    return consumer_.Next(&header, &payload);
  }

  uint8_t* data() { return static_cast<uint8_t*>(mapping_.data()); }

  UniqueFd memory_ = CreateSealedMemory("ring-test", kRingBytes);
  Mapping mapping_ = Mapping::Doubled(memory_.get(), kRingBytes, 0);
  RingControl control_{};
  RingProducer producer_{&control_, data()};
  RingConsumer consumer_{&control_, data()};
};

TEST_F(RingTest, UsesOnlyItsStartIfItIsEmptiedOften) {
  int64_t last = 0;
  for (uint32_t i = 0; i < 10'000; ++i) {
    last = std::max(last, Send(i, 100));
    Receive(i);
  }
  EXPECT_LT(last, int64_t{kRewindBytes});
}

// What is left out must leave room for the record that follows.
TEST_F(RingTest, TakesTheLongestPacketWheneverItIsEmpty) {
  uint32_t number = 0;
  for (uint32_t payload = 0; payload < 2000; payload += 61) {
    for (uint32_t sent = 0; sent < 2 * kRewindBytes; sent += RecordBytes(payload)) {
      ASSERT_GE(Send(number, payload), 0);
      Receive(number++);
      if (sent % 1024 != 0) continue;
      ASSERT_GE(Send(number, kMaxPayload), 0) << "after " << sent << " bytes";
      Receive(number++);
    }
  }
}

TEST_F(RingTest, IsUsedWholeIfItIsNeverEmpty) {
  constexpr uint32_t kPayload = 1000;
  constexpr uint32_t kRecords = kRingBytes / RecordBytes(kPayload);
  for (uint32_t i = 0; i < kRecords; ++i) ASSERT_GE(Send(i, kPayload), 0);
  EXPECT_EQ(Send(kRecords, kPayload), -1);
  for (uint32_t i = 0; i < kRecords; ++i) {
    Receive(i);
    ASSERT_GE(Send(kRecords + i, kPayload), 0);
  }
}

TEST_F(RingTest, KeepsEveryPacketInOrder) {
  const uint64_t seed = test_support::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  uint32_t sent = 0;
  uint32_t received = 0;
  while (received < 20'000) {
    const uint32_t burst = random() % 40;
    for (uint32_t i = 0; i < burst; ++i) {
      if (Send(sent, random() % 8 == 0 ? random() % kMaxPayload : random() % 300) < 0) break;
      ++sent;
    }
    uint64_t taken = random() % 4 == 0 ? sent - received : random() % 40;
    for (; taken > 0 && received < sent; --taken) ASSERT_NO_FATAL_FAILURE(Receive(received++));
  }
}

TEST_F(RingTest, BeginsAgainAtItsStartIfItIsEmpty) {
  EXPECT_EQ(Send(1, 100), 0);
  EXPECT_GT(Send(2, 100), 0);
  Receive(1);
  EXPECT_FALSE(producer_.Restart()) << "it is not empty";
  Receive(2);
  ASSERT_TRUE(producer_.Restart());
  consumer_.Restart();
  EXPECT_EQ(Next(), Result::kEmpty);
  EXPECT_EQ(Send(3, 100), 0);
  Receive(3);
}

TEST_F(RingTest, RefusesASkipOfAnotherLength) {
  Send(0, 100);
  PacketHeader skip = Header(0, 100);
  skip.type = PacketType::kSkip;
  for (const uint32_t bytes : {0u, 64u, uint32_t{kRingBytes} - 64, uint32_t{kRingBytes}}) {
    skip.record_bytes = bytes;
    std::memcpy(data(), &skip, sizeof(skip));
    EXPECT_EQ(Next(), Result::kCorrupt) << bytes;
  }
}

TEST_F(RingTest, RefusesASkipThatNoRecordFollows) {
  Send(0, 100);
  Receive(0);
  PacketHeader skip{};
  skip.type = PacketType::kSkip;
  skip.record_bytes = kRingBytes - RecordBytes(100);
  std::memcpy(data() + RecordBytes(100), &skip, sizeof(skip));
  control_.tail.store(kRingBytes);
  EXPECT_EQ(Next(), Result::kCorrupt);
}

}  // namespace
}  // namespace softverbs
