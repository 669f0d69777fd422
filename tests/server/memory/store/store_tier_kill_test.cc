// A process whose store is in a memory file and has a tier is killed between any two steps of who
// writes to the tier: stores to the file, and writes to the disk and their halves. So also between
// the write of a record and its stub, between list, stubs that are deleted, and the segment that is
// taken again. The next process finds every key as it was, on the disk too, and goes on.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/words.h"
#include "server/memory/store/stubs.h"
#include "server/memory/tier/tier_buffer.h"
#include "server/memory/tier/tier_writer.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/memory/store/store_trace.h"
#include "tests/server/memory/tier/bad_disk.h"

namespace gannet::tier_kill {
namespace {

constexpr uint64_t kRegionBytes = 640 << 10;
constexpr uint64_t kSegmentBytes = 32 << 10;
constexpr uint64_t kSegments = 6;
constexpr uint64_t kDiskBytes = kTierBlockBytes + kSegments * kSegmentBytes;
constexpr TierOfStore kTier{.number = 77, .segment_bytes = kSegmentBytes, .segments = kSegments};
constexpr uint32_t kKeys = 300;
constexpr ServerTime kNow = At(1'000);

std::string KeyOf(uint64_t i) { return "key" + std::string(i % 7, '-') + std::to_string(i); }

// A disk that takes note of writes.
class NotedDisk : public BadDisk {
 public:
  NotedDisk() : BadDisk(kDiskBytes) {}

  struct Noted {
    uint32_t time = 0;  // stores to the region that were made before
    uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  // From now on; null: not any more.
  void Note(const StoreTrace* trace) { trace_ = trace; }
  std::vector<Noted> TakeNoted() { return std::exchange(noted_, {}); }

  absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    if (trace_ != nullptr) {
      noted_.push_back({trace_->now(), offset, {bytes.begin(), bytes.end()}});
    }
    return BadDisk::WriteAt(offset, bytes);
  }

 private:
  const StoreTrace* trace_ = nullptr;
  std::vector<Noted> noted_;
};

// A process: a store that was taken over, or begins, and its tier.
class Process {
 public:
  Process(std::span<std::byte> region, uint64_t incarnation, BadDisk* disk) : lock_words_(64) {
    auto store = Store::Create({.region = region,
                                .lock_words = lock_words_,
                                .index_slots = 64,
                                .index_grows = true,
                                .incarnation = incarnation,
                                .hash_seed = 42,
                                .first_version = 1000,
                                .evict = true,
                                .tier = kTier,
                                .memory_file = true});
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    writes_ = std::make_unique<Writes>(store_.get());
    circle_ = std::make_unique<TierCircle>(TierCircle::Options{.file = disk,
                                                               .tier = kTier.number,
                                                               .segment_bytes = kSegmentBytes,
                                                               .segments = kSegments,
                                                               .laps = store_->stubs()->Laps()});
    writer_ = std::make_unique<TierWriter>(circle_.get(), store_->stubs());
  }

  Store& store() { return *store_; }
  TierWriter& writer() { return *writer_; }
  TierWriter::Did Poll() { return writer_->Poll(now_ns_ += kNsPerSecond); }
  void Tidy() { store_->Tidy(kNow); }
  uint64_t& LockWordOf(uint64_t i) {
    return lock_words_[store_->HashOf(KeyOf(i)).LockIndex(lock_words_.size())];
  }
  void Put(uint64_t i, uint64_t number) {
    const std::string value =
        std::to_string(number) + std::string(kTierValueBytesMin + number * 7919 % 2000,
                                             static_cast<char>('a' + number % 26));
    writes_->Put(KeyOf(i), value, {.flags = static_cast<uint32_t>(number)}, {}, kNow);
  }
  void Touch(uint64_t i) { writes_->Touch(KeyOf(i), ExpiresAt(1'000'000), {}, kNow); }
  void Delete(uint64_t i) { writes_->Delete(KeyOf(i), {}, kNow); }

  // What a GET of each key answers, wherever its value is.
  struct Answer {
    std::string value;
    uint64_t version = 0;
    uint32_t flags = 0;
    friend bool operator==(const Answer&, const Answer&) = default;
  };
  std::map<uint64_t, Answer> Answers() {
    std::map<uint64_t, Answer> answers;
    std::string value(16 << 10, ' ');
    const TierBuffer buffer(kTierReadBytesMax);
    for (uint64_t i = 0; i < kKeys; ++i) {
      const ReadOutcome read =
          store_->Get(KeyOf(i), std::as_writable_bytes(std::span(value)), kNow);
      if (read.status == ReplyStatus::kNotFound) continue;
      Answer& answer = answers[i];
      answer = {value.substr(0, read.value_bytes), read.version, read.attributes.flags};
      if (!read.on_disk) continue;
      if (!circle_->Pin(*read.on_disk)) {
        answer.value = "a segment that was taken again";
        continue;
      }
      const auto on_disk = circle_->Read(*read.on_disk, KeyOf(i), buffer.bytes());
      circle_->Unpin(*read.on_disk);
      answer.value = on_disk.ok() ? std::string(*on_disk) : on_disk.status().ToString();
    }
    return answers;
  }

 private:
  std::vector<uint64_t> lock_words_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Writes> writes_;
  std::unique_ptr<TierCircle> circle_;
  std::unique_ptr<TierWriter> writer_;
  int64_t now_ns_ = 0;
};
using Answers = std::map<uint64_t, Process::Answer>;

// Each key is as before or as after.
::testing::AssertionResult OneOf(const Answers& found, const Answers& before,
                                 const Answers& after) {
  const auto of = [](const Answers& answers, uint64_t i) {
    const auto it = answers.find(i);
    return it == answers.end() ? std::optional<Process::Answer>() : it->second;
  };
  for (uint64_t i = 0; i < kKeys; ++i) {
    const auto is = of(found, i);
    if (is == of(before, i) || is == of(after, i)) continue;
    return ::testing::AssertionFailure()
           << KeyOf(i) << (is ? " is " + is->value.substr(0, 60) : std::string(" is lost"));
  }
  return ::testing::AssertionSuccess();
}

class StoreTierKillTest : public ::testing::Test {
 protected:
  uint64_t Below(uint64_t n) { return random_() % n; }

  // What others do between two steps of the writer.
  void Operate() {
    const uint64_t i = Below(kKeys);
    switch (Below(8)) {
      case 0:
        return process_.Delete(i);
      case 1:
        return process_.Touch(i);
      case 2:
        process_.LockWordOf(i) = Below(4) == 0 ? 1 : 0;
        return;
      default:
        return process_.Put(i, ++number_);
    }
  }

  // Kills the process after each thing that `step` does.
  void KillIn(const std::function<void()>& step) {
    const Answers before = process_.Answers();
    std::ranges::copy(region_.span(), image_.span().begin());
    std::vector<std::byte> disk = disk_.Copy();
    StoreTrace trace(region_.span());
    disk_.Note(&trace);
    step();
    trace.Stop();
    disk_.Note(nullptr);
    ASSERT_TRUE(trace.Complete());
    const Answers after = process_.Answers();
    const std::vector<NotedDisk::Noted> writes = disk_.TakeNoted();
    size_t written = 0;
    for (uint32_t at = 0; at <= trace.now(); ++at) {
      if (at > 0) {
        const uint64_t offset = trace.OffsetOf(at - 1);
        StoreWord(image_.span().data() + offset, trace.WordAt(offset, at));
        ++stores_;
      }
      ASSERT_TRUE(Killed(disk, before, after)) << "after store " << at;
      for (; written < writes.size() && writes[written].time == at; ++written) {
        const NotedDisk::Noted& write = writes[written];
        const auto there = disk.begin() + static_cast<ptrdiff_t>(write.offset);
        std::ranges::copy(std::span(write.bytes).first(write.bytes.size() / 2), there);
        ASSERT_TRUE(Killed(disk, before, after)) << "in write " << written;
        std::ranges::copy(write.bytes, there);
        ASSERT_TRUE(Killed(disk, before, after)) << "after write " << written;
        ++writes_;
      }
    }
    ASSERT_TRUE(OneOf(process_.Answers(), after, after));
    Answers lost = before;
    for (const auto& [i, answer] : after) lost.erase(i);
    lost_ += lost.size();
  }

  // Another process takes over the image.
  ::testing::AssertionResult Killed(const std::vector<std::byte>& disk, const Answers& before,
                                    const Answers& after) {
    std::ranges::copy(image_.span(), next_region_.span().begin());
    next_disk_.Restore(disk);
    Process next(next_region_.span(), 0x5555, &next_disk_);
    const Answers found = next.Answers();
    if (::testing::AssertionResult result = OneOf(found, before, after); !result) return result;
    if (++kills_ % 16 != 0) return ::testing::AssertionSuccess();
    // It writes on. What it has not forgotten yet is there.
    for (uint64_t i = 0; i < 12; ++i) {
      next.Put(i, 1'000'000 + i);
      next.Tidy();
      next.Poll();
      for (const auto& [key, answer] : next.Answers()) {
        const auto was = found.find(key);
        if (key <= i ? answer.flags == 1'000'000 + key
                     : was != found.end() && answer == was->second)
          continue;
        return ::testing::AssertionFailure()
               << KeyOf(key) << " is " << answer.value.substr(0, 60) << " later";
      }
    }
    return ::testing::AssertionSuccess();
  }

  const uint64_t seed_ = test_support::TestSeed();
  std::mt19937_64 random_{seed_};
  TestRegion region_{kRegionBytes}, image_{kRegionBytes}, next_region_{kRegionBytes};
  NotedDisk disk_;
  BadDisk next_disk_{kDiskBytes};
  Process process_{region_.span(), 0x1111, &disk_};
  uint64_t number_ = 0;
  uint64_t stores_ = 0, writes_ = 0, kills_ = 0, lost_ = 0;
};

TEST_F(StoreTierKillTest, LosesNothingBetweenTwoSteps) {
  if (!StoreTrace::Supported()) GTEST_SKIP() << "x86-64 only";
  const Stubs& stubs = *process_.store().stubs();
  // While there is room, blocks for stubs are put by.
  for (int i = 0; i < 100; ++i) {
    Operate();
    process_.Tidy();
  }
  // Stubs led to a segment that was taken again: they go, or their values come back.
  const auto enough = [&] {
    const Stubs::Counts counts = stubs.counts();
    return counts.made > 20 && counts.forgotten + counts.brought_back > 0;
  };
  for (int i = 0; (i < test_support::Part(100) || (!enough() && i < 500)) && !HasFatalFailure();
       ++i) {
    for (int n = 0; n < 6; ++n) Operate();
    KillIn([this] {
      process_.Tidy();
      while (process_.Poll() == TierWriter::Did::kWorked) {
      }
    });
  }
  std::cout << kills_ << " kills, between " << stores_ << " stores and " << writes_ << " writes; "
            << stubs.counts().made << " stubs, " << stubs.counts().forgotten << " forgotten, "
            << stubs.counts().brought_back << " brought back, "
            << process_.writer().segments_taken() << " segments taken, " << lost_
            << " values lost with them" << std::endl;
  EXPECT_TRUE(enough()) << "the test shows less";
  EXPECT_GT(process_.writer().segments_taken(), kSegments);
}

}  // namespace
}  // namespace gannet::tier_kill
