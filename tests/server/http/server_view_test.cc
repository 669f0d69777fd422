#include "server/http/server_view.h"

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

ServerView Example() {
  ServerView it;
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

TEST(ServerViewTest, MetricsSayWhatTheViewSays) {
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
TEST(ServerViewTest, LatenciesAreACumulativeHistogram) {
  const std::string text = RenderMetrics(Example());
  const std::string name = "gannet_client_latency_seconds_bucket{kind=\"get\",le=";
  EXPECT_THAT(text, HasSubstr(name + "\"5.12e-07\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(name + "\"1.024e-06\"} 99\n"));
  EXPECT_THAT(text, HasSubstr(name + "\"0.000131072\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("gannet_client_latency_seconds_count{kind=\"get\"} 100\n"));
}

TEST(ServerViewTest, KeysAreShownOnlyIfAskedFor) {
  EXPECT_THAT(RenderMetrics(Example()), Not(HasSubstr("secret")));
  EXPECT_THAT(RenderJson(Example(), false), Not(HasSubstr("secret")));
  EXPECT_THAT(RenderJson(Example(), true), HasSubstr("secret"));
}

TEST(ServerViewTest, JsonIsWholeWhateverBytesAKeyHas) {
  ServerView it = Example();
  it.slow[0].key[0] = '\xff';
  const auto json = nlohmann::json::parse(RenderJson(it, true));
  EXPECT_EQ(json["clients"]["hits"], 900);
  EXPECT_EQ(json["requests"]["put"], 42);
  EXPECT_EQ(json["store"]["classes"][0]["block_bytes"], 128);
  EXPECT_EQ(json["slow"]["list"][0]["us"], 12'345);
}

ServerView OfPrimary() {
  ServerView it = Example();
  Member::Seen seen{.role = Member::Role::kPrimary, .node = "n1", .primary = "n1", .epoch = 3};
  seen.as_primary = {.epoch = 3,
                     .end = 100,
                     .committed = 98,
                     .lease_left_ns = 250 * kNsPerMs,
                     .waiting_bytes = 7,
                     .links_broken = 2,
                     .removed = 1,
                     .stream_version = 1};
  seen.as_primary.backups = {{.node = "n2",
                              .in_sync = true,
                              .heard = true,
                              .completed = 99,
                              .applied = 90,
                              .behind_bytes = 640},
                             {.node = "n3"}};
  seen.moves = {.step = "copies",
                .giver = "g1",
                .partitions = 2,
                .wanted = 5,
                .items = 70,
                .bytes = 700,
                .walked = 0.5,
                .moved = 3,
                .trouble = "n9 is silent"};
  it.group = seen;
  return it;
}

TEST(ServerViewTest, APrimaryShowsWhichPartitionsCome) {
  const std::string text = RenderMetrics(OfPrimary());
  EXPECT_THAT(text, HasSubstr("gannet_move_partitions_wanted 5\n"));
  EXPECT_THAT(text, HasSubstr("gannet_move_partitions_total 3\n"));
  EXPECT_THAT(text, HasSubstr("gannet_move_items 70\n"));
  EXPECT_THAT(text, HasSubstr("gannet_move_bytes 700\n"));
  EXPECT_THAT(text, HasSubstr("gannet_move_walked_ratio 0.5\n"));
  const auto json = nlohmann::json::parse(RenderJson(OfPrimary(), false))["group"]["moves"];
  EXPECT_EQ(json["step"], "copies");
  EXPECT_EQ(json["giver"], "g1");
  EXPECT_EQ(json["partitions"], 2);
  EXPECT_EQ(json["walked"], 0.5);
  EXPECT_EQ(json["trouble"], "n9 is silent");
}

TEST(ServerViewTest, APrimaryShowsItsGroup) {
  const std::string text = RenderMetrics(OfPrimary());
  EXPECT_THAT(text, HasSubstr("gannet_group_role{node=\"n1\",role=\"primary\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_role{node=\"n1\",role=\"backup\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_epoch 3\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_end_lsn 100\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_committed_lsn 98\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_lease_seconds 0.25\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_waiting_bytes 7\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_links_broken_total 2\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backups_removed_total 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_members_in_sync 2\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_stream_version 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_in_sync{node=\"n2\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_in_sync{node=\"n3\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_heard{node=\"n2\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_lag_bytes{node=\"n2\"} 640\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_lag_records{node=\"n2\"} 10\n"));

  const auto json = nlohmann::json::parse(RenderJson(OfPrimary(), false))["group"];
  EXPECT_EQ(json["role"], "primary");
  EXPECT_EQ(json["epoch"], 3);
  EXPECT_EQ(json["lease_ms"], 250);
  EXPECT_EQ(json["backups"][0]["lag_records"], 10);
  EXPECT_EQ(json["backups"][0]["lag_bytes"], 640);
  EXPECT_EQ(json["backups"][1]["in_sync"], false);
}

TEST(ServerViewTest, ABackupShowsItsRoleAndHowFarItIs) {
  ServerView it = Example();
  it.group = Member::Seen{
      .role = Member::Role::kBackup, .node = "n2", .primary = "n1", .epoch = 3, .applied = 90};
  const std::string text = RenderMetrics(it);
  EXPECT_THAT(text, HasSubstr("gannet_group_role{node=\"n2\",role=\"backup\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_applied_lsn 90\n"));
  EXPECT_THAT(text, Not(HasSubstr("gannet_group_lease_seconds"))) << "only a primary has one";
  EXPECT_EQ(nlohmann::json::parse(RenderJson(it, false))["group"]["primary"], "n1");
}

TEST(ServerViewTest, AServerInNoGroupShowsNothingOfGroups) {
  EXPECT_THAT(RenderMetrics(Example()), Not(HasSubstr("group")));
  EXPECT_THAT(RenderJson(Example(), true), Not(HasSubstr("group")));
}

TEST(ServerViewTest, WhoServesOrMayTakeOverIsReady) {
  Member::Seen member{.role = Member::Role::kBackup, .node = "n2", .epoch = 3};
  EXPECT_EQ(WhyMemberIsNotReady(member), "");
  member.role = Member::Role::kJoining;
  EXPECT_EQ(WhyMemberIsNotReady(member),
            "n2 joins its group and does not have all items yet, in epoch 3");
  member.role = Member::Role::kPrimary;
  EXPECT_THAT(WhyMemberIsNotReady(member), HasSubstr("without a lease"));
  member.as_primary.lease_left_ns = 1;
  EXPECT_EQ(WhyMemberIsNotReady(member), "");
  member.role = Member::Role::kEnded;
  EXPECT_THAT(WhyMemberIsNotReady(member), HasSubstr("starts again"));
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
