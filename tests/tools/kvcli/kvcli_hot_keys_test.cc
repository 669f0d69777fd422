// kvcli hotkeys, against a real server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/server_process.h"
#include "tests/tools/kvcli/kvcli_command.h"

namespace gannet {
namespace {

using Json = nlohmann::json;
using test_support::ChildProcess;
using test_support::Finished;
using test_support::RunProgram;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Two items that are shorter might share a heat.
constexpr size_t kValueBytes = 40;

std::set<std::string> KeysOf(const std::string& lines) {
  std::istringstream in(lines);
  std::set<std::string> keys;
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, false);
    EXPECT_EQ(json["value_bytes"], kValueBytes) << line;
    EXPECT_GT(json["uses"], 0) << line;
    keys.insert(json["key"]);
  }
  return keys;
}

// Returns what `kvcli top --hotkeys=3` has under this name, once it is not empty.
Json HotKeysOfTop(const ServerProcess& server, const std::string& name) {
  ChildProcess top(
      {.argv = KvcliCommand(server, {"--json", "top", "--hotkeys=3", "--interval=100ms"})});
  for (int tries = 0; tries < 1'000; ++tries) {
    const auto line = top.ReadLine();
    if (!line) break;
    const Json json = Json::parse(*line, nullptr, false)["servers"][0];
    if (json.contains(name) && !json[name].empty()) return json[name];
  }
  return {};
}

TEST(KvcliHotKeysTest, FindsTheKeysThatAreReadMuchAmongManyThatAreNot) {
  ServerProcess server({"--memory=64M", "--on_full=evict", "--index_slots=65536"});
  const std::string value(kValueBytes, 'v');
  std::string script;
  for (int i = 0; i < 10'000; ++i) script += "put key:" + std::to_string(i) + " " + value + "\n";
  ASSERT_EQ(RunProgram(KvcliCommand(server, {}), script).exit_code, 0);
  // A client tells of an item's uses once in 16,384 GETs.
  const std::set<std::string> hot = {"key:17", "key:4711", "key:9999"};
  std::string gets;
  for (int i = 0; i < 100; ++i) {
    for (const std::string& key : hot) gets += "get " + key + "\n";
  }
  ChildProcess reader({.argv = KvcliCommand(server, {"--json"})});
  std::set<std::string> found;
  // It tells with heartbeats, so this goes on until the server knows.
  for (int tries = 0; tries < 1'000 && found != hot; ++tries) {
    for (int i = 0; i < 60; ++i) {
      ASSERT_TRUE(reader.Write(gets + "ping\n"));
      ASSERT_TRUE(reader.ReadUntil("round_trip_us"));
    }
    const Finished keys = RunProgram(KvcliCommand(server, {"--json", "hotkeys", "--count=3"}));
    ASSERT_EQ(keys.exit_code, 0) << keys.err;
    found = KeysOf(keys.out);
  }
  EXPECT_EQ(found, hot);
  EXPECT_THAT(RunProgram(KvcliCommand(server, {"hotkeys"})).out, HasSubstr(" 40 key:17\n"));
  EXPECT_EQ(HotKeysOfTop(server, "hot_keys").size(), 3u);
}

TEST(KvcliHotKeysTest, SaysWhichKeysAreLeased) {
  ServerProcess server({"--memory=64M", "--on_full=evict", "--item_lease_ms=20"});
  const std::string value(kValueBytes, 'v');
  ASSERT_EQ(RunProgram(KvcliCommand(server, {}), "put idle " + value + "\nput read " + value + "\n")
                .exit_code,
            0);
  std::string gets;
  for (int i = 0; i < 300; ++i) gets += "get read\n";
  ChildProcess reader({.argv = KvcliCommand(server, {"--json"})});
  const std::vector<std::string> hot_keys = {"--json", "hotkeys"};
  std::map<std::string, bool> leased;
  // A server leases what it was told often enough that it is READ.
  for (int tries = 0; tries < 1'000 && !leased["read"]; ++tries) {
    for (int i = 0; i < 60; ++i) {
      ASSERT_TRUE(reader.Write(gets + "ping\n"));
      ASSERT_TRUE(reader.ReadUntil("round_trip_us"));
    }
    const Finished keys = RunProgram(KvcliCommand(server, hot_keys));
    ASSERT_EQ(keys.exit_code, 0) << keys.err;
    std::istringstream in(keys.out);
    for (std::string line; std::getline(in, line);) {
      const Json json = Json::parse(line, nullptr, false);
      leased[json["key"]] = json["leased"];
    }
  }
  EXPECT_THAT(leased, ElementsAre(Pair("idle", false), Pair("read", true)));
  EXPECT_THAT(RunProgram(KvcliCommand(server, {"hotkeys"})).out,
              AllOf(HasSubstr(" 40 read  leased\n"), HasSubstr(" 40 idle\n")));
}

TEST(KvcliHotKeysTest, TopSaysWhyItHasNone) {
  ServerProcess server({"--on_full=reject"});
  EXPECT_EQ(HotKeysOfTop(server, "hot_keys_problem"),
            "the server keeps none without --on_full=evict");
}

TEST(KvcliHotKeysTest, AnEmptyServerHasNone) {
  ServerProcess server({"--on_full=evict"});
  const Finished keys = RunProgram(KvcliCommand(server, {"hotkeys"}));
  EXPECT_EQ(keys.exit_code, 0) << keys.err;
  EXPECT_EQ(keys.out, "");
}

TEST(KvcliHotKeysTest, SaysWhatItNeedsIfTheServerDoesNotEvict) {
  ServerProcess server({"--on_full=reject"});
  const Finished keys = RunProgram(KvcliCommand(server, {"hotkeys"}));
  EXPECT_EQ(keys.exit_code, 3);
  EXPECT_THAT(keys.err,
              HasSubstr("hotkeys needs kvserver --on_full=evict: without eviction the server keeps "
                        "no record of what is used"));
}

}  // namespace
}  // namespace gannet
