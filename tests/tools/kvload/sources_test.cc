#include "tools/kvload/sources.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/kvload/options.h"

namespace gannet::kvload {
namespace {

constexpr Sizes kSourceSizes{.key_bytes = 16, .value_bytes = 100};

TEST(KeyTest, IsTheZeroPaddedNumber) {
  std::string key;
  WriteKey(42, 16, key);
  EXPECT_EQ(key, "0000000000000042");
  WriteKey(0, 3, key);
  EXPECT_EQ(key, "000");
  WriteKey(999, 3, key);
  EXPECT_EQ(key, "999");
}

TEST(LoadSourceTest, InsertsEachRecordOnce) {
  LoadSource source(10, 13, kSourceSizes);
  LoadOperation operation;
  std::vector<std::string> keys;
  while (source.Next(operation)) {
    EXPECT_EQ(operation.kind, OpKind::kInsert);
    EXPECT_EQ(operation.value_bytes, 100u);
    keys.push_back(operation.key);
  }
  EXPECT_EQ(keys,
            (std::vector<std::string>{"0000000000000010", "0000000000000011", "0000000000000012"}));
}

// The shares of the mix are right within five standard deviations, with a fixed seed.
TEST(YcsbSourceTest, SharesAreThoseOfTheWorkload) {
  constexpr int kOperations = 100'000;
  for (const std::string workload : {"a", "b", "c", "d", "f"}) {
    const Mix mix = *MixOf(workload);
    AcknowledgedCounter records(1000);
    YcsbSource source(mix, kOperations, kSourceSizes, 1, records);
    std::map<OpKind, int> counts;
    LoadOperation operation;
    while (source.Next(operation)) ++counts[operation.kind];
    const auto expect = [&](OpKind kind, int percent) {
      EXPECT_NEAR(counts[kind], percent * kOperations / 100, percent == 0 ? 0 : 800)
          << workload << " " << kOpNames[static_cast<size_t>(kind)];
    };
    expect(OpKind::kGet, mix.get);
    expect(OpKind::kPut, mix.put);
    expect(OpKind::kInsert, mix.insert);
    expect(OpKind::kRmw, mix.rmw);
  }
}

TEST(YcsbSourceTest, SeedDeterminesTheOperations) {
  AcknowledgedCounter records(1000);
  YcsbSource one(*MixOf("a"), 1000, kSourceSizes, 5, records);
  YcsbSource other(*MixOf("a"), 1000, kSourceSizes, 5, records);
  LoadOperation a;
  LoadOperation b;
  while (one.Next(a)) {
    ASSERT_TRUE(other.Next(b));
    EXPECT_EQ(a.key, b.key);
    EXPECT_EQ(a.kind, b.kind);
  }
}

TEST(YcsbSourceTest, LatestPicksOnlyAcknowledgedRecords) {
  constexpr uint64_t kRecords = 100;
  AcknowledgedCounter records(kRecords);
  YcsbSource source(*MixOf("d"), 10'000, kSourceSizes, 1, records);
  LoadOperation operation;
  uint64_t newest_reads = 0;
  while (source.Next(operation)) {
    if (operation.kind == OpKind::kInsert) continue;  // never acknowledged here
    ASSERT_LT(operation.record, kRecords);
    newest_reads += operation.record == kRecords - 1 ? 1 : 0;
  }
  EXPECT_GT(newest_reads, 1000u);
}

TEST(YcsbSourceTest, UniformReachesAllRecords) {
  Mix mix = *MixOf("c");
  mix.distribution = Distribution::kUniform;
  AcknowledgedCounter records(50);
  YcsbSource source(mix, 5000, kSourceSizes, 1, records);
  std::set<uint64_t> seen;
  LoadOperation operation;
  while (source.Next(operation)) seen.insert(operation.record);
  EXPECT_EQ(seen.size(), 50u);
}

TEST(YcsbSourceTest, StrideReachesEverySoManiethRecord) {
  Mix mix = *MixOf("c");
  mix.distribution = Distribution::kUniform;
  AcknowledgedCounter records(10);
  YcsbSource source(mix, 1000, kSourceSizes, 1, records, /*stride=*/7);
  std::set<uint64_t> seen;
  LoadOperation operation;
  while (source.Next(operation)) {
    EXPECT_EQ(operation.record % 7, 0u);
    seen.insert(operation.record);
    std::string key;
    WriteKey(operation.record, kSourceSizes.key_bytes, key);
    EXPECT_EQ(operation.key, key);
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(*seen.rbegin(), 63u);
  LoadSource warm_up(8, 10, kSourceSizes, OpKind::kGet, 7);
  ASSERT_TRUE(warm_up.Next(operation));
  EXPECT_EQ(operation.record, 56u);
}

TEST(ValueSizesTest, RecordsHaveTheirSharesAndKeepTheirSizes) {
  const auto sizes = ValueSizes::Parse("100:0.5,4K:0.4,1M:0.1");
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->smallest(), 100u);
  EXPECT_EQ(sizes->largest(), 1u << 20);
  std::map<uint32_t, int> counted;
  for (uint64_t record = 0; record < 100'000; ++record) ++counted[sizes->Of(record)];
  ASSERT_EQ(counted.size(), 3u);
  EXPECT_NEAR(counted[100], 50'000, 1000);
  EXPECT_NEAR(counted[4096], 40'000, 1000);
  EXPECT_NEAR(counted[1 << 20], 10'000, 1000);
  EXPECT_EQ(ValueSizes::Parse("7:3")->Of(9), 7u);
  // What is loaded has the sizes of what is written later.
  const Sizes mixed{.key_bytes = 16, .value_bytes = 1 << 20, .mixed = *sizes};
  LoadSource load(0, 100, mixed);
  LoadOperation operation;
  while (load.Next(operation)) EXPECT_EQ(operation.value_bytes, sizes->Of(operation.record));
  AcknowledgedCounter records(100);
  YcsbSource run(*MixOf("a"), 100, mixed, 1, records);
  while (run.Next(operation)) EXPECT_EQ(operation.value_bytes, sizes->Of(operation.record));
}

TEST(ValueSizesTest, RefusesWhatIsNone) {
  for (const char* text : {"", "100", "100:", ":1", "100:0", "100:-1", "x:1", "5K5:1", "1G:1",
                           "100:1,", "5000M:1", "100:nan"}) {
    EXPECT_FALSE(ValueSizes::Parse(text).ok()) << text;
  }
  std::string many = "1:1";
  for (size_t i = 1; i < ValueSizes::kSizesMax; ++i) many += ",1:1";
  EXPECT_TRUE(ValueSizes::Parse(many).ok());
  EXPECT_FALSE(ValueSizes::Parse(many + ",1:1").ok());
}

// First every key by a GET, then every READ. Both are what the GETs would be.
TEST(RawReadSourceTest, FollowsTheGetsAndSoDoesWhatLocatesThem) {
  AcknowledgedCounter records(1000);
  const YcsbSource gets(*MixOf("c"), 100, kSourceSizes, 3, records);
  std::vector<std::string> keys;
  LoadOperation operation;
  for (YcsbSource copy = gets; copy.Next(operation);) keys.push_back(operation.key);
  ASSERT_EQ(keys.size(), 100u);
  RawReadSource reads(gets);
  for (const std::string& key : keys) {
    ASSERT_TRUE(reads.Next(operation));
    EXPECT_EQ(operation.kind, OpKind::kRawRead);
    EXPECT_EQ(operation.key, key);
  }
  EXPECT_FALSE(reads.Next(operation));
  LocateSource locate(gets);
  for (const OpKind kind : {OpKind::kGet, OpKind::kRawRead}) {
    for (const std::string& key : keys) {
      ASSERT_TRUE(locate.Next(operation));
      EXPECT_EQ(operation.kind, kind);
      EXPECT_EQ(operation.key, key);
    }
  }
  EXPECT_FALSE(locate.Next(operation));
}

TEST(AcknowledgedCounterTest, GrowsOverAGaplessPrefixOnly) {
  AcknowledgedCounter counter(10);
  EXPECT_EQ(counter.Take(), 10u);
  EXPECT_EQ(counter.Take(), 11u);
  EXPECT_EQ(counter.Take(), 12u);
  counter.Acknowledge(12);
  EXPECT_EQ(counter.acknowledged(), 10u);
  counter.Acknowledge(10);
  EXPECT_EQ(counter.acknowledged(), 11u);
  counter.Acknowledge(11);
  EXPECT_EQ(counter.acknowledged(), 13u);
}

TEST(TraceSourceTest, ThreadsShareTheEventsByKeyInOrder) {
  std::vector<TraceEvent> events;
  for (uint32_t i = 0; i < 100; ++i) {
    const bool is_read = i % 3 == 0;
    events.push_back({.key = std::to_string(i % 10),
                      .size = 512 + i,
                      .kind = is_read ? OpKind::kGet : OpKind::kPut,
                      .put_on_miss = is_read});
  }
  std::map<std::string, uint32_t> thread_of_key;
  std::map<std::string, uint32_t> last_size;
  size_t count = 0;
  for (uint32_t thread = 0; thread < 3; ++thread) {
    TraceSource source(events, thread, 3);
    LoadOperation operation;
    while (source.Next(operation)) {
      ++count;
      EXPECT_EQ(thread_of_key.emplace(operation.key, thread).first->second, thread);
      EXPECT_GT(operation.value_bytes, last_size[operation.key]);
      last_size[operation.key] = operation.value_bytes;
      EXPECT_EQ(operation.put_on_miss, operation.kind == OpKind::kGet);
    }
  }
  EXPECT_EQ(count, events.size());
}

TEST(MixTest, ScansAreRefusedWithTheReason) {
  const auto mix = MixOf("e");
  EXPECT_EQ(mix.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(mix.status().message()).find("scans"), std::string::npos);
}

TEST(MixTest, LettersInEitherCaseAndNothingElse) {
  EXPECT_EQ(MixOf("A")->put, 50);
  EXPECT_FALSE(MixOf("g").ok());
  EXPECT_FALSE(MixOf("").ok());
  EXPECT_FALSE(MixOf("ab").ok());
}

TEST(MixTest, DistributionsByName) {
  EXPECT_EQ(*DistributionOf("uniform"), Distribution::kUniform);
  EXPECT_EQ(*DistributionOf("zipfian"), Distribution::kZipfian);
  EXPECT_EQ(*DistributionOf("latest"), Distribution::kLatest);
  EXPECT_FALSE(DistributionOf("normal").ok());
}

TEST(OptionsTest, DefaultsAreValid) { EXPECT_TRUE(Validate(LoadOptions{}).ok()); }

TEST(OptionsTest, RefusesWhatCannotRun) {
  const auto refused = [](auto change) {
    LoadOptions options;
    change(options);
    return Validate(options).code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](LoadOptions& o) { o.workload = "e"; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.records = 0; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.operations = 0; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.threads = 0; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.depth = kDepthMax + 1; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.sizes.value_bytes = 23; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.sizes.value_bytes = kValueBytesMax + 1; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.sizes.key_bytes = 0; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.sizes.key_bytes = 251; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.sizes.key_bytes = 5; }));  // a million and more keys
  EXPECT_TRUE(refused([](LoadOptions& o) { o.servers.clear(); }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.stride = 0; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.stride = o.records + 1; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.workload = "d", o.stride = 2; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.trace_file = "t.csv", o.stride = 2; }));
  EXPECT_TRUE(refused([](LoadOptions& o) { o.deadline = {}; }));
}

TEST(OptionsTest, UnverifiedValuesMayBeShort) {
  LoadOptions options;
  options.sizes.value_bytes = 0;
  options.verify = false;
  EXPECT_TRUE(Validate(options).ok());
}

}  // namespace
}  // namespace gannet::kvload
