#include "tools/kvload/phase.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "tests/tools/kvload/fake_backend.h"
#include "tools/kvload/report.h"
#include "tools/kvload/sources.h"

namespace gannet::kvload {
namespace {

using Json = nlohmann::json;

constexpr Sizes kPhaseSizes{.key_bytes = 8, .value_bytes = 64};

// Every thread has its own store, so that no test needs a lock.
class PhaseTest : public ::testing::Test {
 protected:
  PhaseTest() {
    environment_.connect = [this](uint32_t thread) -> absl::StatusOr<std::unique_ptr<Backend>> {
      if (thread == fails_) return absl::UnavailableError("no server");
      return std::make_unique<FakeBackend>(items_[thread]);
    };
    environment_.totals = [this]() -> absl::StatusOr<ServerTotals> { return totals_; };
    plan_.name = "test";
    plan_.threads = kThreads;
    plan_.loop.value_bytes_max = kPhaseSizes.value_bytes;
    plan_.loop.depth = 4;
    plan_.source = [](uint32_t) { return std::make_unique<LoadSource>(0, 100, kPhaseSizes); };
  }

  static constexpr uint32_t kThreads = 3;
  std::map<std::string, std::string> items_[kThreads];
  uint32_t fails_ = kThreads;
  ServerTotals totals_{.rpcs = 7, .cpu_us = 100, .slots_used = 50, .slots_total = 200};
  Environment environment_;
  PhasePlan plan_;
};

TEST_F(PhaseTest, MergesAllThreads) {
  const auto result = RunPhase(plan_, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->metrics.of(OpKind::kInsert).latency_ns.count(), 300u);
  EXPECT_GT(result->seconds, 0);
  for (const auto& items : items_) EXPECT_EQ(items.size(), 100u);
}

TEST_F(PhaseTest, ThreadThatCannotConnectFailsThePhase) {
  fails_ = 1;
  const auto result = RunPhase(plan_, environment_);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(items_[0].empty());
}

TEST_F(PhaseTest, TotalsThatCannotBeHadFailThePhase) {
  environment_.totals = []() -> absl::StatusOr<ServerTotals> {
    return absl::DeadlineExceededError("slow");
  };
  EXPECT_EQ(RunPhase(plan_, environment_).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PhaseTest, AnotherServerOfTheGroupCountsFromZero) {
  environment_.totals = [this]() -> absl::StatusOr<ServerTotals> {
    return std::exchange(totals_, ServerTotals{.rpcs = 3, .cpu_us = 20});
  };
  const auto result = RunPhase(plan_, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->after.rpcs - result->before.rpcs, 3u);
  EXPECT_EQ(result->after.cpu_us - result->before.cpu_us, 20u);
}

TEST_F(PhaseTest, OpenLoopKeepsToTheTargetRate) {
  plan_.rate = Rate(3000);  // 300 operations: the last is due at 99.67 ms
  const auto result = RunPhase(plan_, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->seconds, 0.099);
  EXPECT_EQ(result->metrics.answered(), 300u);
}

TEST_F(PhaseTest, AnInterruptedPhaseHasAResultThatSaysSo) {
  const std::atomic<bool> interrupted = true;
  environment_.interrupted = &interrupted;
  plan_.source = [](uint32_t) { return std::make_unique<LoadSource>(0, 1'000'000, kPhaseSizes); };
  const auto result = RunPhase(plan_, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->cut_short, kInterrupted);
  EXPECT_LT(result->metrics.answered(), 1000u);
}

TEST_F(PhaseTest, EndsAfterItsSecondsAndSaysNothingOfBeingCutShort) {
  plan_.seconds = 0.05;
  plan_.source = [](uint32_t) {
    return std::make_unique<LoadSource>(0, uint64_t{1} << 40, kPhaseSizes);
  };
  const auto result = RunPhase(plan_, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->cut_short, "");
  EXPECT_GE(result->seconds, 0.05);
  EXPECT_GT(result->metrics.answered(), 0u);
}

TEST_F(PhaseTest, TellsWhatHappenedWhenItEnds) {
  uint64_t operations = 0;
  double ended_s = 0;
  environment_.each_second = [&](std::string_view phase, const Interval& interval) {
    EXPECT_EQ(phase, "test");
    EXPECT_EQ(interval.began_s, ended_s);
    ended_s = interval.ended_s;
    operations += interval.operations;
  };
  const auto result = RunPhase(plan_, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(operations, 300u);
  EXPECT_GE(ended_s, result->seconds);
}

TEST_F(PhaseTest, AWarmUpByTimeIsNotMeasuredAndRunsOnTheSameConnection) {
  plan_.warm_seconds = 0.02;
  plan_.warm_load = [](uint32_t) {
    return std::make_unique<LoadSource>(1000, uint64_t{1} << 26, kPhaseSizes);
  };
  const auto result = RunPhase(plan_, environment_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->metrics.answered(), 300u);
  for (const auto& items : items_) EXPECT_GT(items.size(), 100u);
}

TEST_F(PhaseTest, BeginsWhenItIsToldToAndFailsWhenThatTimeIsOver) {
  // On a busy machine a time that is near may be over before it is looked at.
  for (const int64_t ahead_ns : {50 * kNsPerMs, kNsPerSecond, 30 * kNsPerSecond}) {
    plan_.start_at = static_cast<double>(WallNs() + ahead_ns) / kNsPerSecond;
    const int64_t before_ns = MonotonicNs();
    const auto result = RunPhase(plan_, environment_);
    if (!result.ok() && ahead_ns < 30 * kNsPerSecond) continue;
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GE(MonotonicNs() - before_ns, ahead_ns * 4 / 5);
    break;
  }
  EXPECT_EQ(RunPhase(plan_, environment_).status().code(), absl::StatusCode::kFailedPrecondition);
}

class ReportTest : public PhaseTest {
 protected:
  Report Make() {
    Report report;
    report.options.sizes = kPhaseSizes;
    report.workload = "c";
    report.distribution = "zipfian";
    report.device = "softverbs0";
    report.kind = "softverbs";
    auto load = RunPhase(plan_, environment_);
    EXPECT_TRUE(load.ok()) << load.status();
    report.load = *std::move(load);
    plan_.source = [this](uint32_t) {
      return std::make_unique<YcsbSource>(*MixOf("c"), 1000, kPhaseSizes, 1, records_);
    };
    auto run = RunPhase(plan_, environment_);
    EXPECT_TRUE(run.ok()) << run.status();
    report.measured = *std::move(run);
    report.measured.after = {
        .rpcs = 7, .cpu_us = 130, .disk_answers = 5, .slots_used = 50, .slots_total = 200};
    return report;
  }
  AcknowledgedCounter records_{100};
};

TEST_F(ReportTest, JsonHasEveryField) {
  const Json json = Json::parse(ToJson(Make()));
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_FALSE(json.at("commit").get<std::string>().empty());
  EXPECT_FALSE(json.at("build").get<std::string>().empty());
  EXPECT_EQ(json.at("workload"), "c");
  EXPECT_EQ(json.at("distribution"), "zipfian");
  EXPECT_EQ(json.at("device"), "softverbs0");
  EXPECT_EQ(json.at("kind"), "softverbs");
  for (const char* field :
       {"seed", "threads", "depth", "records", "key_size", "value_size", "location_cache",
        "target_ops", "seconds", "ops_per_second", "client_cpu_us"}) {
    EXPECT_TRUE(json.at(field).is_number()) << field;
  }
  EXPECT_EQ(json.at("operations"), 3000);
  EXPECT_EQ(json.at("index_fill"), 0.25);
  EXPECT_EQ(json.at("server_rpcs"), 0);
  EXPECT_EQ(json.at("server_disk_answers"), 5);
  EXPECT_EQ(json.at("server_cpu_us_per_get"), 30.0 / 3000);
  EXPECT_EQ(json.at("wrong_values"), 0);
  EXPECT_EQ(json.at("load").at("operations"), 300);
  const Json& get = json.at("ops").at("get");
  EXPECT_EQ(get.at("count"), 3000);
  EXPECT_EQ(get.at("not_found"), 0);
  EXPECT_EQ(get.at("errors"), 0);
  EXPECT_LE(get.at("p50_us"), get.at("p99_us"));
  EXPECT_LE(get.at("p99_us"), get.at("p999_us"));
  EXPECT_LE(get.at("p999_us"), get.at("max_us"));
  for (const char* type : {"get", "get_cold"}) {
    const Json& verbs = json.at("verbs").at(type);
    EXPECT_EQ(verbs.at("reads_per_op"), 1.0);
    EXPECT_EQ(verbs.at("read_bytes_per_op"), 128.0);
    EXPECT_EQ(verbs.at("sends_per_op"), 0.0);
    EXPECT_EQ(verbs.at("cas_per_op"), 0.0);
    EXPECT_EQ(verbs.at("posts_per_op"), 1.0);
    EXPECT_EQ(verbs.at("completions_per_op"), 1.0);
  }
  EXPECT_FALSE(json.at("verbs").contains("get_warm"));
}

TEST_F(ReportTest, ServerCpuPerGetIsNullUnlessOnlyGetsRan) {
  Report report = Make();
  report.measured = *report.load;
  EXPECT_TRUE(Json::parse(ToJson(report)).at("server_cpu_us_per_get").is_null());
}

TEST_F(ReportTest, OnlyGetsHaveAHitRatio) {
  Report report = Make();
  EXPECT_NE(ToTable(report).find("hits      1.0000 of the gets"), std::string::npos);
  EXPECT_EQ(Json::parse(ToJson(report)).at("hit_ratio"), 1.0);
  report.measured = *report.load;  // inserts
  EXPECT_EQ(ToTable(report).find("hits "), std::string::npos);
  EXPECT_TRUE(Json::parse(ToJson(report)).at("hit_ratio").is_null());
}

TEST_F(ReportTest, AStallThatAClosedLoopHidesIsTold) {
  Report report = Make();
  report.measured.seconds = 10;
  report.measured.metrics.longest_stall_ns = 500 * kNsPerMs;
  EXPECT_NE(ToTable(report).find("STALL HIDDEN: for 500 ms, 5.0 % of the run"), std::string::npos);
  EXPECT_EQ(Json::parse(ToJson(report)).at("longest_stall_ms"), 500);
  report.options.rate = Rate(1000);
  EXPECT_FALSE(HidesStall(report)) << "an open loop charges every operation that was due";
  report.options.rate = {};
  report.measured.seconds = 100;
  EXPECT_FALSE(HidesStall(report)) << "not even a hundredth of the run";
  report.measured.seconds = 10;
  for (int i = 0; i < 100; ++i) {
    report.measured.metrics.of(OpKind::kGet).latency_ns.Record(400 * kNsPerMs);
  }
  EXPECT_FALSE(HidesStall(report)) << "p99 shows it";
}

TEST_F(ReportTest, TableNamesDeviceAndWrongValues) {
  Report report = Make();
  report.measured.metrics.AddWrong("some key", "torn");
  EXPECT_EQ(WrongValues(report), 1u);
  const std::string table = ToTable(report);
  EXPECT_NE(table.find(", 5 values from disk"), std::string::npos);
  EXPECT_NE(table.find("softverbs0 (softverbs)"), std::string::npos);
  EXPECT_NE(table.find("WRONG VALUE: key 'some key': torn"), std::string::npos);
  EXPECT_NE(table.find("get_cold"), std::string::npos);
}

}  // namespace
}  // namespace gannet::kvload
