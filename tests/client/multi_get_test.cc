// What GETs that are begun together share, counted in verbs.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/client/engine_run.h"
#include "tests/integration/server_process.h"

namespace gannet {
namespace {

class MultiGetTest : public ::testing::Test {
 protected:
  MultiGetTest() : run_({.endpoints = {server_.endpoint()}}) {}

  uint64_t HomeOf(const std::string& key) {
    const IndexView& view = run_.engine().session(0).view();
    return KeyHash::Of(key, view.hash_seed).Home(view.index.homes);
  }
  std::vector<OpResult> Get(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      auto request = KeyRequest(run_.engine(), OpType::kGet, key);
      if (request.ok()) request->share_window = true;
      run_.Begin(std::move(request));
    }
    return run_.Finish(keys.size());
  }
  std::vector<std::string> KeysOfOneHome(size_t n) {
    std::vector<std::string> keys = {"first"};
    for (int i = 0; keys.size() < n; ++i) {
      const std::string key = "other" + std::to_string(i);
      if (HomeOf(key) == HomeOf(keys[0])) keys.push_back(key);
    }
    return keys;
  }
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
  const std::vector<std::string> keys = KeysOfOneHome(3);
  for (const std::string& key : keys) {
    ASSERT_EQ(EngineRun({.endpoints = {server_.endpoint()}}).Put(key, key).outcome, Outcome::kOk);
  }
  const std::vector<OpResult> results = Get(keys);
  std::vector<std::string> values;
  for (const OpResult& result : results) {
    EXPECT_TRUE(result.found);
    values.push_back(result.value);
  }
  EXPECT_TRUE(std::is_permutation(values.begin(), values.end(), keys.begin(), keys.end()));
  const OpCost cold = Sum(results);
  EXPECT_EQ(cold.reads, 1u + 3u);
  EXPECT_EQ(cold.posts, 2u);  // two round trips
  EXPECT_EQ(cold.completions, 2u);
  const OpCost warm = Sum(Get(keys));
  EXPECT_EQ(warm.reads, 3u);
  EXPECT_EQ(warm.posts, 1u);
  EXPECT_EQ(warm.completions, 1u);
}

// Not of keys that are absent: a miss whose READ took too long on a busy machine is looked up
// again.
TEST_F(MultiGetTest, AllFirstReadsAreOnePost) {
  std::vector<std::string> keys;
  {
    EngineRun other({.endpoints = {server_.endpoint()}});
    for (int i = 0; i < 100; ++i) {
      keys.push_back("key" + std::to_string(i));
      ASSERT_EQ(other.Put(keys.back(), "value").outcome, Outcome::kOk);
    }
  }
  const OpCost cold = Sum(Get(keys));
  EXPECT_LE(cold.reads, 200u);
  EXPECT_LE(cold.posts * 8, cold.reads);  // two, unless the device is held up between the windows
  const OpCost warm = Sum(Get(keys));
  EXPECT_EQ(warm.reads, 100u);
  EXPECT_EQ(warm.posts, 1u);
  EXPECT_EQ(warm.completions, 13u);
}

TEST_F(MultiGetTest, OneThatIsPastItsDeadlineDoesNotHoldUpTheOthers) {
  const std::vector<std::string> keys = KeysOfOneHome(2);
  ASSERT_EQ(EngineRun({.endpoints = {server_.endpoint()}}).Put(keys[1], "there").outcome,
            Outcome::kOk);
  for (const std::string& key : keys) {
    auto request = KeyRequest(run_.engine(), OpType::kGet, key);
    if (request.ok()) request->share_window = true;
    run_.Begin(std::move(request), key == keys[0] ? 0 : 30 * kNsPerSecond);
  }
  const std::vector<OpResult> results = run_.Finish(2);
  EXPECT_EQ(std::count_if(results.begin(), results.end(), [](auto& r) { return r.found; }), 1);
}

TEST_F(MultiGetTest, SharersStartAgainWhenTheConnectionBreaks) {
  const std::vector<std::string> keys = KeysOfOneHome(3);
  for (int round = 0; round < 5; ++round) {
    for (const std::string& key : keys) {
      auto request = KeyRequest(run_.engine(), OpType::kGet, key);
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
