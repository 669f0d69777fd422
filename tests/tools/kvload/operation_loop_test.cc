#include "tools/kvload/operation_loop.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/tools/kvload/fake_backend.h"
#include "tools/kvload/sources.h"

namespace gannet::kvload {
namespace {

constexpr Sizes kSizes{.key_bytes = 8, .value_bytes = 64};

int64_t fake_now_ns = 0;
// A clock that advances by a microsecond at every look.
int64_t FakeNow() { return fake_now_ns += 1000; }

class OperationLoopTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_now_ns = 0; }

  Metrics Drive(OperationSource& source, OperationLoop::Options options = {}) {
    options.value_bytes_max = 64;
    OperationLoop loop(options, backend_, source, values_, &FakeNow);
    loop.Begin(0);
    while (loop.Poll()) {
    }
    finished_ = loop.finished();
    return loop.metrics();
  }

  Metrics Load(uint64_t records) {
    LoadSource source(0, records, kSizes);
    return Drive(source);
  }

  Metrics Run(const std::string& workload, uint64_t operations,
              OperationLoop::Options options = {}) {
    AcknowledgedCounter records(10);
    YcsbSource source(*MixOf(workload), operations, kSizes, 1, records);
    return Drive(source, options);
  }

  std::map<std::string, std::string> items_;
  FakeBackend backend_{items_};
  const ValueMaker values_{64, 1};
  uint64_t finished_ = 0;
};

TEST_F(OperationLoopTest, LoadedValuesVerifyWhenRead) {
  EXPECT_EQ(Load(10).of(OpKind::kInsert).latency_ns.count(), 10u);
  EXPECT_EQ(items_.size(), 10u);
  const Metrics metrics = Run("c", 1000);
  EXPECT_EQ(metrics.of(OpKind::kGet).latency_ns.count(), 1000u);
  EXPECT_EQ(metrics.of(OpKind::kGet).not_found, 0u);
  EXPECT_EQ(metrics.wrong_values, 0u);
  EXPECT_EQ(finished_, 1000u);
}

TEST_F(OperationLoopTest, ForeignValueIsCountedAndDescribed) {
  Load(10);
  for (auto& [key, value] : items_) value = "not a value of ours, but long enough for one";
  const Metrics metrics = Run("c", 100);
  EXPECT_EQ(metrics.wrong_values, 100u);
  ASSERT_EQ(metrics.first_wrong.size(), Metrics::kWrongDescribedMax);
  EXPECT_NE(metrics.first_wrong[0].find("checksum"), std::string::npos);
}

TEST_F(OperationLoopTest, ValueOfAnotherKeyIsWrong) {
  Load(10);
  std::swap(items_["00000000"], items_["00000001"]);
  const Metrics metrics = Run("c", 1000);
  EXPECT_GT(metrics.wrong_values, 0u);
  EXPECT_NE(metrics.first_wrong[0].find("another key"), std::string::npos);
}

TEST_F(OperationLoopTest, ValueLongerThanTheRunsIsWrong) {
  Load(10);
  for (auto& [key, value] : items_) value.resize(1000);
  EXPECT_EQ(Run("c", 100).wrong_values, 100u);
}

TEST_F(OperationLoopTest, WithoutVerificationNothingIsWrong) {
  Load(10);
  for (auto& [key, value] : items_) value = "foreign";
  EXPECT_EQ(Run("c", 100, {.verify = false}).wrong_values, 0u);
}

TEST_F(OperationLoopTest, MissesAreCountedAndWrongOnlyWhenTheyMustNotBe) {
  Metrics metrics = Run("c", 100);
  EXPECT_EQ(metrics.of(OpKind::kGet).not_found, 100u);
  EXPECT_EQ(metrics.of(OpKind::kGet).latency_ns.count(), 100u);
  EXPECT_EQ(metrics.wrong_values, 0u);
  metrics = Run("c", 100, {.misses_are_wrong = true});
  EXPECT_EQ(metrics.wrong_values, 100u);
}

TEST_F(OperationLoopTest, ReadModifyWriteIsOneOperationWithTheVerbsOfBoth) {
  Load(10);
  const std::map<std::string, std::string> before = items_;
  const Metrics metrics = Run("f", 1000);
  const OpSums& rmw = metrics.of(OpKind::kRmw);
  EXPECT_GT(rmw.latency_ns.count(), 400u);
  EXPECT_EQ(rmw.latency_ns.count() + metrics.of(OpKind::kGet).latency_ns.count(), 1000u);
  EXPECT_EQ(rmw.verbs.operations, rmw.latency_ns.count());
  EXPECT_EQ(rmw.verbs.reads, rmw.verbs.operations);
  EXPECT_EQ(rmw.verbs.sends, rmw.verbs.operations);
  EXPECT_NE(items_, before);
  EXPECT_EQ(Run("c", 100).wrong_values, 0u);
}

TEST_F(OperationLoopTest, GetsAreCountedByWhatTheyHadToDo) {
  Load(5);  // half of the records that are asked for
  Metrics metrics = Run("c", 1000);
  EXPECT_EQ(metrics.get_warm.operations, 0u);
  EXPECT_GT(metrics.get_cold.operations, 0u);
  EXPECT_EQ(metrics.get_miss.operations, metrics.of(OpKind::kGet).not_found);
  EXPECT_EQ(metrics.get_cold.operations + metrics.get_miss.operations, 1000u);
  backend_.warm = true;
  metrics = Run("c", 1000);
  EXPECT_EQ(metrics.get_cold.operations, 0u);
  EXPECT_GT(metrics.get_warm.operations, 0u);
  EXPECT_EQ(metrics.get_warm.read_bytes, 128 * metrics.get_warm.operations);
}

TEST_F(OperationLoopTest, KeepsAtMostDepthInFlight) {
  Load(10);
  backend_.in_flight_max = 0;
  Run("c", 1000, {.depth = 7});
  EXPECT_EQ(backend_.in_flight_max, 7u);
}

TEST_F(OperationLoopTest, ErrorsAreCountedByCodeAndEndTheRun) {
  backend_.code = absl::StatusCode::kUnavailable;
  const Metrics metrics = Run("a", 1'000'000, {.depth = 4});
  EXPECT_TRUE(metrics.gave_up);
  EXPECT_EQ(metrics.answered(), 0u);
  EXPECT_GE(metrics.errors(), OperationLoop::kErrorsInARowMax);
  EXPECT_LT(metrics.errors(), OperationLoop::kErrorsInARowMax + 4);
  EXPECT_EQ(metrics.errors_by_code.at(absl::StatusCode::kUnavailable), metrics.errors());
}

TEST_F(OperationLoopTest, ALostServerEndsTheRunAtItsLastAnswer) {
  LoadSource source(0, 1000, kSizes);
  OperationLoop loop({.depth = 4, .value_bytes_max = 64}, backend_, source, values_, &FakeNow);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(loop.Poll());
  const int64_t last_answer_ns = fake_now_ns;
  fake_now_ns += 1'000'000'000;
  backend_.why_lost = "gone";
  EXPECT_FALSE(loop.Poll());
  EXPECT_EQ(loop.End(), last_answer_ns);
  EXPECT_EQ(loop.metrics().lost, "gone");
  EXPECT_EQ(loop.metrics().errors(), 0u);
  EXPECT_EQ(loop.metrics().dead_ns, 0);
}

TEST_F(OperationLoopTest, TheTimeThatAWorkerWaitsForItsServerIsCountedApart) {
  LoadSource source(0, 100, kSizes);
  OperationLoop loop({.depth = 4, .value_bytes_max = 64, .waits_for_server = true}, backend_,
                     source, values_, &FakeNow);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(loop.Poll());
  constexpr int64_t kAwayNs = 1'000'000'000;
  backend_.why_lost = "gone";
  EXPECT_TRUE(loop.Poll());
  fake_now_ns += kAwayNs;
  EXPECT_TRUE(loop.Poll());
  backend_.why_lost.clear();
  while (loop.Poll()) {
  }
  loop.End();
  EXPECT_EQ(loop.metrics().lost, "");
  EXPECT_EQ(loop.metrics().answered(), 100u);
  EXPECT_GE(loop.metrics().dead_ns, kAwayNs);
  EXPECT_LT(loop.metrics().dead_ns, kAwayNs + kAwayNs / 1000);
}

TEST_F(OperationLoopTest, AStoppedWorkerFinishesWhatIsInFlight) {
  LoadSource source(0, 1000, kSizes);
  OperationLoop loop({.depth = 4, .value_bytes_max = 64}, backend_, source, values_, &FakeNow);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(loop.Poll());
  loop.Stop();
  while (loop.Poll()) {
  }
  EXPECT_EQ(loop.metrics().answered(), items_.size());
  EXPECT_LT(items_.size(), 1000u);
}

TEST_F(OperationLoopTest, RefusedStartsAreErrors) {
  backend_.refuse = true;
  const Metrics metrics = Run("c", 10);
  EXPECT_EQ(metrics.errors(), 10u);
  EXPECT_FALSE(metrics.gave_up);
}

TEST_F(OperationLoopTest, TraceReadThatMissesIsFollowedByAPut) {
  const TraceEvent read = {.key = "1", .size = 32, .put_on_miss = true};
  const std::vector<TraceEvent> events = {
      read, read, {.key = "2", .size = 48, .kind = OpKind::kPut}};
  TraceSource source(events, 0, 1);
  const Metrics metrics = Drive(source);
  EXPECT_EQ(metrics.of(OpKind::kGet).latency_ns.count(), 2u);
  EXPECT_EQ(metrics.of(OpKind::kGet).not_found, 1u);
  EXPECT_EQ(metrics.of(OpKind::kPut).latency_ns.count(), 2u);
  EXPECT_EQ(metrics.wrong_values, 0u);
  EXPECT_EQ(items_["1"].size(), 32u);
  EXPECT_EQ(items_["2"].size(), 48u);
}

TEST_F(OperationLoopTest, AWriteHasTheLifeOfItsOperationOrElseOfTheRun) {
  using std::chrono::seconds;
  const std::vector<TraceEvent> one = {
      {.key = "1", .size = 32, .kind = OpKind::kPut, .ttl = seconds(9)}};
  TraceSource first(one, 0, 1);
  Drive(first, {.ttl = seconds(2)});
  EXPECT_EQ(backend_.last_ttl, seconds(9));
  const std::vector<TraceEvent> other = {{.key = "1", .size = 32, .kind = OpKind::kPut}};
  TraceSource second(other, 0, 1);
  Drive(second, {.ttl = seconds(2)});
  EXPECT_EQ(backend_.last_ttl, seconds(2));
}

TEST_F(OperationLoopTest, TheLongestTimeWithoutAnAnswerIsKept) {
  AcknowledgedCounter records(10);
  Load(10);
  YcsbSource source(*MixOf("c"), 10, kSizes, 1, records);
  OperationLoop loop({.value_bytes_max = 64}, backend_, source, values_, &FakeNow);
  loop.Begin(0);
  loop.Poll();
  EXPECT_EQ(loop.metrics().longest_stall_ns, 0) << "before the first answer there is none";
  loop.Poll();
  const int64_t usual_ns = loop.metrics().longest_stall_ns;
  fake_now_ns += 7'000'000;
  while (loop.Poll()) {
  }
  EXPECT_EQ(loop.metrics().longest_stall_ns, usual_ns + 7'000'000);
}

TEST_F(OperationLoopTest, RawReadsNeedNoItemAndNoValue) {
  AcknowledgedCounter records(10);
  RawReadSource source(YcsbSource(*MixOf("c"), 5, kSizes, 1, records));
  const Metrics metrics = Drive(source);
  EXPECT_EQ(metrics.of(OpKind::kRawRead).latency_ns.count(), 5u);
  EXPECT_EQ(metrics.of(OpKind::kRawRead).not_found, 0u);
  EXPECT_EQ(metrics.of(OpKind::kRawRead).verbs.read_bytes, 5u * 64);
}

// A store that stalls while operations fall due must be charged for all of them.
TEST_F(OperationLoopTest, OpenLoopCountsLatencyFromWhenTheOperationWasDue) {
  Load(10);
  AcknowledgedCounter records(10);
  YcsbSource source(*MixOf("c"), 100, kSizes, 1, records);
  const int64_t interval_ns = 10'000;
  const Rate rate(1e9 / interval_ns);
  OperationLoop loop({.value_bytes_max = 64, .rate = &rate}, backend_, source, values_, &FakeNow);
  loop.Begin(fake_now_ns);
  fake_now_ns += 100 * interval_ns;  // the stall: everything falls due
  while (loop.Poll()) {
  }
  const Histogram& latency = loop.metrics().of(OpKind::kGet).latency_ns;
  EXPECT_EQ(latency.count(), 100u);
  EXPECT_GE(latency.max(), 100u * interval_ns);
  // The median was due in the middle of the stall.
  EXPECT_NEAR(static_cast<double>(latency.Percentile(0.5)), 600'000, 100'000);
}

TEST_F(OperationLoopTest, OpenLoopStartsNothingBeforeItIsDue) {
  Load(10);
  AcknowledgedCounter records(10);
  YcsbSource source(*MixOf("c"), 100, kSizes, 1, records);
  const int64_t interval_ns = 50'000;
  const int64_t begin_ns = fake_now_ns;
  const Rate rate(1e9 / interval_ns);
  OperationLoop loop({.depth = 8, .value_bytes_max = 64, .rate = &rate}, backend_, source, values_,
                     &FakeNow);
  loop.Begin(begin_ns);
  while (loop.Poll()) {
  }
  EXPECT_GE(fake_now_ns - begin_ns, 99 * interval_ns);
  EXPECT_LT(loop.metrics().of(OpKind::kGet).latency_ns.max(), static_cast<uint64_t>(interval_ns));
}

// From 10,000 to 90,000 a second in 10 ms: 500 operations, and 90 more in the ms after that.
TEST_F(OperationLoopTest, ARampMakesOperationsDueEverSooner) {
  Load(10);
  AcknowledgedCounter records(10);
  YcsbSource source(*MixOf("c"), 590, kSizes, 1, records);
  const Rate rate = *Rate::Parse("10k:90k:10ms");
  const int64_t begin_ns = fake_now_ns;
  OperationLoop loop({.depth = 8, .value_bytes_max = 64, .rate = &rate}, backend_, source, values_,
                     &FakeNow);
  loop.Begin(begin_ns);
  int64_t half_ns = 0;
  while (loop.Poll()) {
    if (loop.finished() <= 150) half_ns = fake_now_ns - begin_ns;
  }
  EXPECT_NEAR(static_cast<double>(half_ns), 5e6, 2e5);  // the first 150 are due in 5 ms
  EXPECT_NEAR(static_cast<double>(fake_now_ns - begin_ns), 11e6, 2e5);
}

}  // namespace
}  // namespace gannet::kvload
