#include "tools/kvcli/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gannet::kvcli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const std::vector<ViewLine>& lines) {
  std::string text;
  for (const ViewLine& line : lines) text += line.text + "\n";
  return text;
}

ClientChange Busy(uint32_t session, uint64_t hits, uint64_t misses) {
  ClientChange client;
  client.now.peer = "10.0.0." + std::to_string(session) + ":4000";
  client.now.session_id = session;
  client.now.last_request = "get";
  client.done = {.requests = 4, .hits = hits, .misses = misses, .reads = 2 * hits};
  return client;
}

ServerChange Server(std::vector<ClientChange> clients) {
  ServerChange server;
  server.now.endpoint = "10.0.0.9:7471";
  server.now.name = "cache-1";
  server.now.stats.heap_bytes = uint64_t{64} << 20;
  server.now.stats.heap_total = uint64_t{128} << 20;
  server.now.stats.items = 1234;
  server.now.stats.uptime_ms = 3'720'000;
  server.seconds = 2;
  server.cores = 0.25;
  server.requests = 100;
  for (const ClientChange& client : clients) server.done += client.done;
  server.clients = std::move(clients);
  return server;
}

TEST(TopViewTest, ShowsTheServerAndItsClients) {
  const std::vector<ServerChange> servers = {Server({Busy(1, 9000, 1000), Busy(2, 0, 0)})};
  const std::vector<ViewLine> lines = TopView(servers, kNoLimit);
  const std::string text = Text(lines);
  EXPECT_THAT(text, HasSubstr("cache-1 (10.0.0.9:7471)  up 1 h 2 min  rates of the last 2.0 s"));
  EXPECT_THAT(text,
              HasSubstr("GETs 5.00k/s  hits 90.0 %  READs/GET 1.80  requests 50/s  CPU 0.25"));
  EXPECT_THAT(text, HasSubstr("memory 64 MiB of 128 MiB (50.0 %)  items 1234"));
  EXPECT_EQ(std::ranges::count_if(lines, &ViewLine::heading), 1);
  EXPECT_EQ(lines[lines.size() - 2].text,
            "10.0.0.1:4000                1    5.00k   90.0      1.80          2        -        -"
            "  get");
  EXPECT_EQ(lines.back().text,
            "10.0.0.2:4000                2        0      -         -          2        -        -"
            "  get");
}

TEST(TopViewTest, ShowsRailsOnlyIfThereAreSeveral) {
  ServerChange server = Server({});
  server.now.rails = {{.address = "10.0.0.1:7471", .connected = true, .connections = 3}};
  EXPECT_THAT(Text(TopView({&server, 1}, kNoLimit)), Not(HasSubstr("rails")));
  EXPECT_FALSE(TopJson({&server, 1})["servers"][0].contains("rails"));
  server.now.rails.push_back({.address = "10.0.1.1:7471", .up = false, .connections = 1});
  server.now.rails.push_back({.address = "10.0.2.1:7471"});
  EXPECT_THAT(Text(TopView({&server, 1}, kNoLimit)),
              HasSubstr("  rails  10.0.0.1:7471 up, 3 connections (75.0 %)  10.0.1.1:7471 down, 1 "
                        "connections (25.0 %)  10.0.2.1:7471 not reached, 0 connections (0.0 %)"));
  const Json json = TopJson({&server, 1})["servers"][0]["rails"];
  EXPECT_EQ(json[0]["state"], "up");
  EXPECT_EQ(json[1]["share"], 0.25);
}

TEST(TopViewTest, ShowsADiskBehindTheMemoryOnlyIfThereIsOne) {
  ServerChange server = Server({});
  EXPECT_THAT(Text(TopView({&server, 1}, kNoLimit)), Not(HasSubstr("disk")));
  EXPECT_FALSE(TopJson({&server, 1})["servers"][0].contains("tier"));
  server.now.stats.tier_disk = 3;
  server.now.stats.tier_bytes = uint64_t{1} << 40;
  server.now.stats.items_on_disk = 77;
  server.now.stats.tier_stub_bytes = 512;
  server.now.stats.tier_stub_budget = 1024;
  server.tier = {
      .hits = 30, .reads = 20, .read_us = 5000, .written = 8, .evicted = 4, .unwritten = 2};
  EXPECT_THAT(
      Text(TopView({&server, 1}, kNoLimit)),
      AllOf(HasSubstr("  disk full, 1 TiB  items 77  stubs 512 B of 1 KiB (50.0 %)\n"),
            HasSubstr("hits 15/s  reads 10/s of 250 us  written 4/s  evicted 2/s, unwritten 1/s")));
  const Json json = TopJson({&server, 1})["servers"][0]["tier"];
  EXPECT_EQ(json["state"], "full");
  EXPECT_EQ(json["hits_per_s"], 15);
  EXPECT_EQ(json["read_us"], 250);
  EXPECT_EQ(json["stub_budget"], 1024);
}

TEST(TopViewTest, FitsTheWindow) {
  std::vector<ClientChange> clients;
  for (uint32_t i = 0; i < 100; ++i) clients.push_back(Busy(i, 1000 - i, 0));
  const std::vector<ServerChange> servers = {Server(clients)};
  for (size_t height = 1; height <= 110; ++height) {
    const std::vector<ViewLine> lines = TopView(servers, {.columns = 40, .lines = height});
    EXPECT_EQ(lines.size(), std::min<size_t>(height, 106));
    for (const ViewLine& line : lines) EXPECT_LE(line.text.size(), 40u);
  }
  // Four lines of the server, an empty one, the heading, and this.
  EXPECT_EQ(TopView(servers, {.columns = 80, .lines = 20}).back().text, "  and 87 more");
  EXPECT_EQ(TopView(servers, {.columns = 80, .lines = 105}).back().text, "  and 2 more");
  EXPECT_THAT(TopView(servers, {.columns = 80, .lines = 106}).back().text, HasSubstr("10.0.0.99:"));
}

TEST(TopViewTest, ShowsNoRatesAfterOneLook) {
  ServerChange server = Server({Busy(1, 0, 0)});
  server.seconds = 0;
  EXPECT_THAT(Text(TopView({&server, 1}, kNoLimit)),
              AllOf(HasSubstr("measuring"), HasSubstr("GETs -/s"), HasSubstr("CPU - cores")));
  const Json json = TopJson({&server, 1});
  EXPECT_TRUE(json["servers"][0]["gets_per_s"].is_null());
  EXPECT_TRUE(json["servers"][0]["hit_ratio"].is_null());
  EXPECT_TRUE(json["servers"][0]["clients"][0]["requests_per_s"].is_null());
}

TEST(TopViewTest, SaysThatAServerDoesNotAnswerAndShowsTheOthers) {
  ServerChange lost;
  lost.now.endpoint = "10.0.0.8:7471";
  lost.now.problem = "connection refused";
  const std::vector<ServerChange> servers = {lost, Server({Busy(1, 10, 0)})};
  EXPECT_THAT(Text(TopView(servers, kNoLimit)),
              AllOf(HasSubstr("10.0.0.8:7471  does not answer; trying again\n"
                              "  connection refused\n"),
                    HasSubstr("at 10.0.0.9:7471")));
  EXPECT_EQ(TopJson(servers)["servers"][0]["problem"], "connection refused");
  EXPECT_THAT(Text(TopView({&lost, 1}, kNoLimit)), Not(HasSubstr("session")));
}

TEST(TopViewTest, SaysThatAServerWasRestarted) {
  ServerChange server = Server({});
  server.restarted = true;
  EXPECT_THAT(Text(TopView({&server, 1}, kNoLimit)),
              AllOf(HasSubstr("restarted"), HasSubstr("rates of its first 2.0 s"),
                    HasSubstr("no other clients")));
  EXPECT_EQ(TopJson({&server, 1})["servers"][0]["restarted"], true);
}

TEST(TopViewTest, SaysThatAServerIsPrimaryOfAGroupAndHowOftenItFailedOver) {
  ServerChange server = Server({});
  EXPECT_THAT(Text(TopView({&server, 1}, kNoLimit)), Not(HasSubstr("primary")));
  EXPECT_FALSE(TopJson({&server, 1})["servers"][0].contains("role"));
  server.now.history = 9;
  server.now.epoch = 3;
  EXPECT_THAT(Text(TopView({&server, 1}, kNoLimit)), HasSubstr(", primary of epoch 3  rates"));
  server.fail_overs = 2;
  EXPECT_THAT(Text(TopView({&server, 1}, kNoLimit)),
              HasSubstr("epoch 3 after 2 fail-overs  rates"));
  EXPECT_EQ(TopJson({&server, 1})["servers"][0]["role"], "primary");
  EXPECT_EQ(TopJson({&server, 1})["servers"][0]["epoch"], 3);
  EXPECT_EQ(TopJson({&server, 1})["servers"][0]["fail_overs"], 2);
}

TEST(TopViewTest, SortsClientsOfAllServersByWhatTheyDoInASecond) {
  ServerChange slow = Server({Busy(1, 1000, 0)});
  slow.seconds = 100;
  const std::vector<ServerChange> servers = {slow, Server({Busy(2, 500, 0)})};
  const std::string text = Text(TopView(servers, kNoLimit));
  EXPECT_LT(text.find("10.0.0.2:4000"), text.find("10.0.0.1:4000"));
}

TEST(TopViewTest, WhatAServerTellsDoesNotCommandTheTerminal) {
  ServerChange server = Server({Busy(1, 1, 0)});
  server.clients[0].now.peer = "\x1b[2J\xc2\x9bpeer";
  server.now.name = "na\x1bme";
  for (const ViewLine& line : TopView({&server, 1}, kNoLimit)) {
    EXPECT_TRUE(std::ranges::all_of(line.text, [](char c) { return c >= ' ' && c <= '~'; }))
        << line.text;
  }
}

TEST(TopViewTest, JsonHasNumbersOfTheServerAndEachClient) {
  ServerChange server = Server({Busy(1, 9000, 1000)});
  server.arrived = 1;
  server.clients[0].is_new = true;
  const Json json = TopJson({&server, 1})["servers"][0];
  EXPECT_EQ(json["name"], "cache-1");
  EXPECT_EQ(json["gets_per_s"], 5000);
  EXPECT_EQ(json["hit_ratio"], 0.9);
  EXPECT_EQ(json["reads_per_get"], 1.8);
  EXPECT_EQ(json["requests_per_s"], 50);
  EXPECT_EQ(json["cores"], 0.25);
  EXPECT_EQ(json["arrived"], 1);
  EXPECT_EQ(json["clients"][0]["peer"], "10.0.0.1:4000");
  EXPECT_EQ(json["clients"][0]["new"], true);
  EXPECT_EQ(json["clients"][0]["requests_per_s"], 2);
}

TEST(TopViewTest, AmountsHaveThreeDigits) {
  EXPECT_EQ(Amount(0), "0");
  EXPECT_EQ(Amount(7), "7");
  EXPECT_EQ(Amount(0.5), "0.50");
  EXPECT_EQ(Amount(12.34), "12.3");
  EXPECT_EQ(Amount(999.4), "999");
  EXPECT_EQ(Amount(999.6), "1.00k");
  EXPECT_EQ(Amount(41'234), "41.2k");
  EXPECT_EQ(Amount(3.07e6), "3.07M");
  EXPECT_EQ(Amount(4e12), "4000G");
}

TEST(TopViewTest, CutsBetweenCharacters) {
  EXPECT_EQ(CutTo("abc", 5), "abc");
  EXPECT_EQ(CutTo("abc", 2), "ab");
  EXPECT_EQ(CutTo("a\xc3\xa9z", 2), "a\xc3\xa9");
  EXPECT_EQ(CutTo("a\xc3\xa9z", 1), "a");
  EXPECT_EQ(CutTo("abc", 0), "");
}

TEST(TopViewTest, ShowsHotKeysAboveTheClients) {
  std::vector<ServerChange> servers = {Server({Busy(1, 9000, 1000)})};
  HotKeysLook& look = servers[0].now.hot_keys.emplace();
  EXPECT_THAT(Text(TopView(servers, kNoLimit)), HasSubstr("hot keys: none yet\n"));
  HotKey key;
  key.key = "a\x1b[2J";
  key.uses = 32;
  key.at_least = true;
  key.info.value_bytes = 100;
  HotKey leased = {.key = "b", .uses = 16, .at_least = false, .info = {}, .leased = true};
  look.keys = {key, leased};
  const std::string text = Text(TopView(servers, kNoLimit));
  EXPECT_THAT(text, HasSubstr("     32+        100  \"a\\x1b[2J\"\n"));
  EXPECT_THAT(text, HasSubstr("      16          0  b  leased\n"));
  EXPECT_LT(text.find("32+"), text.find("10.0.0.1:4000"));
  const Json json = TopJson(servers)["servers"][0];
  EXPECT_EQ(json["hot_keys"][0]["uses"], 32);
  look = {.keys = {}, .problem = "it keeps none"};
  EXPECT_THAT(Text(TopView(servers, kNoLimit)), HasSubstr("hot keys: it keeps none\n"));
  EXPECT_EQ(TopJson(servers)["servers"][0]["hot_keys_problem"], "it keeps none");
}

}  // namespace
}  // namespace gannet::kvcli
