// Clients write one key, and items of it expire, while writes wait for a disk. What they were
// answered, and what was seen meanwhile, must be a history of one key.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "server/writes/writes.h"
#include "tests/linearizability/linearizability.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/writes/recorded_changes.h"
#include "tests/server/writes/some_update.h"

namespace gannet {
namespace {

using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;

constexpr char kKey[] = "key";
constexpr size_t kUnderWayMax = 4;

// One thread, and a clock that stands still unless it is set.
class WaitingHistory : private ServerTimeSource {
 public:
  explicit WaitingHistory(uint64_t seed) : random_(seed) {
    store_->UseSink(&changes_);
    store_->UseClock(this);
    writes_->WaitFor(&changes_);
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
    while (!under_way_.empty()) {
      writes_->Publish(changes_.end);
      Answer();
    }
    Get();
  }

  const std::vector<Operation>& history() const { return history_; }
  int sent_again() const { return sent_again_; }

 private:
  struct UnderWay {
    Operation operation;
    WriteConditions conditions;
    uint64_t ttl_ms = 0;
    uint64_t expiry_ms = 0;
    Writes::Decided decided;
    bool undone = false;
  };

  ServerTime Time() const override { return At(clock_ms_); }
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  // Different for each step, and in order with the clock.
  int64_t Now() { return static_cast<int64_t>(clock_ms_) * 1'000'000 + ++now_; }

  void Step() {
    switch (Below(8)) {
      case 0:
        clock_ms_ += 1 + Below(20);
        return;
      case 1:
        writes_->Publish(changes_.end -
                         (Below(2) == 0 ? 0 : std::min<uint64_t>(Below(3), changes_.end)));
        return;
      case 2:
      case 3:
        return Get();
      case 4:
        return Answer();
      default:
        if (under_way_.size() < kUnderWayMax) Begin();
    }
  }

  void Get() {
    Operation get{.invoke_ns = Now()};
    const std::optional<std::string> value = store_.Get(kKey, clock_ms_);
    get.found = value.has_value();
    get.value = value ? std::stoull(*value) : linearizability::kAbsent;
    get.respond_ns = Now();
    known_ = get.value;
    history_.push_back(get);
  }

  void Begin() {
    UnderWay it;
    it.operation = {.client = static_cast<uint32_t>(history_.size()), .invoke_ns = Now()};
    const auto version = version_of_.find(known_);
    switch (Below(6)) {
      case 0:
        it.operation.kind = Kind::kDelete;
        break;
      case 1:
        it.operation.kind = Kind::kPut;
        break;
      case 2:
        it.operation.kind = Kind::kReplace;
        it.conditions.only_if_present = true;
        break;
      default:
        it.operation.kind = Kind::kCompareAndSet;
        it.operation.expected = version == version_of_.end() ? linearizability::kAbsent : known_;
        it.conditions.only_if_version = version == version_of_.end() ? 0 : version->second;
    }
    if (it.operation.kind != Kind::kDelete) it.operation.value = ++values_;
    if (Below(2) == 0) it.ttl_ms = 1 + Below(40);
    Decide(&it);
    under_way_.push_back(it);
  }

  void Decide(UnderWay* it) {
    if (it->operation.kind == Kind::kDelete) {
      it->decided = writes_->Delete(kKey, it->conditions, At(clock_ms_));
      return;
    }
    it->expiry_ms = it->ttl_ms == 0 ? 0 : clock_ms_ + it->ttl_ms;
    if (!it->conditions.any() && it->ttl_ms == 0) {
      const std::string value = std::to_string(it->operation.value);
      if (const auto update = TryUpdate(*store_, *writes_, kKey, value)) {
        it->decided = *update;
        return;
      }
    }
    it->decided = writes_->Put(kKey, std::to_string(it->operation.value),
                               {.expiry = ExpiresAt(it->expiry_ms)}, it->conditions, At(clock_ms_));
  }

  // Answers what is published, in any order that workers could answer in.
  void Answer() {
    std::vector<UnderWay> rest;
    std::ranges::shuffle(under_way_, random_);
    for (UnderWay& it : under_way_) {
      if (it.decided.ticket > writes_->published()) {
        rest.push_back(it);
      } else if (it.undone) {
        it.undone = false;
        ++sent_again_;
        Decide(&it);
        rest.push_back(it);
      } else if (const auto undone = writes_->TakeUndone(it.decided.ticket)) {
        ASSERT_EQ(undone->status, ReplyStatus::kTryAgain);
        it.undone = true;
        it.decided.ticket = undone->ticket;
        rest.push_back(it);
      } else {
        Keep(it);
      }
    }
    under_way_ = rest;
  }

  void Keep(const UnderWay& it) {
    Operation done = it.operation;
    done.respond_ns = Now();
    const WriteOutcome& outcome = it.decided.outcome;
    if (done.kind == Kind::kDelete) {
      done.found = outcome.status == ReplyStatus::kOk;
    } else if (outcome.status != ReplyStatus::kOk) {
      done.outcome = Outcome::kRefused;
    } else {
      version_of_[done.value] = outcome.version;
      known_ = done.value;
    }
    history_.push_back(done);
    if (outcome.status != ReplyStatus::kOk || it.expiry_ms == 0) return;
    history_.push_back({.client = done.client,
                        .kind = Kind::kCompareAndDelete,
                        .expected = done.value,
                        .invoke_ns = static_cast<int64_t>(it.expiry_ms) * 1'000'000,
                        .outcome = Outcome::kUnknown});
  }

  std::mt19937_64 random_;
  TestStore store_{1 << 20};
  RecordedChanges changes_;
  Writes* const writes_ = &store_.writes();
  uint64_t clock_ms_ = 1'000;
  int64_t now_ = 0;
  uint64_t values_ = 0;
  uint64_t known_ = linearizability::kAbsent;  // the value that was read or written last
  std::map<uint64_t, uint64_t> version_of_;
  std::vector<UnderWay> under_way_;
  std::vector<Operation> history_;
  int sent_again_ = 0;
};

TEST(WaitingHistoryTest, IsOneHistoryAlthoughItemsExpireUnderWaitingWrites) {
  int sent_again = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    WaitingHistory run(seed);
    run.Run(150);
    std::string why;
    ASSERT_TRUE(linearizability::Check(run.history(), &why)) << why;
    sent_again += run.sent_again();
  }
  EXPECT_GT(sent_again, 100);
}

}  // namespace
}  // namespace gannet
