// kvcli top, against a real server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
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
using ::testing::HasSubstr;
using ::testing::Not;

// A client that GETs a key that does not exist, on and on.
class Misses {
 public:
  explicit Misses(const ServerProcess& server)
      : client_({.argv = KvcliCommand(server, {"--json"})}) {}
  // Does some, and returns when they are done.
  bool DoSome() {
    std::string script;
    for (int i = 0; i < 50; ++i) script += "get absent\n";
    if (!client_.Write(script + "ping\n")) return false;
    return client_.ReadUntil("round_trip_us");
  }

 private:
  ChildProcess client_;
};

TEST(KvcliTopTest, ShowsAnIdleClientAndOneThatWorks) {
  ServerProcess server;
  ChildProcess idle({.argv = KvcliCommand(server, {"--json"})});
  ASSERT_TRUE(idle.WriteLine("ping"));
  ASSERT_TRUE(idle.ReadUntil("round_trip_us"));
  Misses busy(server);
  ChildProcess top({.argv = KvcliCommand(server, {"--json", "top", "--interval=100ms"})});
  // Clients report what they did with their heartbeats. Repeats until the server has the reports.
  for (int tries = 0; tries < 10'000; ++tries) {
    ASSERT_TRUE(busy.DoSome());
    const auto line = top.ReadLine();
    ASSERT_TRUE(line.has_value());
    const Json json = Json::parse(*line, nullptr, false)["servers"][0];
    ASSERT_TRUE(json.is_object()) << *line;
    const Json& clients = json["clients"];
    // Each kvcli may have two sessions: one for commands that do not wait for one another.
    if (clients.size() < 3 || json["gets_per_s"].is_null() || json["gets_per_s"] == 0) continue;
    EXPECT_EQ(json["hit_ratio"], 0);
    EXPECT_GE(json["reads_per_get"], 1);
    EXPECT_GT(clients[0]["gets_per_s"], 0);
    EXPECT_EQ(clients.back()["gets_per_s"], 0);
    EXPECT_THAT(clients[0]["peer"].get<std::string>(), HasSubstr("127.0.0.1"));
    return;
  }
  FAIL() << "the client's GETs are not shown";
}

TEST(KvcliTopTest, PrintsAsManyTextsAsAskedFor) {
  ServerProcess server;
  const Words words = KvcliCommand(server, {"top", "--count=2", "--interval=100ms"});
  const Finished top = RunProgram(words);
  EXPECT_EQ(top.exit_code, 0) << top.err;
  EXPECT_THAT(top.out, Not(HasSubstr("\x1b")));
  size_t texts = 0;
  for (size_t at = 0; (at = top.out.find("READs/GET -", at)) != std::string::npos; ++at) ++texts;
  EXPECT_EQ(texts, 2u) << top.out;
}

TEST(KvcliTopTest, JsonPrintsAsManyObjectsAsAskedFor) {
  ServerProcess server;
  const Finished top =
      RunProgram(KvcliCommand(server, {"--json", "top", "--count=2", "--interval=100ms"}));
  std::istringstream lines(top.out);
  int objects = 0;
  for (std::string line; std::getline(lines, line); ++objects) {
    const Json json = Json::parse(line, nullptr, false)["servers"][0];
    EXPECT_EQ(json["endpoint"], server.endpoint());
    EXPECT_GT(json["seconds"], 0);
    EXPECT_GE(json["sessions"], 1);
  }
  EXPECT_EQ(objects, 2);
}

TEST(KvcliTopTest, ATerminalIsLeftAsItWas) {
  ServerProcess server;
  // q, Ctrl-C, and the end by itself.
  for (const auto& [count, keys] : std::vector<std::pair<std::string, std::string>>{
           {"100000", "xq"}, {"100000", "\x03"}, {"1", ""}}) {
    ChildProcess top({.argv = KvcliCommand(server, {"top", "--interval=100ms", "--count=" + count}),
                      .streams = ChildProcess::Streams::kTerminal});
    ASSERT_TRUE(top.ReadUntil("\x1b[?1049h\x1b[?25l\x1b[H"));
    ASSERT_TRUE(top.ReadUntil("measuring"));
    ASSERT_TRUE(top.Write(keys));
    EXPECT_TRUE(top.ReadAll().ends_with("\x1b[?25h\x1b[?1049l"));
    EXPECT_EQ(top.Wait(), 0);
  }
}

TEST(KvcliTopTest, LeavesTheTerminalAsItWasWhenItIsTerminated) {
  ServerProcess server;
  ChildProcess top(
      {.argv = KvcliCommand(server, {"top"}), .streams = ChildProcess::Streams::kTerminal});
  ASSERT_TRUE(top.ReadUntil("measuring"));
  top.Signal(SIGTERM);
  EXPECT_TRUE(top.ReadAll().ends_with("\x1b[?25h\x1b[?1049l"));
  EXPECT_EQ(top.Wait(), 0);
}

TEST(KvcliTopTest, GoesOnWhenTheServerIsLostAndBack) {
  ServerProcess server;
  ChildProcess top({.argv = KvcliCommand(server, {"--json", "top", "--interval=100ms"})});
  const auto await = [&top](const std::string& text) {
    for (int tries = 0; tries < 10'000; ++tries) {
      const auto line = top.ReadLine();
      if (!line) return false;
      if (line->find(text) != std::string::npos) return true;
    }
    return false;
  };
  ASSERT_TRUE(await("\"seconds\""));
  server.Kill();
  EXPECT_TRUE(await("\"problem\""));
  server.Restart();
  EXPECT_TRUE(await("\"restarted\":true"));
}

TEST(KvcliTopTest, EndsWithAnErrorIfTheServerIsLostAtTheEnd) {
  ServerProcess server;
  ChildProcess top({.argv = KvcliCommand(server, {"top", "--interval=500ms", "--count=4"})});
  ASSERT_TRUE(top.ReadUntil("READs/GET"));
  server.Kill();
  EXPECT_THAT(top.ReadAll(), HasSubstr("does not answer; trying again"));
  EXPECT_EQ(top.Wait(), 3);
}

}  // namespace
}  // namespace gannet
