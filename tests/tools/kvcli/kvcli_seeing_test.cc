// The commands of kvcli that look at a server, against a real one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class KvcliSeeingTest : public ::testing::Test {
 protected:
  static Words Command(const Words& words) {
    Words all = KvcliCommand(server(), {"--deadline_ms=60000"});
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  static Finished Run(const Words& words, std::string_view input = "") {
    return RunProgram(Command(words), input);
  }
  static std::vector<Json> RunJson(Words words) {
    words.insert(words.begin(), "--json");
    std::istringstream lines(Run(words).out);
    std::vector<Json> all;
    for (std::string line; std::getline(lines, line);) {
      all.push_back(Json::parse(line, nullptr, false));
    }
    return all;
  }
  static ServerProcess& server() {
    static ServerProcess server({"--memory=64M", "--index_slots=256", "--slowlog_us=1"});
    return server;
  }
  static std::multiset<std::string> Lines(const std::string& text) {
    std::istringstream lines(text);
    std::multiset<std::string> all;
    for (std::string line; std::getline(lines, line);) all.insert(line);
    return all;
  }
};

TEST_F(KvcliSeeingTest, ScanListsTheKeysThatAreWanted) {
  std::string script = "put \"scan\\x00\\xff\" binary\n";
  std::multiset<std::string> keys = {"\"scan\\x00\\xff\""};
  for (int i = 0; i < 400; ++i) {  // more than the index has slots, so that it grew
    script += "put scan:" + std::to_string(i) + " value\n";
    keys.insert("scan:" + std::to_string(i));
  }
  ASSERT_EQ(Run({}, script).exit_code, 0);
  EXPECT_EQ(Lines(Run({"scan", "--prefix=scan"}).out), keys);
  EXPECT_EQ(Lines(Run({"scan", "--match=scan:39?"}).out).size(), 10u);
  EXPECT_EQ(Lines(Run({"scan", "--prefix=scan", "--limit=3"}).out).size(), 3u);
  EXPECT_EQ(Run({"scan", "--prefix=scan:7", "--match=*:7", "--values"}).out, "scan:7 value\n");
  const std::vector<Json> all = RunJson({"scan", "--prefix=scan:", "--match=*:8", "--values"});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["key"], "scan:8");
  EXPECT_EQ(all[0]["value"], "value");
}

// At 20 READs a second the walk takes longer than the line waits for, on any machine.
TEST_F(KvcliSeeingTest, ALongWalkShowsItsProgressOnATerminalOnly) {
  std::string script;
  for (int i = 0; i < 30; ++i) script += "put walk:" + std::to_string(i) + " value\n";
  ASSERT_EQ(Run({}, script).exit_code, 0);
  const Words words = {"bigkeys", "--prefix=walk:", "--count=1", "--rate=300"};
  ChildProcess kvcli({.argv = Command(words), .streams = ChildProcess::Streams::kTerminal});
  EXPECT_TRUE(kvcli.ReadUntil("\r\033[Kkvcli: "));
  EXPECT_TRUE(kvcli.ReadUntil(" items"));
  EXPECT_TRUE(kvcli.ReadUntil("\r\033[K"));
  EXPECT_TRUE(kvcli.ReadUntil("walk:"));
  kvcli.ReadAll();
  EXPECT_EQ(kvcli.Wait(), 0);
  const Finished piped = Run(words);
  EXPECT_EQ(piped.err, "");
  EXPECT_THAT(piped.out, HasSubstr("walk:"));
}

TEST_F(KvcliSeeingTest, BigKeysAndMemoryTellWhatItemsTake) {
  const std::string script = "put big:1 " + std::string(10, 'v') + "\nput big:2 " +
                             std::string(20, 'v') + "\nput big:3 " + std::string(9000, 'v') + "\n";
  ASSERT_EQ(Run({}, script).exit_code, 0);
  EXPECT_EQ(Run({"bigkeys", "--prefix=big:", "--count=2"}).out,
            "      9000 big:3\n        20 big:2\n");
  const std::vector<Json> memory = RunJson({"memory", "--prefix=big:"});
  ASSERT_EQ(memory.size(), 1u);
  EXPECT_EQ(memory[0]["items"], 3);
  EXPECT_EQ(memory[0]["value_bytes"], 9030);
  EXPECT_EQ(memory[0]["key_bytes"], 15);
  EXPECT_EQ(memory[0]["blocks"].size(), 3u);
}

// The server makes the list a few times a second, so this asks until it is in it.
TEST_F(KvcliSeeingTest, ClientsListsItself) {
  ChildProcess kvcli({.argv = Command({"--json"})});
  Json self;
  for (int tries = 0; tries < 100'000 && self.is_null(); ++tries) {
    ASSERT_TRUE(kvcli.WriteLine("clients"));
    ASSERT_TRUE(kvcli.WriteLine("ping"));
    for (;;) {
      const auto line = kvcli.ReadLine();
      ASSERT_TRUE(line.has_value());
      const Json json = Json::parse(*line, nullptr, false);
      if (json.contains("round_trip_us")) break;
      self = json;
    }
  }
  ASSERT_TRUE(self.is_object());
  EXPECT_THAT(self["peer"].get<std::string>(), HasSubstr("127.0.0.1"));
  EXPECT_GT(self["session_id"], 0);
  EXPECT_THAT(Run({"clients"}).out, HasSubstr("last request"));
}

TEST_F(KvcliSeeingTest, SlowLogShowsKeysOnlyIfAsked) {
  const std::string value(5000, 'v');
  ASSERT_EQ(Run({"put", "slow-secret", value}).exit_code, 0);
  EXPECT_THAT(Run({"slowlog"}).out, HasSubstr("key 11 B"));
  EXPECT_THAT(Run({"slowlog"}).out, Not(HasSubstr("secret")));
  EXPECT_THAT(Run({"--json", "slowlog"}).out, Not(HasSubstr("secret")));
  EXPECT_THAT(Run({"slowlog", "--keys"}).out, HasSubstr("key slow-secret"));
}

TEST_F(KvcliSeeingTest, ValuesComeFromFilesAndGoIntoFiles) {
  const std::string in = testing::TempDir() + "kvcli_in";
  const std::string out = testing::TempDir() + "kvcli_out";
  std::string value(100'000, '\0');
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 131 + i / 256);
  std::ofstream(in, std::ios::binary) << value;
  std::remove(out.c_str());
  EXPECT_EQ(Run({"get", "no such file", "--out=" + out}).exit_code, 1);
  EXPECT_FALSE(std::ifstream(out).is_open());
  ASSERT_EQ(Run({"put", "file", "--file=" + in}).exit_code, 0);
  const Finished got = Run({"get", "file", "--out=" + out});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(got.out, "");
  std::ifstream file(out, std::ios::binary);
  EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(file), {}) == value);
  EXPECT_EQ(Run({"put", "file", "--file=/no/such/file"}).exit_code, 3);
  const Finished directory = Run({"put", "file", "--file=/"});
  EXPECT_EQ(directory.exit_code, 3);
  EXPECT_THAT(directory.err, HasSubstr("Is a directory"));
  EXPECT_EQ(Run({"put", "file", "--file=/dev/zero"}).exit_code, 2) << "endless";
}

TEST_F(KvcliSeeingTest, WatchPrintsWhatTheKeyIs) {
  EXPECT_EQ(Run({"watch", "watched", "--count=1"}).out, "0 (none)\n");
  ASSERT_EQ(Run({"put", "watched", "a value"}).exit_code, 0);
  EXPECT_THAT(Run({"watch", "watched", "--count=1"}).out, HasSubstr("\"a value\"\n"));
}

TEST_F(KvcliSeeingTest, LatencyMeasuresEachKindAndLeavesNothing) {
  const std::vector<Json> kinds = RunJson({"latency", "--count=20"});
  std::vector<std::string> names;
  for (const Json& kind : kinds) {
    if (!kind.contains("operation")) continue;
    names.push_back(kind["operation"]);
    EXPECT_EQ(kind["count"], 20) << kind;
    EXPECT_GT(kind["min_us"], 0) << kind;
    EXPECT_LE(kind["p50_us"], kind["max_us"]) << kind;
  }
  EXPECT_THAT(names, ElementsAre("read", "miss", "put", "get", "get, cold", "ping"));
  EXPECT_EQ(Run({"scan", "--prefix=kvcli.latency"}).out, "");
}

TEST_F(KvcliSeeingTest, LatencyKeepsNoMoreThanItCanSort) {
  const auto latency = Run({"latency", "--count=1000001"});
  EXPECT_NE(latency.exit_code, 0);
  EXPECT_THAT(latency.err, HasSubstr("--count is at most 1000000"));
}

TEST_F(KvcliSeeingTest, LatencySaysWhatEachPartOfTheWayTakes) {
  const std::vector<Json> kinds = RunJson({"latency", "--count=20"});
  ASSERT_FALSE(kinds.empty());
  const Json& parts = kinds.back().at("parts");
  const auto median = [&](const char* name) {
    for (const Json& kind : kinds) {
      if (kind.value("operation", "") == name) return kind["p50_us"].get<double>();
    }
    return 0.0;
  };
  EXPECT_DOUBLE_EQ(parts.at("device_us"), median("read"));
  EXPECT_DOUBLE_EQ(parts.at("window_us"), median("miss") - median("read"));
  EXPECT_DOUBLE_EQ(parts.at("item_us"), median("get") - median("read"));
  EXPECT_DOUBLE_EQ(parts.at("server_us"), median("ping") - median("read"));
  EXPECT_DOUBLE_EQ(parts.at("store_us"), median("put") - median("ping"));
  const std::string text = Run({"latency", "--count=20"}).out;
  for (const char* part : {"device", "window", "item", "server", "store"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(part) + " "));
  }
}

}  // namespace
}  // namespace gannet
