#include "server/http/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "nlohmann/json.hpp"
#include "server/http/page.h"

namespace gannet {
namespace {

using testing::HasSubstr;
using testing::Not;

Snapshot Example() {
  Snapshot it;
  it.version = "1.2.3";
  it.device = "soft\"0";  // quotes must not end a label
  it.kind = "softverbs";
  it.requests[static_cast<size_t>(Opcode::kPut)] = 42;
  it.clients = {.hits = 900, .misses = 100, .reads = 1001, .by_rpc = 3};
  it.latencies[0][LatencyBucket::Of(1000)] = 99;
  it.latencies[0][LatencyBucket::Of(100'000)] = 1;
  it.blocks[SizeClassFor(128)] = {10, 1280};
  it.stats.items = 10;
  it.stats.uptime_ms = 2500;
  it.stats.disk_behind_ms = 750;
  it.locks_held = 1;
  it.longest_lock_ms = 1500;
  SlowEntry slow{};
  slow.us = 12'345;
  slow.key_bytes = 6;
  std::strcpy(slow.key, "secret");
  it.slow.push_back(slow);
  it.slow_requests = 1;
  return it;
}

TEST(SnapshotTest, MetricsSayWhatTheSnapshotSays) {
  const std::string text = RenderMetrics(Example());
  EXPECT_THAT(text, HasSubstr("gannet_requests_total{opcode=\"put\"} 42\n"));
  EXPECT_THAT(text, HasSubstr("gannet_client_gets_total{result=\"hit\"} 900\n"));
  EXPECT_THAT(text, HasSubstr("gannet_client_gets_total{result=\"miss\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("gannet_client_reads_total 1001\n"));
  EXPECT_THAT(text, HasSubstr("gannet_heap_class_bytes{block_bytes=\"128\"} 1280\n"));
  EXPECT_THAT(text, HasSubstr("gannet_uptime_seconds 2.5\n"));
  EXPECT_THAT(text, HasSubstr("gannet_lock_held_max_seconds 1.5\n"));
  EXPECT_THAT(text, HasSubstr("gannet_disk_behind_seconds 0.75\n"));
  EXPECT_THAT(text, HasSubstr("device=\"soft\\\"0\""));
}

// A histogram of Prometheus is cumulative, and its buckets are the doublings.
TEST(SnapshotTest, LatenciesAreACumulativeHistogram) {
  const std::string text = RenderMetrics(Example());
  const std::string name = "gannet_client_latency_seconds_bucket{kind=\"get\",le=";
  EXPECT_THAT(text, HasSubstr(name + "\"5.12e-07\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(name + "\"1.024e-06\"} 99\n"));
  EXPECT_THAT(text, HasSubstr(name + "\"0.000131072\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("gannet_client_latency_seconds_count{kind=\"get\"} 100\n"));
}

TEST(SnapshotTest, KeysAreShownOnlyIfAskedFor) {
  EXPECT_THAT(RenderMetrics(Example()), Not(HasSubstr("secret")));
  EXPECT_THAT(RenderJson(Example(), false), Not(HasSubstr("secret")));
  EXPECT_THAT(RenderJson(Example(), true), HasSubstr("secret"));
}

TEST(SnapshotTest, JsonIsWholeWhateverBytesAKeyHas) {
  Snapshot it = Example();
  it.slow[0].key[0] = '\xff';
  const auto json = nlohmann::json::parse(RenderJson(it, true));
  EXPECT_EQ(json["clients"]["hits"], 900);
  EXPECT_EQ(json["requests"]["put"], 42);
  EXPECT_EQ(json["store"]["classes"][0]["block_bytes"], 128);
  EXPECT_EQ(json["slow"]["list"][0]["us"], 12'345);
}

TEST(PageTest, NeedsNothingFromElsewhere) {
  const std::string page(kPage);
  EXPECT_THAT(page, HasSubstr("width=device-width"));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
}

}  // namespace
}  // namespace gannet
