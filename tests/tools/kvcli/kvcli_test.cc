// kvcli as its users run it, against a real kvserver on softverbs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
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
using test_support::ProgramPath;
using test_support::RunOnTerminal;
using test_support::RunProgram;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class KvcliTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("NO_COLOR", "1", 1);  // no hints between the keys; kvcli_prompt_test tests these
    server_ = new ServerProcess();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static Words Command(const Words& words) { return KvcliCommand(*server_, words); }
  static Finished Run(const Words& words, std::string_view input = "") {
    return RunProgram(Command(words), input);
  }
  static Json RunJson(Words words) {
    words.insert(words.begin(), "--json");
    return Json::parse(Run(words).out, nullptr, false);
  }

  static ServerProcess* server_;
};

ServerProcess* KvcliTest::server_ = nullptr;

// Returns all bytes, in an order that no text has.
std::string Binary(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 + i / 256);
  return bytes;
}

TEST_F(KvcliTest, PutsAndGetsRawValues) {
  const Finished put = Run({"put", "raw", "a value"});
  EXPECT_EQ(put.exit_code, 0) << put.err;
  EXPECT_GT(std::stoull(put.out), 0u);
  const Finished get = Run({"get", "raw"});
  EXPECT_EQ(get.exit_code, 0) << get.err;
  EXPECT_EQ(get.out, "a value");
}

TEST_F(KvcliTest, SaysWhichDeviceCarriesItWhenAsked) {
  EXPECT_THAT(Run({"--verbose", "ping"}).err, HasSubstr("device=softverbs0 kind=softverbs"));
  EXPECT_EQ(Run({"ping"}).err, "");
}

TEST_F(KvcliTest, SaysNothingOfTheDeviceItFound) {
  const std::string server = "--server=" + server_->endpoint();
  EXPECT_EQ(RunProgram({ProgramPath("kvcli"), server, "ping"}).err, "");
}

TEST_F(KvcliTest, TakesTheServerOfTheEnvironment) {
  setenv("GANNET_SERVER", server_->endpoint().c_str(), 1);
  const Finished done = RunProgram({ProgramPath("kvcli"), "ping"});
  unsetenv("GANNET_SERVER");
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST_F(KvcliTest, QuietSaysOnlyErrors) {
  EXPECT_EQ(Run({"--quiet", "get", "nothing"}).err, "");
  EXPECT_EQ(Run({"--quiet", "cas", "nothing", "77", "x"}).err, "");
  EXPECT_EQ(Run({"--quiet", "cas", "nothing", "77", "x"}).exit_code, 1);
  EXPECT_THAT(Run({"--quiet", "get", ""}).err, HasSubstr("empty key"));
}

TEST_F(KvcliTest, BinaryValuesOfAllSizesGoThroughStdin) {
  for (const size_t size : {0, 1, 100, 5000, 1 << 20}) {
    const std::string value = Binary(size);
    const Finished put = Run({"put", "binary", "-"}, value);
    ASSERT_EQ(put.exit_code, 0) << put.err;
    const Finished get = Run({"get", "binary"});
    EXPECT_EQ(get.exit_code, 0) << get.err;
    EXPECT_TRUE(get.out == value) << "of " << size << " bytes";
  }
}

TEST_F(KvcliTest, MissesExitWithOne) {
  EXPECT_EQ(Run({"get", "nothing"}).exit_code, 1);
  EXPECT_EQ(Run({"del", "nothing"}).exit_code, 1);
  EXPECT_EQ(Run({"get", "nothing", "--meta"}).exit_code, 1);
  EXPECT_EQ(Run({"mget", "nothing"}).exit_code, 1);
}

TEST_F(KvcliTest, WritesNoControlCharactersOfAKeyToTheTerminal) {
  EXPECT_EQ(Run({"get", "a\033[2Jb"}).err, "kvcli: not found: \"a\\x1b[2Jb\"\n");
}

TEST_F(KvcliTest, DeletesOnce) {
  Run({"put", "gone", "value"});
  EXPECT_EQ(Run({"del", "gone"}).exit_code, 0);
  EXPECT_EQ(Run({"get", "gone"}).exit_code, 1);
  EXPECT_EQ(Run({"del", "gone"}).exit_code, 1);
}

TEST_F(KvcliTest, DeletesOnlyTheVersionItIsToldTo) {
  const std::string version = Run({"put", "versioned", "value"}).out;
  EXPECT_EQ(Run({"del", "versioned", "--if_version=1999999999"}).exit_code, 1);
  EXPECT_EQ(Run({"get", "versioned"}).exit_code, 0);
  EXPECT_EQ(
      Run({"del", "versioned", "--if_version=" + std::to_string(std::stoull(version))}).exit_code,
      0);
}

TEST_F(KvcliTest, MgetPrintsALinePerKeyAlsoForWhatIsMissing) {
  Run({"put", "m1", "one"});
  Run({"put", "m2", "two"});
  const Finished all = Run({"mget", "m1", "m2"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.out, "one\ntwo\n");
  const Finished some = Run({"mget", "m1", "missing", "m2"});
  EXPECT_EQ(some.exit_code, 1);
  EXPECT_EQ(some.out, "one\n(nil)\ntwo\n");
  const Finished json = Run({"--json", "mget", "missing", "m2"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(Json::parse(json.out.substr(0, json.out.find('\n'))).at("found"), false);
}

TEST_F(KvcliTest, CasWritesOnlyOverItsVersion) {
  Run({"del", "cas"});
  const Finished created = Run({"cas", "cas", "0", "first"});
  ASSERT_EQ(created.exit_code, 0) << created.err;
  EXPECT_EQ(Run({"cas", "cas", "0", "again"}).exit_code, 1);
  const std::string version = std::to_string(std::stoull(created.out));
  EXPECT_EQ(Run({"cas", "cas", version, "second"}).exit_code, 0);
  EXPECT_EQ(Run({"cas", "cas", version, "third"}).exit_code, 1);
  EXPECT_EQ(Run({"get", "cas"}).out, "second");
}

TEST_F(KvcliTest, PutConditions) {
  Run({"del", "condition"});
  EXPECT_EQ(Run({"put", "condition", "a", "--if_absent"}).exit_code, 0);
  EXPECT_EQ(Run({"put", "condition", "b", "--if_absent"}).exit_code, 1);
  EXPECT_EQ(Run({"put", "condition", "b", "--if_version=0"}).exit_code, 1);
  EXPECT_EQ(Run({"get", "condition"}).out, "a");
}

TEST_F(KvcliTest, JsonSaysEverythingOfAnItem) {
  const Json put = RunJson({"put", "json", "text", "--flags=7", "--ttl=1h"});
  EXPECT_EQ(put.at("key"), "json");
  const Json get = RunJson({"get", "json"});
  EXPECT_EQ(get.at("found"), true);
  EXPECT_EQ(get.at("value"), "text");
  EXPECT_EQ(get.at("value_base64"), "dGV4dA==");
  EXPECT_EQ(get.at("version"), put.at("version"));
  EXPECT_EQ(get.at("flags"), 7);
  EXPECT_GT(get.at("expiry_ms"), 0);
  EXPECT_EQ(RunJson({"get", "nothing"}).at("found"), false);
  EXPECT_EQ(RunJson({"del", "json"}).at("deleted"), true);
}

TEST_F(KvcliTest, JsonGivesBinaryAsBase64) {
  Run({"put", "json2", "-"}, std::string_view("\xff\x00\xfe", 3));
  const Json get = RunJson({"get", "json2"});
  EXPECT_FALSE(get.contains("value"));
  EXPECT_EQ(get.at("value_base64"), "/wD+");
}

TEST_F(KvcliTest, MetaShowsVersionAndExpiry) {
  const Finished put = Run({"put", "meta", "12345", "--flags=9"});
  const Finished meta = Run({"get", "meta", "--meta"});
  EXPECT_EQ(meta.out, "version " + put.out + "flags 9\nexpires never\nvalue_bytes 5\n");
}

TEST_F(KvcliTest, ItemsExpire) {
  ASSERT_EQ(Run({"put", "short", "lived", "--ttl=1ms"}).exit_code, 0);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int code = 0;
  while (code == 0 && std::chrono::steady_clock::now() < limit) {
    code = Run({"get", "short"}).exit_code;
  }
  EXPECT_EQ(code, 1);
}

TEST_F(KvcliTest, LockRunsACommandAndExitsWithItsCode) {
  const Finished done = Run({"lock", "l1", "--", "echo", "held"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "held\n");
  EXPECT_EQ(Run({"lock", "l1", "--", "sh", "-c", "exit 42"}).exit_code, 42);
  EXPECT_EQ(Run({"lock", "l1", "--", "/nonexistent"}).exit_code, 127);
  EXPECT_EQ(Run({"lock", "l1", "--wait=0", "--", "true"}).exit_code, 0);
}

TEST_F(KvcliTest, LockKeepsOthersOut) {
  Words nested = Command({"lock", "l2", "--wait=0", "--", "true"});
  nested.insert(nested.begin(), {"lock", "l2", "--"});
  const Finished done = Run(nested);
  EXPECT_EQ(done.exit_code, 75) << "1 would be the command's";
  EXPECT_THAT(done.err, HasSubstr("another holds the lock of l2"));
}

TEST_F(KvcliTest, ChildOfLockRunsInTheUsersEnvironment) {
  const Finished done = Run({"lock", "l3", "--", "sh", "-c", "echo \"<$LD_LIBRARY_PATH>\""});
  const char* here = std::getenv("LD_LIBRARY_PATH");
  EXPECT_EQ(done.out, "<" + std::string(here == nullptr ? "" : here) + ">\n");
}

TEST_F(KvcliTest, StatsInfoAndPing) {
  Run({"put", "counted", "value"});
  const Json stats = RunJson({"stats"});
  EXPECT_GT(stats.at("rpcs"), 0);
  EXPECT_GT(stats.at("items"), 0);
  EXPECT_GT(stats.at("slots_total"), stats.at("slots_used"));
  const Json info = RunJson({"info"});
  EXPECT_EQ(info.at("endpoint"), server_->endpoint());
  EXPECT_EQ(info.at("kind"), "softverbs");
  EXPECT_GT(info.at("region_bytes"), 0);
  EXPECT_EQ(info.at("protocol_version"), 5);
  EXPECT_EQ(info.at("connected"), true);
  EXPECT_GT(RunJson({"ping"}).at("round_trip_us"), 0);
  EXPECT_THAT(Run({"ping"}).out, StartsWith("pong after "));
  EXPECT_THAT(Run({"stats"}).out, HasSubstr("\nrpcs "));
  EXPECT_THAT(Run({"info"}).out, HasSubstr("\nlock_mode "));
}

TEST_F(KvcliTest, ScriptRunsALineEach) {
  const Finished script = Run({},
                              "# a comment\n"
                              "put s1 'two words'\n"
                              "\n"
                              "put \"s\\x32\" \"tab\\there\"\n"
                              "get s1\n"
                              "get s2\n"
                              "lock s1\n"
                              "unlock s1\n"
                              "del s1\n"
                              "quit\n"
                              "get s2\n");
  EXPECT_EQ(script.exit_code, 0) << script.err;
  EXPECT_THAT(script.out, HasSubstr("two words\ntab\there\n"));
  EXPECT_EQ(script.out.find("tab\there"), script.out.rfind("tab\there"));
}

TEST_F(KvcliTest, ScriptGoesOnAfterAFailureAndReportsTheWorst) {
  const Finished script = Run({}, "get nothing\nput s3 value\nget s3\n");
  EXPECT_EQ(script.exit_code, 1);
  EXPECT_THAT(script.out, HasSubstr("value\n"));
  const Finished wrong = Run({}, "get nothing\nfetch s3\nput s3 'open\nput s3 -\n");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("line 2: no command 'fetch'"));
  EXPECT_THAT(wrong.err, HasSubstr("line 3: a ' is not closed"));
  EXPECT_THAT(wrong.err, HasSubstr("- reads the value from stdin"));
}

TEST_F(KvcliTest, ScriptHoldsLocksUntilTheyAreUnlocked) {
  const std::string other = "lock s4 --wait=0 -- true\n";
  EXPECT_EQ(Run({}, "lock s4\nunlock s4\nunlock s4\n").exit_code, 1);
  Words rival = Command({"lock", "s4", "--wait=0", "--", "true"});
  std::string line = "lock s5 --";
  for (const std::string& word : rival) line += " " + word;
  EXPECT_EQ(Run({}, "lock s4\n" + line + "\n").exit_code, 75);
  EXPECT_EQ(Run({}, "lock s4\nunlock s4\n" + line + "\n").exit_code, 0);
  EXPECT_EQ(Run({"lock", "s4", "--wait=0", "--", "true"}).exit_code, 0) << "free after the script";
}

// However many commands run concurrently, the results are as if each had waited for the one before.
TEST_F(KvcliTest, ScriptAnswersInOrderAndSeesItsOwnWrites) {
  std::string script;
  std::string wanted;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "order" + std::to_string(i % 7);
    const std::string value = std::to_string(i);
    script += "del " + key + "\ncas " + key + " 0 old\ndel " + key + "\nput " + key + " " + value +
              " --if_absent\nget " + key + "\n";
  }
  const Finished done = Run({"--json"}, script);
  EXPECT_LE(done.exit_code, 1) << done.err;
  std::istringstream lines(done.out);
  std::string line;
  std::vector<std::string> values;
  while (std::getline(lines, line)) {
    const Json json = Json::parse(line);
    EXPECT_FALSE(json.contains("error")) << line;
    if (json.contains("value")) values.push_back(json.at("value"));
  }
  ASSERT_EQ(values.size(), 2000u);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], std::to_string(i));
}

TEST_F(KvcliTest, ScriptGetsLongValuesToo) {
  const std::string value(100'000, 'x');
  ASSERT_EQ(Run({"put", "long_one", "-"}, value).exit_code, 0);
  const Finished done = Run({}, "get long_one\nput long_one short\nget long_one\n");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, StartsWith(value + "\n"));
  EXPECT_THAT(done.out, HasSubstr("\nshort\n"));
}

// Puts that waited for each other would be answered by a post each.
TEST_F(KvcliTest, ScriptedPutsShareTheirDoorbells) {
  const Json before = RunJson({"stats"});
  std::string script;
  for (int i = 0; i < 10'000; ++i) script += "put bulk" + std::to_string(i) + " value\n";
  const Finished done = Run({}, script);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(std::ranges::count(done.out, '\n'), 10'000);
  const Json after = RunJson({"stats"});
  const auto grown = [&](const char* what) {
    return after.at(what).get<int64_t>() - before.at(what).get<int64_t>();
  };
  EXPECT_GE(grown("rpcs"), 10'000);
  EXPECT_LT(grown("reply_posts"), 9'500);
}

TEST_F(KvcliTest, WhoWaitsForAScriptsAnswersGetsThem) {
  const std::string kvcli = ProgramPath("kvcli") + " --server=" + server_->endpoint();
  const Finished done = RunProgram({"bash", "-c", R"(
    coproc )" + kvcli + R"(
    for i in 1 2 3; do
      echo "put talk $i" >&${COPROC[1]}; read -t 20 version <&${COPROC[0]} || exit 9
      echo "get talk" >&${COPROC[1]}; read -t 20 value <&${COPROC[0]} || exit 8
      [ "$value" = "$i" ] || exit 7
    done)"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST_F(KvcliTest, CasUnderAHeldLockCarriesIt) {
  const Finished script = Run({}, "del s6\nlock s6\ncas s6 0 value\nunlock s6\nget s6\n");
  EXPECT_THAT(script.out, HasSubstr("value\n"));
}

TEST_F(KvcliTest, PromptAnswersOnATerminal) {
  setenv("GANNET_HISTORY", "", 1);
  const Finished done =
      RunOnTerminal(Command({}), "put p1 prompted\nget p1\nfetch\nhelp get\nquit\n");
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_THAT(done.out, HasSubstr("gannet " + server_->endpoint() + "> "));
  EXPECT_THAT(done.out, HasSubstr("prompted\r\n"));
  EXPECT_THAT(done.out, HasSubstr("no command 'fetch'"));
  EXPECT_THAT(done.out, HasSubstr("get KEY [--meta]"));
}

// Ctrl-C, as the terminal sends it.
TEST_F(KvcliTest, CtrlCGivesUpTheLineAndKeepsThePromptAndItsLocks) {
  setenv("GANNET_HISTORY", "", 1);
  ChildProcess kvcli({.argv = Command({}), .streams = ChildProcess::Streams::kTerminal});
  ASSERT_TRUE(kvcli.ReadUntil("> "));
  // One at a time: what is typed while a command runs is echoed by the terminal, which sends Ctrl-C
  // to the command.
  for (const char* line : {"lock p3\n", "put p3 prompted\n", "get p3\n"}) {
    kvcli.Write(line);
    ASSERT_TRUE(kvcli.ReadUntil("> "));
  }
  kvcli.Write("del p3");
  ASSERT_TRUE(kvcli.ReadUntil("del p3"));
  kvcli.Write("\003");
  ASSERT_TRUE(kvcli.ReadUntil("> "));
  kvcli.Write("get p3\n");
  EXPECT_TRUE(kvcli.ReadUntil("prompted\r\n"));
  const Finished rival = Run({"lock", "p3", "--wait=0", "--", "true"});
  EXPECT_EQ(rival.exit_code, 75) << "the prompt holds it still";
  kvcli.Write("quit\n");
  kvcli.ReadAll();
  EXPECT_EQ(kvcli.Wait(), 0);
}

TEST_F(KvcliTest, CtrlCEndsAWaitForALock) {
  setenv("GANNET_HISTORY", "", 1);
  ChildProcess holder({.argv = Command({}), .streams = ChildProcess::Streams::kTerminal});
  ASSERT_TRUE(holder.ReadUntil("> "));
  holder.Write("lock p4\nput p4 held\nget p4\n");
  ASSERT_TRUE(holder.ReadUntil("held\r\n"));
  ChildProcess waiting({.argv = Command({}), .streams = ChildProcess::Streams::kTerminal});
  ASSERT_TRUE(waiting.ReadUntil("> "));
  waiting.Write("lock p4 --wait=1h\n");
  ASSERT_TRUE(waiting.ReadUntil("--wait=1h\r\n"));
  // It may not have begun to wait, so this types again, as impatient users do.
  do waiting.Write("\003");
  while (!waiting.ReadUntil("another holds the lock", std::chrono::milliseconds(500)));
  waiting.Write("quit\n");
  waiting.ReadAll();
  EXPECT_EQ(waiting.Wait(), 0);
}

TEST_F(KvcliTest, PromptCompletesCommands) {
  setenv("GANNET_HISTORY", "", 1);
  const Finished done = RunOnTerminal(Command({}), "put p2 seen\nmge\tp\t\nquit\n");
  EXPECT_THAT(done.out, HasSubstr("mget p2"));
  EXPECT_THAT(done.out, HasSubstr("seen\r\n"));
}

TEST_F(KvcliTest, BadKeysAreWrongUsage) {
  EXPECT_EQ(Run({"get", ""}).exit_code, 2);
  EXPECT_EQ(Run({"put", std::string(251, 'k'), "v"}).exit_code, 2);
  EXPECT_EQ(Run({"put", std::string(250, 'k'), "v"}).exit_code, 0);
  EXPECT_EQ(Run({"get", std::string(250, 'k')}).out, "v");
}

TEST_F(KvcliTest, TooLongAValueIsWrongUsage) {
  EXPECT_EQ(Run({"put", "long", "-"}, std::string((64 << 20) + 1, 'x')).exit_code, 2);
}

// Wrong usage is noticed before a server is needed: there is no server at this port.
TEST(KvcliUsageTest, WrongUsageExitsWithTwoAndHelps) {
  const std::string kvcli = ProgramPath("kvcli");
  const std::string server = "--server=127.0.0.1:1";
  const Finished unknown = RunProgram({kvcli, server, "fetch", "key"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("see kvcli --help"));
  const Finished flag = RunProgram({kvcli, "--sever=x", "get", "key"});
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_THAT(flag.err, HasSubstr("no flag --sever=x"));
  const Finished missing = RunProgram({kvcli, server, "put", "key"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("VALUE is missing"));
  EXPECT_THAT(missing.err, HasSubstr("usage: put KEY VALUE"));
  EXPECT_EQ(RunProgram({kvcli, server, "lock", "key"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvcli, server, "unlock", "key"}).exit_code, 2);
}

TEST(KvcliUsageTest, HelpAndVersionNeedNoServer) {
  const std::string kvcli = ProgramPath("kvcli");
  EXPECT_EQ(RunProgram({kvcli, "--help"}).exit_code, 0);
  EXPECT_THAT(RunProgram({kvcli, "--help"}).out, HasSubstr("usage: kvcli"));
  EXPECT_THAT(RunProgram({kvcli, "-h"}).out, HasSubstr("usage: kvcli"));
  EXPECT_THAT(RunProgram({kvcli, "help", "cas"}).out, HasSubstr("cas KEY VERSION VALUE"));
  EXPECT_EQ(RunProgram({kvcli, "--version"}).exit_code, 0);
}

TEST(KvcliDeadServerTest, NobodyListensIsAClearError) {
  const Finished done = RunProgram({ProgramPath("kvcli"), "--server=127.0.0.1:1", "--device=soft",
                                    "--deadline_ms=1000", "get", "key"});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(done.err, HasSubstr("127.0.0.1:1"));
}

TEST(KvcliDeadServerTest, StoppedServerIsAnErrorWithinTheDeadline) {
  ServerProcess server;
  server.process().Stop();
  const Finished done = RunProgram({ProgramPath("kvcli"), "--server=" + server.endpoint(),
                                    "--device=soft", "--deadline_ms=500", "get", "key"});
  EXPECT_EQ(done.exit_code, 3) << done.err;
}

TEST(KvcliDeadServerTest, WithOneOfTwoDownShowsWhatTheOtherAnswers) {
  const ServerProcess alive({"--name=alive"});
  ServerProcess dead;
  dead.Kill();
  const auto run = [&](const Words& words) {
    Words all = {ProgramPath("kvcli"),
                 "--server=alive@" + alive.endpoint() + ",dead@" + dead.endpoint(), "--device=soft",
                 "--json"};
    all.insert(all.end(), words.begin(), words.end());
    return RunProgram(all);
  };
  for (const char* command : {"stats", "info", "ping"}) {
    const Finished done = run({command});
    EXPECT_EQ(done.exit_code, 3) << command;
    EXPECT_THAT(done.err, HasSubstr(dead.endpoint())) << command;
  }
  EXPECT_THAT(run({"stats"}).out, HasSubstr("\"name\":\"alive\""));
  EXPECT_THAT(run({"info"}).out, HasSubstr("\"connected\":false"));
  EXPECT_THAT(run({"ping"}).out, HasSubstr("round_trip_us"));
  Words keys = {"mget"};
  for (int i = 0; i < 20; ++i) keys.push_back("key" + std::to_string(i));
  const Finished found = run(keys);
  EXPECT_EQ(found.exit_code, 3);
  EXPECT_THAT(found.out, HasSubstr("\"found\":false"));
  EXPECT_THAT(found.out, HasSubstr("\"error\":\"UNAVAILABLE\""));
}

TEST(KvcliDeadServerTest, UnknownDeviceIsAClearError) {
  const Finished done =
      RunProgram({ProgramPath("kvcli"), "--server=127.0.0.1:1", "--device=nosuch0", "get", "key"});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(done.err, HasSubstr("nosuch0"));
}

}  // namespace
}  // namespace gannet
