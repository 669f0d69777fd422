// A store that is kept on a disk, with a journal and snapshots. The disk fails at every single
// operation, in turn. Whatever happens, the next run has the items as they were after some
// beginning of the changes, with every change that was confirmed as being on disk. With sync
// always, nobody ever sees a change that is not on disk.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clocks.h"
#include "glog/logging.h"
#include "gtest/gtest.h"
#include "server/main/disk/disk_log.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/log/journal/fault_plan.h"
#include "tests/server/log/journal/hooked_files.h"
#include "tests/server/log/journal/simulated_files.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

using Fault = SimulatedFiles::Fault;

constexpr int kLivesOfDisk = 3;
constexpr uint64_t kNowMs = 1'000;
constexpr size_t kRegionBytes = 1 << 20;
constexpr size_t kKeys = 8;

struct Item {
  std::string value;
  uint64_t version;
  uint32_t flags;
  uint64_t expiry_ms;
  friend bool operator==(const Item&, const Item&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Item& item) {
    return out << item.value.size() << " bytes, version " << item.version << ", flags "
               << item.flags << ", expiry " << item.expiry_ms;
  }
};
using Items = std::map<std::string, Item>;

// What a key became by a change whose record ends at `end`.
struct Step {
  std::string key;
  std::optional<Item> item;
  uint64_t end;
  uint64_t ticket = 0;  // of its answer, if that waits
};

class Machine {
 public:
  explicit Machine(const FaultPlan& plan) : plan_(plan), random_(plan.seed), files_(plan.seed + 1) {
    files_.SetFault(plan.fault, plan.fault_at);
  }

  void Live() {
    for (int life = 0; life < kLivesOfDisk && !testing::Test::HasFailure(); ++life) {
      if (!Start()) {
        // The fault happened while the server started. It starts again when the power is back.
        Stop();
        files_.CutPower();
        ASSERT_TRUE(Start()) << error_;
      }
      Work();
      Stop();
      // Or only the process is killed. A power cut may follow in one of the next lives.
      if (!files_.has_power() || Below(2) == 0) files_.CutPower();
    }
    files_.CutPower();
    ASSERT_TRUE(Start()) << error_;
    Stop();
  }
  uint64_t operations() const { return files_.operations(); }
  uint64_t snapshots() const { return snapshots_; }

 private:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  // Returns false if a fault prevents it.
  bool Start() {
    store_ = std::make_unique<TestStore>(kRegionBytes);
    auto log = DiskLog::Open({.files = &hooked_files_,
                              .store = &**store_,
                              .changes = &store_->changes(),
                              .writes = &store_->writes(),
                              .sync = plan_.sync,
                              .sync_interval_ns = 10,
                              .segment_bytes = 2000,
                              .clock = [this] { return now_ns_; },
                              .wall = MachineWallTime,
                              .new_number = 77},
                             At(kNowMs));
    if (!log.ok()) {
      error_ = std::string(log.status().message());
      return false;
    }
    log_ = *std::move(log);
    CheckRestored();
    return true;
  }
  void Stop() {
    log_ = nullptr;
    store_ = nullptr;
  }

  // The items must be what the changes made whose records are still there, and those must be all
  // that were confirmed.
  void CheckRestored() {
    const uint64_t end = log_->appended();
    EXPECT_GE(end, confirmed_) << "confirmed, and lost";
    while (!steps_.empty() && steps_.back().end > end) steps_.pop_back();
    for (Step& step : steps_) step.ticket = 0;  // of the former run
    const Items items = ItemsBelow(end);
    EXPECT_EQ(ReadItems(), items) << "not what was recorded below " << end;
    version_max_ = 0;
    for (const auto& [key, item] : items) version_max_ = std::max(version_max_, item.version);
  }

  // What the changes made whose records end there or before.
  Items ItemsBelow(uint64_t end) const {
    Items items;
    for (const Step& step : steps_) {
      if (step.end > end) break;
      if (step.item) {
        items[step.key] = *step.item;
      } else {
        items.erase(step.key);
      }
    }
    return items;
  }

  std::optional<Item> ReadItem(const std::string& key) {
    std::array<char, 4096> value;
    const ReadOutcome read =
        (*store_)->Get(key, std::as_writable_bytes(std::span(value)), At(kNowMs));
    if (read.status != ReplyStatus::kOk) return std::nullopt;
    return Item{{value.data(), read.value_bytes},
                read.version,
                read.attributes.flags,
                read.attributes.expiry.ms()};
  }
  Items ReadItems() {
    Items items;
    for (size_t i = 0; i < kKeys; ++i) {
      const std::string key = "k" + std::to_string(i);
      if (auto item = ReadItem(key)) items[key] = *std::move(item);
    }
    return items;
  }

  void Work() {
    for (size_t steps = 5 + Below(15); steps > 0; --steps) {
      for (size_t n = Below(4); n > 0; --n) {
        log_->waiting() == nullptr ? ChangeOne() : DecideOne();
      }
      if (log_->waiting() != nullptr) CheckSeen();
      if (Below(8) == 0) log_->snapshots().Ask();
      now_ns_ += static_cast<int64_t>(Below(10));
      if (Below(4) == 0) log_->Write();
      log_->Poll(now_ns_);
      if (log_->waiting() != nullptr) log_->waiting()->Publish(store_->changes().safe());
      confirmed_ = std::max(confirmed_, log_->safe());
      if (log_->waiting() != nullptr) CheckSeen();
    }
    StatsReply stats{};
    log_->FillStats(&stats);
    snapshots_ += stats.disk_snapshots;
  }

  // What others do while a sync runs.
  void DuringSync() {
    if (log_ == nullptr || Below(2) == 0) return;
    for (size_t n = Below(3); n > 0; --n) log_->waiting() == nullptr ? ChangeOne() : DecideOne();
    log_->Write();
  }

  void ChangeOne() {
    const std::string key = "k" + std::to_string(Below(kKeys));
    const std::optional<Item> before = ReadItem(key);
    const uint64_t appended = log_->appended();
    const WriteOutcome outcome = ChangeKey(key);
    const std::optional<Item> after = ReadItem(key);
    if (outcome.status != ReplyStatus::kOk) {
      EXPECT_EQ(after, before) << "a refused change";
      EXPECT_EQ(log_->appended(), appended);
      return;
    }
    ASSERT_GT(log_->appended(), appended) << "a change without a record";
    AddStep(key, after);
  }
  void AddStep(const std::string& key, const std::optional<Item>& item, uint64_t ticket = 0) {
    if (item) {
      EXPECT_GT(item->version, version_max_) << "a version of an earlier run, or of this one";
      version_max_ = item->version;
    }
    steps_.push_back({key, item, log_->appended(), ticket});
  }

  // With sync always. What is decided, and who may see it when, is followed here without a look at
  // the store.
  void DecideOne() {
    Writes& writes = *log_->waiting();
    const std::string key = "k" + std::to_string(Below(kKeys));
    const std::optional<Item> before = DecidedItem(key);
    const uint64_t appended = log_->appended();
    std::optional<Item> after = before.value_or(Item{});
    Writes::Decided decided;
    bool applies = true;
    switch (Below(7)) {
      case 0:
        decided = writes.Delete(key, {}, At(kNowMs));
        applies = before.has_value();
        after = std::nullopt;
        break;
      case 1:
        decided = writes.Append(key, "+", Writes::End::kBack, {}, {}, At(kNowMs));
        after->value += "+";
        break;
      case 2:
        after->expiry_ms = kNowMs + 100 + Below(100);
        decided = writes.Touch(key, ExpiresAt(after->expiry_ms), {}, At(kNowMs));
        applies = before.has_value();
        break;
      case 3:
        after = Item{std::string(Below(100), 'a'), 0, 0, 0};
        decided = writes.Put(key, after->value, {}, {.only_if_absent = true}, At(kNowMs));
        applies = !before.has_value();
        break;
      case 4:
        after = Item{std::string(Below(100), 'v'), 0, 0, 0};
        decided = writes.Put(key, after->value, {},
                             {.only_if_version = before ? before->version : 0}, At(kNowMs));
        break;
      case 5:
        after = Item{std::string(500 + Below(1'500), 'l'), 0, static_cast<uint32_t>(Below(100)), 0};
        decided = writes.Put(key, after->value, {after->flags, Expiry()}, {}, At(kNowMs));
        break;
      default:
        after = Item{std::string(Below(100), 's'), 0, 0, 0};
        decided = writes.Put(key, after->value, {}, {}, At(kNowMs));
        break;
    }
    const ReplyStatus status = decided.outcome.status;
    if (status == ReplyStatus::kDiskRefuses) {
      EXPECT_EQ(decided.ticket, 0u);
    } else {
      EXPECT_EQ(status == ReplyStatus::kOk, applies) << static_cast<int>(status);
    }
    if (status != ReplyStatus::kOk) {
      EXPECT_EQ(log_->appended(), appended);
      return;
    }
    if (after) after->version = decided.outcome.version;
    EXPECT_GT(decided.ticket, 0u);
    AddStep(key, after, decided.ticket);
  }
  std::optional<Item> DecidedItem(const std::string& key) const {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (step->key == key) return step->item;
    }
    return std::nullopt;
  }
  // Whoever looks sees what is safe, and nothing else. Who has an answer sees what it says.
  void CheckSeen() {
    const uint64_t published = log_->waiting()->published();
    for (const Step& step : steps_) {
      if (step.ticket == 0 || step.ticket > published) continue;
      EXPECT_LE(step.end, log_->safe()) << "answered, and not on disk";
    }
    EXPECT_EQ(ReadItems(), ItemsBelow(log_->safe())) << "what is seen is not what is on disk";
  }
  WriteOutcome ChangeKey(const std::string& key) {
    TestStore& store = *store_;
    switch (Below(6)) {
      case 0:
        return store.Delete(key, kNowMs);
      case 1:
        return store.Append(key, "+", Writes::End::kBack, {}, {}, At(kNowMs));
      case 2:
        return store.Touch(key, kNowMs + 100 + Below(100), {}, At(kNowMs));
      case 3:
        return store.Put(key, std::string(500 + Below(1'500), 'l'),
                         {static_cast<uint32_t>(Below(100)), Expiry()}, {}, At(kNowMs));
      default:
        return store.Put(key, std::string(Below(100), 's'), {}, {}, At(kNowMs));
    }
  }

  const FaultPlan plan_;
  std::mt19937_64 random_;
  SimulatedFiles files_;
  HookedFiles hooked_files_{&files_, [this] { DuringSync(); }};
  std::unique_ptr<TestStore> store_;
  std::unique_ptr<DiskLog> log_;
  std::vector<Step> steps_;  // that may still be there
  uint64_t confirmed_ = 0;
  uint64_t version_max_ = 0;
  uint64_t snapshots_ = 0;
  int64_t now_ns_ = 0;
  std::string error_;
};

class DiskCrashTest : public testing::TestWithParam<Fault> {};

TEST_P(DiskCrashTest, LosesNothingThatItConfirmedWhicheverOperationFails) {
  FLAGS_minloglevel = google::GLOG_FATAL;  // each run has errors to tell of
  constexpr uint64_t kWorkloads = 1;
  const uint64_t first = test_support::TestSeed();
  uint64_t runs = 0;
  uint64_t snapshots = 0;
  for (uint64_t seed = first; seed < first + kWorkloads; ++seed) {
    for (const auto sync :
         {Journal::Sync::kNone, Journal::Sync::kInterval, Journal::Sync::kAlways}) {
      FaultPlan plan{.seed = seed, .sync = sync};
      Machine whole(plan);
      whole.Live();
      plan.fault = GetParam();
      for (plan.fault_at = 1; plan.fault_at <= whole.operations();
           plan.fault_at += kFaultsApart, ++runs) {
        SCOPED_TRACE(Describe(plan));
        Machine machine(plan);
        machine.Live();
        snapshots += machine.snapshots();
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(snapshots, 0u);
  std::cout << runs << " runs, " << snapshots << " snapshots" << std::endl;
}

// A full segment grew, the process ended, and the power was cut while the next process shortened
// the segment. Its header told of the new length, and the file had the old one.
TEST(DiskCrashSeedTest, TheHeaderTellsOfNoLengthThatIsNotOnDisk) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  Machine machine({.seed = 687888423,
                   .sync = Journal::Sync::kInterval,
                   .fault = Fault::kNoSpace,
                   .fault_at = 129});
  machine.Live();
}

INSTANTIATE_TEST_SUITE_P(Faults, DiskCrashTest, testing::ValuesIn(kFaults),
                         [](const auto& param) { return NameOf(param.param); });

}  // namespace
}  // namespace gannet
