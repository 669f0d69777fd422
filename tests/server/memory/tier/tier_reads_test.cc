#include "server/memory/tier/tier_reads.h"

#include <poll.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/base/wake_up.h"
#include "gtest/gtest.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/tier/bad_disk.h"
#include "tests/server/memory/tier/some_tier.h"

namespace gannet {
namespace {

using Begun = TierReads::Begun;
using Done = TierReads::Done;

// Blocks that a record of SomeValue lies in, at most.
constexpr uint64_t kBlocksOfRead = 5;

class SomeWorker : public TierReadsDone {
 public:
  void OnTierReadsDone() override { wake_up_->Ask(); }
  void Sleep() {
    pollfd fd{wake_up_->fd(), POLLIN, 0};
    poll(&fd, 1, /*timeout=*/-1);
    wake_up_->Take();
  }

 private:
  const std::unique_ptr<WakeUp> wake_up_ = WakeUp::Create().value();
};

class TierReadsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(circle_.TakeOldest().value());
    for (uint64_t version = 1; version <= 3; ++version) {
      const std::string key = SomeKey(version);
      const std::string value = SomeValue(version);
      places_.push_back(*circle_.Add({.key = key, .value = value, .version = version}));
    }
    ASSERT_TRUE(circle_.Write().ok());
  }
  // Memory for so many reads.
  void Start(uint64_t reads, uint32_t threads = 4) {
    memory_.emplace(reads * kBlocksOfRead * kTierBlockBytes);
    reads_ =
        std::make_unique<TierReads>(TierReads::Options{.circle = &circle_,
                                                       .memory = memory_->bytes(),
                                                       .threads = threads,
                                                       .workers = {&workers_[0], &workers_[1]}});
  }
  Begun Begin(uint64_t version, uint32_t worker, uint64_t tag) {
    return reads_->Begin(places_[version - 1], SomeKey(version), {worker, tag});
  }
  // Waits for the worker's next reads.
  std::vector<Done> Await(uint32_t worker) {
    for (;;) {
      std::vector<Done> done = reads_->TakeDone(worker);
      if (!done.empty()) return done;
      workers_[worker].Sleep();
    }
  }
  std::string AwaitValue(uint32_t worker) {
    const Done done = Await(worker).front();
    const std::string value = done.value.ok() ? std::string(*done.value) : "";
    reads_->Give(done.read);
    return value;
  }

  BadDisk disk_{kSomeTierBytes};
  TierCircle circle_{SomeOptions(&disk_)};
  std::vector<TierPlace> places_;
  std::array<SomeWorker, 2> workers_;
  std::optional<TierBuffer> memory_;
  std::unique_ptr<TierReads> reads_;
};

TEST_F(TierReadsTest, TellTheWorkerThatAsked) {
  Start(2);
  ASSERT_EQ(Begin(1, 1, 77), Begun::kYes);
  const std::vector<Done> done = Await(1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].tag, 77u);
  EXPECT_EQ(*done[0].value, SomeValue(1));
  EXPECT_TRUE(reads_->TakeDone(0).empty());
  reads_->Give(done[0].read);
}

TEST_F(TierReadsTest, OfOneRecordAreOneRead) {
  Start(1);
  disk_.HoldReads(true);
  ASSERT_EQ(Begin(1, 0, 1), Begun::kYes);
  disk_.AwaitHeld(1);
  ASSERT_EQ(Begin(1, 0, 2), Begun::kYes);
  ASSERT_EQ(Begin(1, 1, 3), Begun::kYes);
  EXPECT_EQ(reads_->under_way(), 1u);
  EXPECT_EQ(reads_->counts().reads, 1u);
  EXPECT_EQ(reads_->counts().joined, 2u);
  disk_.HoldReads(false);
  const std::vector<Done> first = Await(0);
  const std::vector<Done> second = Await(1);
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(*second[0].value, SomeValue(1));
  // The last one gives the memory back.
  reads_->Give(first[0].read);
  reads_->Give(second[0].read);
  EXPECT_EQ(Begin(2, 0, 4), Begun::kNoMemory);
  reads_->Give(first[1].read);
  EXPECT_EQ(Begin(2, 0, 4), Begun::kYes);
  EXPECT_EQ(AwaitValue(0), SomeValue(2));
}

TEST_F(TierReadsTest, AreUnderWayTogether) {
  Start(3, /*threads=*/3);
  disk_.HoldReads(true);
  for (uint64_t version = 1; version <= 3; ++version) {
    ASSERT_EQ(Begin(version, 0, version), Begun::kYes);
  }
  disk_.AwaitHeld(3);
  EXPECT_EQ(reads_->under_way(), 3u);
  disk_.HoldReads(false);
  std::map<uint64_t, std::string> values;
  while (values.size() < 3) {
    for (const Done& done : Await(0)) {
      values[done.tag] = std::string(*done.value);
      reads_->Give(done.read);
    }
  }
  for (const auto& [version, value] : values) EXPECT_EQ(value, SomeValue(version));
}

// Half of the credits of a client that asks for 128 values at once. The disk answers when all are
// there.
TEST_F(TierReadsTest, AreSixtyFourUnderWay) {
  constexpr uint64_t kReads = 64;
  for (uint64_t version = 4; version <= kReads; ++version) {
    const std::string key = SomeKey(version);
    places_.push_back(*circle_.Add({.key = key, .value = "v", .version = version}));
  }
  ASSERT_TRUE(circle_.Write().ok());
  Start(kReads, TierReads::Options().threads);
  disk_.HoldReads(true);
  for (uint64_t version = 1; version <= kReads; ++version) {
    ASSERT_EQ(Begin(version, 0, version), Begun::kYes);
  }
  disk_.AwaitHeld(kReads);
  disk_.HoldReads(false);
  uint64_t read = 0;
  while (read < kReads) {
    for (const Done& done : Await(0)) {
      EXPECT_EQ(*done.value, done.tag <= 3 ? SomeValue(done.tag) : "v");
      reads_->Give(done.read);
      ++read;
    }
  }
}

TEST_F(TierReadsTest, KeepTheirMemoryUntilItIsGivenBack) {
  Start(1);
  ASSERT_EQ(Begin(1, 0, 1), Begun::kYes);
  const Done late = Await(0).front();
  EXPECT_EQ(Begin(2, 0, 2), Begun::kNoMemory);
  EXPECT_EQ(*late.value, SomeValue(1));
  reads_->Give(late.read);
  EXPECT_EQ(Begin(2, 0, 2), Begun::kYes);
  EXPECT_EQ(AwaitValue(0), SomeValue(2));
}

TEST_F(TierReadsTest, KeepTheirSegmentUntilTheyAreDone) {
  Start(1);
  for (uint64_t i = 1; i < kSomeSegments; ++i) ASSERT_TRUE(circle_.TakeOldest().value());
  disk_.HoldReads(true);
  ASSERT_EQ(Begin(1, 0, 1), Begun::kYes);
  EXPECT_FALSE(circle_.TakeOldest().value());
  disk_.HoldReads(false);
  EXPECT_EQ(AwaitValue(0), SomeValue(1));
  EXPECT_TRUE(circle_.TakeOldest().value());
  EXPECT_EQ(Begin(1, 0, 2), Begun::kTaken);
  EXPECT_EQ(reads_->under_way(), 0u);
}

TEST_F(TierReadsTest, TellOfADiskThatFailsOrLies) {
  Start(1);
  disk_.SetReads(BadDisk::Read::kFails);
  ASSERT_EQ(Begin(1, 0, 1), Begun::kYes);
  Done done = Await(0).front();
  EXPECT_EQ(done.value.status().code(), absl::StatusCode::kInternal);
  reads_->Give(done.read);
  disk_.SetReads(BadDisk::Read::kBits);
  ASSERT_EQ(Begin(1, 0, 1), Begun::kYes);
  done = Await(0).front();
  EXPECT_EQ(done.value.status().code(), absl::StatusCode::kDataLoss);
  reads_->Give(done.read);
  EXPECT_EQ(reads_->counts().failed, 2u);
}

TEST_F(TierReadsTest, EndWithReadsThatNeverBegan) {
  Start(2, /*threads=*/1);
  disk_.HoldReads(true);
  ASSERT_EQ(Begin(1, 0, 1), Begun::kYes);
  disk_.AwaitHeld(1);
  ASSERT_EQ(Begin(2, 0, 2), Begun::kYes);
  std::thread end([this] { reads_.reset(); });
  disk_.HoldReads(false);
  end.join();
  // Nothing is pinned any more.
  for (uint64_t i = 0; i < kSomeSegments; ++i) EXPECT_TRUE(circle_.TakeOldest().value());
}

// Two workers with fewer buffers than reads: each gets its own value, and all memory comes back.
TEST_F(TierReadsTest, OfManyThreadsGiveEachItsValue) {
  Start(2);
  const uint64_t seed = test_support::TestSeed();
  const auto work = [this, seed](uint32_t worker) {
    std::mt19937_64 random(seed + worker);
    for (int i = 0; i < 500; ++i) {
      const uint64_t version = 1 + random() % 3;
      while (Begin(version, worker, version) == Begun::kNoMemory) std::this_thread::yield();
      for (const Done& done : Await(worker)) {
        ASSERT_TRUE(done.value.ok());
        EXPECT_EQ(*done.value, SomeValue(done.tag));
        reads_->Give(done.read);
      }
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(reads_->under_way(), 0u);
  ASSERT_EQ(Begin(1, 0, 1), Begun::kYes);
  ASSERT_EQ(Begin(2, 0, 2), Begun::kYes);
}

}  // namespace
}  // namespace gannet
