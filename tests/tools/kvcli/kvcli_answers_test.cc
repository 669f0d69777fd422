// kvcli's answers: as JSON also where there is none, and where they cannot be written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
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
using test_support::RunProgram;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class KvcliAnswersTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess(); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  static Finished Run(const Words& words, std::string_view input = "") {
    return RunProgram(KvcliCommand(*server_, words), input);
  }
  // Runs kvcli with a stdout that is full.
  static Finished RunFull(const std::string& command, std::string_view input = "") {
    return RunProgram({"sh", "-c",
                       ProgramPath("kvcli") + " --device=soft --server=" + server_->endpoint() +
                           " " + command + " > /dev/full"},
                      input);
  }

  static ServerProcess* server_;
};

ServerProcess* KvcliAnswersTest::server_ = nullptr;

Json ParsedLine(const Finished& done) { return Json::parse(done.out, nullptr, false); }

TEST_F(KvcliAnswersTest, TakesFlagsBehindTheCommand) {
  const std::string kvcli = ProgramPath("kvcli");
  const std::string server = "--server=" + server_->endpoint();
  const Finished done = RunProgram({kvcli, "stats", server, "--device", "soft", "--json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(ParsedLine(done).value("endpoint", ""), server_->endpoint());
  const Finished doctor = RunProgram({kvcli, "doctor", "--json", "--device=soft", server});
  EXPECT_THAT(doctor.out, HasSubstr("\"severity\"")) << doctor.err;
  EXPECT_THAT(RunProgram({kvcli, "put", "--help"}).out, HasSubstr("put KEY VALUE"));
}

// A program that asks for JSON looks for the reason where it looks for the answer.
TEST_F(KvcliAnswersTest, ErrorsAreJsonToo) {
  const std::string kvcli = ProgramPath("kvcli");
  const auto error_of = [](const Finished& done) { return ParsedLine(done).value("error", ""); };
  const Finished dead = RunProgram({kvcli, "--server=127.0.0.1:1", "--device=soft",
                                    "--deadline_ms=1000", "get", "key", "--json"});
  EXPECT_EQ(dead.exit_code, 3);
  EXPECT_EQ(error_of(dead), "UNAVAILABLE") << dead.out;
  EXPECT_THAT(ParsedLine(dead).value("message", ""), HasSubstr("127.0.0.1:1"));
  const std::vector<Words> wrong = {{"fetch", "--json"},         {"--json", "put", "key"},
                                    {"--json", "--sever=x"},     {"--json", "lock", "key"},
                                    {"--json", "help", "fetch"}, {"--json", "\xff"}};
  for (const Words& words : wrong) {
    Words all = {kvcli};
    all.insert(all.end(), words.begin(), words.end());
    const Finished usage = RunProgram(all);
    EXPECT_EQ(usage.exit_code, 2) << words.back();
    EXPECT_EQ(error_of(usage), "Usage") << words.back() << ": " << usage.out;
  }
}

// Bytes that are no UTF-8 were once the end of it.
TEST_F(KvcliAnswersTest, JsonErrorsOfAScriptQuoteAnyBytes) {
  const Finished script = Run({"--json"}, "\xff\nget key\n");
  EXPECT_EQ(script.exit_code, 2);
  EXPECT_THAT(script.out, HasSubstr("\"error\":\"Usage\""));
  EXPECT_THAT(script.out, HasSubstr("\"found\":false"));
}

TEST_F(KvcliAnswersTest, UnlockAnswersInJson) {
  const std::string script = "lock j1\nunlock j1\nunlock j1\nlock j1\nlock j1\nunlock j1 --force\n";
  std::istringstream lines(Run({"--json"}, script).out);
  std::vector<Json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[1], Json({{"key", "j1"}, {"unlocked", true}}));
  EXPECT_EQ(all[2], Json({{"key", "j1"}, {"unlocked", false}}));
  EXPECT_TRUE(all[4].contains("error")) << "it is held already";
  EXPECT_EQ(all[5].at("unlocked"), true);
  const Finished none = Run({"--json", "unlock", "j1", "--force"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(Json::parse(none.out).at("unlocked"), false);
}

TEST_F(KvcliAnswersTest, AnAnswerThatCannotBeWrittenIsAnError) {
  ASSERT_EQ(Run({"put", "full", std::string(100, 'x')}).exit_code, 0);
  ASSERT_EQ(Run({"put", "long", "-"}, std::string(1 << 20, 'x')).exit_code, 0);
  for (const char* command :
       {"get full", "get long", "--json get nothing", "stats", "info", "scan", "mget full long",
        "ping", "put other value", "--help", "--version", "help get", "doctor"}) {
    const Finished done = RunFull(command);
    EXPECT_EQ(done.exit_code, 3) << command;
    EXPECT_THAT(done.err, HasSubstr("cannot write the whole answer to stdout")) << command;
  }
  EXPECT_THAT(RunFull("get full").err, HasSubstr("No space left on device"));
  EXPECT_EQ(RunFull("", "get full\nget full\n").exit_code, 3) << "a script";
}

// They would write for ever.
TEST_F(KvcliAnswersTest, CommandsThatRepeatEndIfTheirAnswerCannotBeWritten) {
  ASSERT_EQ(Run({"put", "watched", "value"}).exit_code, 0);
  EXPECT_EQ(RunFull("watch watched").exit_code, 3);
  EXPECT_EQ(RunFull("top --interval=100ms").exit_code, 3);
}

// Runs a shell command in which descriptor 3 is a pipe that nobody reads any more.
Finished RunUnread(const std::string& command, const Words& words = {}) {
  Words all = {"bash", "-c", "exec 3> >(exit 0); wait $!; " + command, "bash"};
  all.insert(all.end(), words.begin(), words.end());
  return RunProgram(all);
}

TEST_F(KvcliAnswersTest, AReaderThatHasEnoughEndsAWalkAndNobodyIsTold) {
  ASSERT_EQ(Run({"put", "one", "value"}).exit_code, 0);
  const Finished done = RunUnread("exec \"$@\" >&3", KvcliCommand(*server_, {"scan"}));
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_EQ(done.err, "");
}

// kvcli ignores SIGPIPE itself. What it runs may rely on it.
TEST_F(KvcliAnswersTest, ACommandUnderALockMayDieOfAPipe) {
  const Words command =
      KvcliCommand(*server_, {"lock", "key", "--", "bash", "-c", "kill -PIPE $$; echo is ignored"});
  EXPECT_EQ(RunProgram(command).exit_code, 128 + SIGPIPE);
  Words ignoring = {"bash", "-c", "trap '' PIPE; exec \"$@\"", "bash"};
  ignoring.insert(ignoring.end(), command.begin(), command.end());
  EXPECT_EQ(RunProgram(ignoring).out, "is ignored\n");
}

// Whoever reads their output or log may end first (tee), and files may not grow (ulimit -f).
TEST(LostOutputsTest, EndNoProgram) {
  for (const char* name : {"kvserver", "kvcli", "kvload", "gannet-proxy"}) {
    const std::string help = "exec " + ProgramPath(name) + " --help";
    EXPECT_THAT(RunUnread(help + " >&3").exit_code, AnyOf(0, 3)) << name;
    const std::string file = ::testing::TempDir() + "lost_outputs." + std::to_string(getpid());
    EXPECT_THAT(RunProgram({"bash", "-c", "ulimit -f 0; " + help + " > " + file}).exit_code,
                AnyOf(0, 3))
        << name;
    std::remove(file.c_str());
  }
}

TEST_F(KvcliAnswersTest, ExistsAndTtlAnswerAsUsersOfRedisExpect) {
  ASSERT_EQ(Run({"SET", "here", "value", "--ttl", "1h"}).exit_code, 0);
  EXPECT_EQ(Run({"EXISTS", "here"}).out, "1\n");
  EXPECT_EQ(Run({"exists", "nothing"}).out, "0\n");
  EXPECT_EQ(Run({"exists", "nothing"}).exit_code, 1);
  ASSERT_EQ(Run({"put", "too", "value"}).exit_code, 0);
  EXPECT_EQ(Run({"exists", "here", "too", "here"}).out, "3\n");
  EXPECT_EQ(Run({"exists", "here", "nothing", "too"}).out, "2\n");
  EXPECT_EQ(Run({"exists", "here", "nothing", "too"}).exit_code, 1);
  EXPECT_EQ(Run({"del", "too", "nothing"}).exit_code, 1);
  EXPECT_EQ(Run({"exists", "too"}).out, "0\n");
  EXPECT_NE(Run({"del", "too", "here", "--if_version=1"}).exit_code, 0);
  const double left_s = std::stod(Run({"ttl", "here"}).out);
  EXPECT_GT(left_s, 0);
  EXPECT_LE(left_s, 3600);
  EXPECT_GT(ParsedLine(Run({"--json", "ttl", "here"})).at("ttl_ms"), 0);
  ASSERT_EQ(Run({"set", "here", "value"}).exit_code, 0);
  EXPECT_EQ(Run({"ttl", "here"}).out, "never\n");
  EXPECT_EQ(Run({"ttl", "nothing"}).exit_code, 1);
  EXPECT_THAT(Run({"keys", "her*"}).out, HasSubstr("here\n"));
}

TEST_F(KvcliAnswersTest, AFullServersErrorNamesBothWaysOut) {
  const ServerProcess small({"--memory=16M"});
  std::string script;
  for (int i = 0; i < 300; ++i) {
    script += "put big" + std::to_string(i) + " " + std::string(60'000, 'x') + "\n";
  }
  const Finished done = RunProgram(KvcliCommand(small, {}), script);
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(done.err, HasSubstr("more --memory, or with --on_full=evict"));
}

// A dead server fails each of its keys, for one reason.
TEST_F(KvcliAnswersTest, MgetSaysOnceWhyItHasNoAnswers) {
  const ServerProcess alive({"--name=alive"});
  ServerProcess dead;
  dead.Kill();
  Words words = {ProgramPath("kvcli"),
                 "--server=alive@" + alive.endpoint() + ",dead@" + dead.endpoint(), "--device=soft",
                 "mget"};
  for (int i = 0; i < 20; ++i) words.push_back("key" + std::to_string(i));
  const Finished done = RunProgram(words);
  EXPECT_EQ(done.exit_code, 3);
  size_t complaints = 0;
  for (size_t at = 0; (at = done.err.find("UNAVAILABLE", at)) != std::string::npos; ++at) {
    ++complaints;
  }
  EXPECT_EQ(complaints, 1u) << done.err;
  EXPECT_THAT(done.out, HasSubstr("(error)\n"));
  const Finished script = RunProgram({words.begin(), words.begin() + 3},
                                     "get key1\nget key2\nget key3\nget key4\n"
                                     "get key5\nget key6\nget key7\nget key8\n");
  EXPECT_THAT(script.err, HasSubstr("no answer, try again"));
  EXPECT_THAT(script.err, ::testing::Not(HasSubstr("not applied"))) << "a get applies nothing";
  words.emplace_back("--json");
  const Finished json = RunProgram(words);
  EXPECT_THAT(json.out, HasSubstr("\"error\":\"UNAVAILABLE\""));
  EXPECT_THAT(json.out, ::testing::Not(HasSubstr("{\"error\""))) << "each names its key";
}

}  // namespace
}  // namespace gannet
