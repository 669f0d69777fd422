#include <gtest/gtest.h>

#include "softverbs/tests/devices/two_devices.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

// Two queue pairs whose peers add to one word at the same time.
class AtomicsOfTwo : public TwoDevices {
 protected:
  struct Connection {
    Connection(ibv_context* context, const TestMemory& words)
        : client(context, {}),
          server(context, {}),
          region(ibv_reg_mr(server.pd, words.data(), words.size(), kAllAccess)) {
      ConnectEach(client, server);
      at = {.qp_num = 0, .psn = 0, .gid = {}, .memory = words.address(), .rkey = region->rkey};
    }
    Side client, server;
    Owned<ibv_mr> region;
    Address at{};
  };

  // Returns what is in the word after each of two connections added 1 to it `times` times.
  uint64_t Add(Connection& one, Connection& other, uint64_t times) {
    for (uint64_t done = 0; done < times; ++done) {
      EXPECT_EQ(one.client.FetchAdd(1, 0, one.at, 0, 1), 0);
      EXPECT_EQ(other.client.FetchAdd(1, 0, other.at, 0, 1), 0);
      EXPECT_EQ(one.client.Next().status, IBV_WC_SUCCESS);
      EXPECT_EQ(other.client.Next().status, IBV_WC_SUCCESS);
    }
    return *reinterpret_cast<const uint64_t*>(words_.data());
  }

  static constexpr uint64_t kTimes = 500;
  TestMemory words_{MemoryKind::kMapped, 4096};
};

TEST_F(AtomicsOfTwo, TheDeviceSaysThatTheyAreItsOwn) {
  ibv_device_attr attr{};
  ASSERT_EQ(ibv_query_device(second_.get(), &attr), 0);
  EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
}

TEST_F(AtomicsOfTwo, OneDeviceLosesNone) {
  Connection one(second_.get(), words_), other(second_.get(), words_);
  EXPECT_EQ(Add(one, other, kTimes), 2 * kTimes);
}

TEST_F(AtomicsOfTwo, TwoDevicesLoseSome) {
  Connection one(first_.get(), words_), other(second_.get(), words_);
  EXPECT_LT(Add(one, other, kTimes), 2 * kTimes);
}

// As locks are taken: two clients swap a free word for their own numbers, and both are told that
// they have it. Counts how often.
class LocksOfTwo : public AtomicsOfTwo {
 protected:
  int TakenTwice(Connection& one, Connection& other) {
    uint64_t& word = *reinterpret_cast<uint64_t*>(words_.data());
    int twice = 0;
    for (uint64_t round = 0; round < kTimes; ++round) {
      __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
      EXPECT_EQ(one.client.CompareSwap(1, 0, one.at, 0, 0, 1), 0);
      EXPECT_EQ(other.client.CompareSwap(1, 0, other.at, 0, 0, 2), 0);
      EXPECT_EQ(one.client.Next().status, IBV_WC_SUCCESS);
      EXPECT_EQ(other.client.Next().status, IBV_WC_SUCCESS);
      const uint64_t first = one.client.Word(0), second = other.client.Word(0);
      EXPECT_TRUE(first == 0 || second == 0) << "nobody has a lock that was free";
      twice += first == 0 && second == 0;
    }
    return twice;
  }
};

TEST_F(LocksOfTwo, OneDeviceGivesALockOnce) {
  Connection one(second_.get(), words_), other(second_.get(), words_);
  EXPECT_EQ(TakenTwice(one, other), 0);
}

TEST_F(LocksOfTwo, TwoDevicesGiveItTwice) {
  Connection one(first_.get(), words_), other(second_.get(), words_);
  EXPECT_GT(TakenTwice(one, other), 0) << "a swap of one device saw that of the other";
}

// One after the other, no device can tell that there is another.
TEST_F(AtomicsOfTwo, AnAnsweredOneIsSeenByTheOtherDevice) {
  Connection one(first_.get(), words_), other(second_.get(), words_);
  for (uint64_t value = 0; value < kTimes; ++value) {
    Connection& turn = value % 2 == 0 ? one : other;
    ASSERT_EQ(turn.client.CompareSwap(1, 0, turn.at, 0, value, value + 1), 0);
    ASSERT_EQ(turn.client.Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(turn.client.Word(0), value);
  }
}

// What follows on the queue pair waits for the atomic.
TEST_F(AtomicsOfTwo, AReadBehindItSeesIt) {
  Connection one(second_.get(), words_);
  for (uint64_t value = 0; value < kTimes; ++value) {
    ASSERT_EQ(one.client.FetchAdd(1, 0, one.at, 0, 1), 0);
    ASSERT_EQ(one.client.Read(2, 8, 8, one.at, 0), 0);
    ASSERT_EQ(one.client.Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(one.client.Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(one.client.Word(8), value + 1);
  }
}

// Who moves a queue pair to the error state may rely on its memory from then on.
TEST_F(AtomicsOfTwo, NoneWritesAfterItsQueuePairLeft) {
  for (int round = 0; round < 50; ++round) {
    Connection one(second_.get(), words_);
    ASSERT_EQ(one.client.FetchAdd(1, 0, one.at, 0, 1), 0);
    one.server.ToError();
    const uint64_t left =
        __atomic_load_n(reinterpret_cast<uint64_t*>(words_.data()), __ATOMIC_RELAXED);
    one.client.Next();
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(words_.data()), left);
  }
}

}  // namespace
}  // namespace softverbs
