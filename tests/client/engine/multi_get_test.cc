// What GETs that are begun together share, counted as verbs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/client_clock.h"
#include "tests/client/engine/engine_run.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

class MultiGetTest : public ::testing::Test {
 protected:
  MultiGetTest() : run_({.endpoints = {server_.endpoint()}, .clock = ClientClock::Real()}) {}

  uint64_t HomeOf(const std::string& key) {
    const IndexView& view = run_.engine().servers().session(0).terms().view;
    return KeyHash::Of(key, view.hash_seed).Home(view.index.homes);
  }
  std::vector<OpResult> Get(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      auto request = KeyRequest(OpType::kGet, key);
      if (request.ok()) request->share_window = true;
      run_.Begin(std::move(request));
    }
    return run_.Finish(keys.size());
  }
  // Returns keys: the first has any home, and each other one has a home so many homes behind it. No
  // two are the same.
  std::vector<std::string> KeysOfHomes(const std::vector<uint64_t>& behind) {
    uint64_t tried = 0;
    const auto key_of_home = [&](auto wanted) {
      std::string key;
      do {
        key = "key" + std::to_string(tried++);
      } while (!wanted(HomeOf(key)));
      return key;
    };
    const uint64_t homes = run_.engine().servers().session(0).terms().view.index.homes;
    std::vector<std::string> keys = {key_of_home([&](uint64_t home) { return home < homes / 2; })};
    const uint64_t first = HomeOf(keys[0]);
    for (const uint64_t distance : behind) {
      keys.push_back(key_of_home([&](uint64_t home) { return home == first + distance; }));
    }
    return keys;
  }
  void Put(const std::vector<std::string>& keys) {
    EngineRun other({.endpoints = {server_.endpoint()}, .clock = ClientClock::Real()});
    for (const std::string& key : keys) {
      ASSERT_EQ(other.Put(key, key).outcome, Outcome::kOk);
    }
  }
  static void ExpectValues(const std::vector<OpResult>& results, std::vector<std::string> values) {
    std::vector<std::string> got;
    for (const OpResult& result : results) {
      EXPECT_TRUE(result.found);
      got.push_back(result.value);
    }
    EXPECT_THAT(got, ::testing::UnorderedElementsAreArray(values));
  }
  // Completions may be fewer than round trips: one that also completes a heartbeat is not counted
  // for an operation.
  static OpCost Sum(const std::vector<OpResult>& results) {
    OpCost sum;
    for (const OpResult& result : results) {
      EXPECT_EQ(result.outcome, Outcome::kOk);
      sum.reads += result.cost.reads;
      sum.posts += result.cost.posts;
      sum.completions += result.cost.completions;
    }
    return sum;
  }

  ServerProcess server_;
  EngineRun run_;
};

TEST_F(MultiGetTest, AWindowThatSeveralKeysShareIsReadOnce) {
  const std::vector<std::string> keys = KeysOfHomes({0, 0});
  Put(keys);
  const std::vector<OpResult> results = Get(keys);
  ExpectValues(results, keys);
  const OpCost cold = Sum(results);
  EXPECT_EQ(cold.reads, 1u + 3u);
  EXPECT_EQ(cold.posts, 2u);  // two round trips
  EXPECT_LE(cold.completions, 2u);
  const OpCost warm = Sum(Get(keys));
  EXPECT_EQ(warm.reads, 3u);
  EXPECT_EQ(warm.posts, 1u);
  EXPECT_LE(warm.completions, 1u);
}

// A key's two buckets are neighbours, so windows of neighbouring homes overlap.
TEST_F(MultiGetTest, WindowsThatOverlapComeWithOneRead) {
  const std::vector<std::string> keys = KeysOfHomes({1, 2, 1, 0, 2});
  Put(keys);
  const std::vector<OpResult> results = Get(keys);
  ExpectValues(results, keys);
  const OpCost cold = Sum(results);
  EXPECT_EQ(cold.reads, 1u + 6u);
  EXPECT_EQ(cold.posts, 2u);
  EXPECT_LE(cold.completions, 2u);
  uint32_t item_bytes = 0;
  for (const OpResult& result : Get(keys)) item_bytes += result.cost.read_bytes;
  uint32_t bytes = 0;
  for (const OpResult& result : results) bytes += result.cost.read_bytes;
  EXPECT_EQ(bytes, item_bytes + 4 * kBucketBytes);
}

TEST_F(MultiGetTest, OneReadCannotBringAllOfALongLineOfWindows) {
  const std::vector<std::string> keys = KeysOfHomes({1, 2, 3, 4, 9});
  Put(keys);
  const std::vector<OpResult> results = Get(keys);
  ExpectValues(results, keys);
  EXPECT_EQ(Sum(results).reads, 3u + 6u);
}

// Each absent key is believed to be absent by its own window. A slow READ makes the client look
// again.
TEST_F(MultiGetTest, AbsentKeysShareWindowsToo) {
  const std::vector<std::string> keys = KeysOfHomes({1, 2, 0, 1, 2});
  Put({keys[1], keys[3]});
  const std::vector<OpResult> results = Get(keys);
  EXPECT_EQ(std::count_if(results.begin(), results.end(), [](auto& r) { return r.found; }), 2);
  for (const OpResult& result : results) {
    EXPECT_EQ(result.outcome, Outcome::kOk);
  }
}

// Uses no absent keys: on a busy machine, a miss whose READ took too long is looked up again.
TEST_F(MultiGetTest, AllFirstReadsAreOnePostAndOneCompletion) {
  std::vector<std::string> keys;
  {
    EngineRun other({.endpoints = {server_.endpoint()}, .clock = ClientClock::Real()});
    for (int i = 0; i < 100; ++i) {
      keys.push_back("key" + std::to_string(i));
      ASSERT_EQ(other.Put(keys.back(), "value").outcome, Outcome::kOk);
    }
  }
  const OpCost cold = Sum(Get(keys));
  EXPECT_LE(cold.reads, 200u);
  EXPECT_EQ(cold.posts, 2u);
  EXPECT_LE(cold.completions, 2u);
  const OpCost warm = Sum(Get(keys));
  EXPECT_EQ(warm.reads, 100u);
  EXPECT_EQ(warm.posts, 1u);
  EXPECT_LE(warm.completions, 1u);
}

TEST_F(MultiGetTest, OneThatIsPastItsDeadlineDoesNotHoldUpTheOthers) {
  const std::vector<std::string> keys = KeysOfHomes({1});
  ASSERT_EQ(EngineRun({.endpoints = {server_.endpoint()}, .clock = ClientClock::Real()})
                .Put(keys[1], "there")
                .outcome,
            Outcome::kOk);
  for (const std::string& key : keys) {
    auto request = KeyRequest(OpType::kGet, key);
    if (request.ok()) request->share_window = true;
    run_.Begin(std::move(request), key == keys[0] ? 0 : 30 * kNsPerSecond);
  }
  const std::vector<OpResult> results = run_.Finish(2);
  EXPECT_EQ(std::count_if(results.begin(), results.end(), [](auto& r) { return r.found; }), 1);
}

TEST_F(MultiGetTest, SharersStartAgainWhenTheConnectionBreaks) {
  const std::vector<std::string> keys = KeysOfHomes({0, 2});
  for (int round = 0; round < 5; ++round) {
    for (const std::string& key : keys) {
      auto request = KeyRequest(OpType::kGet, key);
      if (request.ok()) request->share_window = true;
      run_.Begin(std::move(request));
    }
    if (round % 2 == 0) run_.Poll();
    run_.Break();
    for (const OpResult& result : run_.Finish(3)) EXPECT_EQ(result.outcome, Outcome::kOk);
  }
}

}  // namespace
}  // namespace gannet
