// What a MultiGet costs in verbs: prints JSON for ./dev bench, and checks bounds. A round trip is a
// post.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "common/base/client_clock.h"
#include "tests/client/engine/engine_run.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

class MultiGetCostTest : public ::testing::TestWithParam<int> {
 protected:
  static OpCost Get(EngineRun& run, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      auto request = KeyRequest(OpType::kGet, key);
      if (request.ok()) request->share_window = true;
      run.Begin(std::move(request));
    }
    OpCost sum;
    for (const OpResult& result : run.Finish(keys.size())) {
      EXPECT_TRUE(result.found);
      sum.reads += result.cost.reads;
      sum.posts += result.cost.posts;
      sum.completions += result.cost.completions;
    }
    return sum;
  }
  static void Print(const char* kind, const OpCost& cost) {
    std::printf(
        "{\"keys\": %d, \"kind\": \"%s\", \"reads\": %d, \"posts\": %d, "
        "\"completions\": %d}\n",
        GetParam(), kind, cost.reads, cost.posts, cost.completions);
  }

  ServerProcess server_;
};

TEST_P(MultiGetCostTest, TwoRoundTripsColdAndOneWarm) {
  std::vector<std::string> keys;
  EngineRun other({.endpoints = {server_.endpoint()}, .clock = ClientClock::Real()});
  for (int i = 0; i < GetParam(); ++i) {
    keys.push_back("key" + std::to_string(i));
    ASSERT_EQ(other.Put(keys.back(), "value").outcome, Outcome::kOk);
  }
  // A busy machine may hold a READ up, and the rest then goes out in another post. So this takes
  // the least disturbed of several tries.
  constexpr int kTries = 10;
  OpCost cold, warm;
  for (int i = 0; i < kTries; ++i) {
    EngineRun run({.endpoints = {server_.endpoint()}, .clock = ClientClock::Real()});
    const OpCost first = Get(run, keys);
    const OpCost second = Get(run, keys);
    if (i == 0 || first.posts < cold.posts) cold = first;
    if (i == 0 || second.posts < warm.posts) warm = second;
  }
  Print("cold", cold);
  Print("warm", warm);
  EXPECT_EQ(cold.posts, 2);
  EXPECT_LE(cold.reads, 2 * GetParam());
  EXPECT_LE(cold.completions, 2);
  EXPECT_EQ(warm.posts, 1);
  EXPECT_LE(warm.completions, 1);
  EXPECT_EQ(warm.reads, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Keys, MultiGetCostTest, testing::Values(10, 100));

}  // namespace
}  // namespace gannet
