#include "server/main/http/server_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "nlohmann/json.hpp"
#include "server/main/http/page.h"

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
  it.stats.tier_read_us = 1'250'000;
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
  EXPECT_THAT(text, HasSubstr("gannet_tier_read_seconds_total 1.25\n"));
  EXPECT_THAT(text, HasSubstr("device=\"soft\\\"0\""));
}

TEST(ServerViewTest, OnlySeveralRailsAreShown) {
  ServerView it = Example();
  EXPECT_THAT(RenderMetrics(it), Not(HasSubstr("gannet_rail")));
  EXPECT_FALSE(nlohmann::json::parse(RenderJson(it, false)).contains("rails"));
  it.rails = {{.address = "10.0.0.1:7471",
               .device = "d0",
               .up = true,
               .mbit_per_second = 100'000,
               .mtu_bytes = 4096,
               .connections = 3,
               .requests = 5,
               .moved = 7,
               .not_moved = 2},
              {.address = "10.0.1.1:7471", .device = "d1"}};
  const std::string text = RenderMetrics(it);
  EXPECT_THAT(text, HasSubstr("gannet_rail_up{rail=\"10.0.0.1:7471\",device=\"d0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_rail_up{rail=\"10.0.1.1:7471\",device=\"d1\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("gannet_rail_bytes_per_second{rail=\"10.0.0.1:7471\"} 12500000000\n"));
  EXPECT_THAT(text, HasSubstr("gannet_rail_connections{rail=\"10.0.0.1:7471\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("gannet_rail_requests_total{rail=\"10.0.0.1:7471\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("gannet_rail_path_migrations_total{rail=\"10.0.0.1:7471\"} 7\n"));
  EXPECT_THAT(text,
              HasSubstr("gannet_rail_path_migration_errors_total{rail=\"10.0.0.1:7471\"} 2\n"));
  const auto json = nlohmann::json::parse(RenderJson(it, false));
  EXPECT_EQ(json["rails"][0]["moved"], 7);
  EXPECT_EQ(json["rails"][0]["not_moved"], 2);
  EXPECT_EQ(json["rails"][1]["address"], "10.0.1.1:7471");
  EXPECT_EQ(json["rails"][1]["up"], false);
  EXPECT_EQ(json["rails"][0]["mtu_bytes"], 4096);
  EXPECT_EQ(json["rails"][0]["requests"], 5);
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

// Labels of what n1 shows, and the end of the labels.
std::string OfN1(const std::string& more = "") {
  return "cluster=\"c\",group=\"g1\",member=\"n1\"" + more + "}";
}

ServerView OfPrimary() {
  ServerView it = Example();
  it.cluster = "c";
  it.group_name = "g1";
  Member::Seen seen{.role = Member::Role::kPrimary,
                    .node = "n1",
                    .primary = "n1",
                    .epoch = 3,
                    .members = {"n1", "n2", "n3", "n4"}};
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
                              .linked = true,
                              .rail = 1,
                              .heard = true,
                              .completed = 99,
                              .applied = 90,
                              .behind_bytes = 640},
                             {.node = "n3", .linked = true}};
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
  EXPECT_THAT(text, HasSubstr("gannet_move_partitions_wanted{" + OfN1() + " 5\n"));
  EXPECT_THAT(text, HasSubstr("gannet_move_partitions_total{" + OfN1() + " 3\n"));
  EXPECT_THAT(text, HasSubstr("gannet_move_items{" + OfN1() + " 70\n"));
  EXPECT_THAT(text, HasSubstr("gannet_move_bytes{" + OfN1() + " 700\n"));
  EXPECT_THAT(text, HasSubstr("gannet_move_walked_ratio{" + OfN1() + " 0.5\n"));
  const auto json = nlohmann::json::parse(RenderJson(OfPrimary(), false))["group"]["moves"];
  EXPECT_EQ(json["step"], "copies");
  EXPECT_EQ(json["giver"], "g1");
  EXPECT_EQ(json["partitions"], 2);
  EXPECT_EQ(json["walked"], 0.5);
  EXPECT_EQ(json["trouble"], "n9 is silent");
}

TEST(ServerViewTest, APrimaryShowsItsGroup) {
  const std::string text = RenderMetrics(OfPrimary());
  EXPECT_THAT(text, HasSubstr("gannet_group_role{" + OfN1(",role=\"primary\"") + " 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_role{" + OfN1(",role=\"backup\"") + " 0\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_epoch{" + OfN1() + " 3\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_end_lsn{" + OfN1() + " 100\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_committed_lsn{" + OfN1() + " 98\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_lease_seconds{" + OfN1() + " 0.25\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_waiting_bytes{" + OfN1() + " 7\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_links_broken_total{" + OfN1() + " 2\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backups_removed_total{" + OfN1() + " 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_members_in_sync{" + OfN1() + " 2\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_stream_version{" + OfN1() + " 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_in_sync{" + OfN1(",backup=\"n2\"") + " 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_in_sync{" + OfN1(",backup=\"n3\"") + " 0\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_heard{" + OfN1(",backup=\"n2\"") + " 1\n"));
  EXPECT_THAT(text,
              HasSubstr("gannet_group_backup_lag_bytes{" + OfN1(",backup=\"n2\"") + " 640\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_linked{" + OfN1(",backup=\"n3\"") + " 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_rail{" + OfN1(",backup=\"n2\"") + " 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_members{" + OfN1() + " 4\n"));
  EXPECT_THAT(text, Not(HasSubstr("lag_records"))) << "what is counted is bytes of the stream";
  EXPECT_THAT(text, HasSubstr(",cluster=\"c\",group=\"g1\",member=\"n1\"} 1\n")) << "gannet_info";

  const auto json = nlohmann::json::parse(RenderJson(OfPrimary(), false))["group"];
  EXPECT_EQ(json["role"], "primary");
  EXPECT_EQ(json["epoch"], 3);
  EXPECT_EQ(json["lease_ms"], 250);
  EXPECT_FALSE(json["backups"][0].contains("lag_records"));
  EXPECT_EQ(json["cluster"], "c");
  EXPECT_EQ(json["group"], "g1");
  EXPECT_EQ(json["backups"][0]["lag_bytes"], 640);
  EXPECT_EQ(json["backups"][0]["rail"], 1);
  EXPECT_EQ(json["backups"][1]["in_sync"], false);
}

TEST(ServerViewTest, APrimaryShowsMembersThatAreNotThere) {
  const std::string text = RenderMetrics(OfPrimary());
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_linked{" + OfN1(",backup=\"n4\"") + " 0\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_backup_in_sync{" + OfN1(",backup=\"n4\"") + " 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("backup=\"n1\""))) << "it is no backup of its own";
  const auto backups = nlohmann::json::parse(RenderJson(OfPrimary(), false))["group"]["backups"];
  ASSERT_EQ(backups.size(), 3u);
  EXPECT_EQ(backups[2]["node"], "n4");
  EXPECT_EQ(backups[2]["linked"], false);
}

TEST(ServerViewTest, AJoiningMemberShowsHowMuchItHas) {
  ServerView it = OfPrimary();
  it.group = Member::Seen{.role = Member::Role::kJoining, .node = "n1", .joined_percent = 43};
  EXPECT_THAT(RenderMetrics(it), HasSubstr("gannet_group_joined_ratio{" + OfN1() + " 0.43\n"));
  EXPECT_EQ(nlohmann::json::parse(RenderJson(it, false))["group"]["joined_percent"], 43);
}

TEST(ServerViewTest, ABackupShowsItsRoleAndHowFarItIs) {
  ServerView it = OfPrimary();
  it.group = Member::Seen{
      .role = Member::Role::kBackup, .node = "n1", .primary = "n2", .epoch = 3, .applied = 90};
  const std::string text = RenderMetrics(it);
  EXPECT_THAT(text, HasSubstr("gannet_group_role{" + OfN1(",role=\"backup\"") + " 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_group_applied_lsn{" + OfN1() + " 90\n"));
  EXPECT_THAT(text, Not(HasSubstr("gannet_group_lease_seconds"))) << "only a primary has one";
  EXPECT_EQ(nlohmann::json::parse(RenderJson(it, false))["group"]["primary"], "n2");
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
  EXPECT_THAT(WhyMemberIsNotReady(member), HasSubstr("does not take clients yet"));
  member.open = true;
  EXPECT_THAT(WhyMemberIsNotReady(member), HasSubstr("without a lease"));
  member.as_primary.lease_left_ns = 1;
  EXPECT_EQ(WhyMemberIsNotReady(member), "");
  member.not_announced = "no space";
  EXPECT_THAT(WhyMemberIsNotReady(member),
              HasSubstr("as etcd takes nothing, in epoch 3: no space"));
  EXPECT_THAT(RenderMetrics(ServerView{.group = member}), HasSubstr("gannet_group_etcd_refuses 1"));
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
