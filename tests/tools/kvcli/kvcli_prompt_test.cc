// What kvcli's prompt shows while a line is typed, on a terminal.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "softverbs/tests/support/child_process.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/support/server_process.h"
#include "tests/tools/kvcli/kvcli_command.h"

namespace gannet {
namespace {

using test_support::ChildProcess;

// No hint comes if none has come in this time. A slow machine cannot fail the test.
constexpr std::chrono::milliseconds kNoHint{300};
const char kGrey[] = "\033[90m";

// Returns whether the program's first thread waits for something.
bool Sleeps(const ChildProcess& program) {
  std::ifstream file("/proc/" + std::to_string(program.pid()) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return state == "S";
}

class KvcliPromptTest : public ::testing::Test {
 protected:
  ChildProcess Prompt(std::vector<std::string> environment) {
    environment.emplace_back("GANNET_HISTORY=");
    return ChildProcess({.argv = KvcliCommand(server_, {}),
                         .streams = ChildProcess::Streams::kTerminal,
                         .environment = environment});
  }
  static void Quit(ChildProcess& prompt) {
    prompt.Write("quit\n");
    prompt.ReadAll();
    EXPECT_EQ(prompt.Wait(), 0);
  }

  ServerProcess server_;
};

TEST_F(KvcliPromptTest, HintsWhatACommandStillTakes) {
  ChildProcess prompt = Prompt({"TERM=xterm", "NO_COLOR", "COLUMNS=80"});
  ASSERT_TRUE(prompt.ReadUntil("> "));
  prompt.Write("touch ");
  EXPECT_TRUE(prompt.ReadUntil("\033[90mKEY TIME\033[0m\033[8D")) << "grey, cursor back before it";
  prompt.Write("missing");
  EXPECT_TRUE(prompt.ReadUntil("\033[K")) << "erased before the next key";
  EXPECT_TRUE(prompt.ReadUntil("\033[90m TIME\033[0m\033[5D"));
  prompt.Write(" 1");
  EXPECT_TRUE(prompt.ReadUntil("\033[K"));
  prompt.Write("\n");
  EXPECT_TRUE(prompt.ReadUntil("not found: missing"));
  Quit(prompt);
}

TEST_F(KvcliPromptTest, CtrlCErasesTheHint) {
  ChildProcess prompt = Prompt({"TERM=xterm", "NO_COLOR", "COLUMNS=80"});
  ASSERT_TRUE(prompt.ReadUntil("> "));
  prompt.Write("touch ");
  ASSERT_TRUE(prompt.ReadUntil("\033[8D"));
  prompt.Write("\003");
  EXPECT_TRUE(prompt.ReadUntil("\033[K"));
  ASSERT_TRUE(prompt.ReadUntil("> "));
  Quit(prompt);
}

// The terminal takes no more of the answer until it is read, so kvcli sleeps in a write. The first
// signal ends one that has written a part, the next one a write that has written nothing.
TEST_F(KvcliPromptTest, InterruptsDuringAnAnswerAreNoErrorsOfWriting) {
  ChildProcess put({.argv = KvcliCommand(server_, {"put", "long", "-"}),
                    .streams = ChildProcess::Streams::kCaptured,
                    .input = "a" + std::string(16000, 'x')});
  ASSERT_EQ(put.Wait(), 0);
  ChildProcess prompt = Prompt({"TERM=dumb"});
  ASSERT_TRUE(prompt.ReadUntil("> "));
  prompt.Write("mget long long long long long long\n");
  ASSERT_TRUE(prompt.ReadUntil("axx"));
  for (int signals = 0; signals < 3; ++signals) {
    while (!Sleeps(prompt)) std::this_thread::yield();
    prompt.Signal(SIGINT);
  }
  ASSERT_TRUE(prompt.ReadUntil("> "));
  Quit(prompt);
}

TEST_F(KvcliPromptTest, CutsTheHintAtTheWindowsEdge) {
  const size_t typed = ("gannet " + server_.endpoint() + "> put ").size();
  const std::string columns = "COLUMNS=" + std::to_string(typed + 16);
  ChildProcess prompt = Prompt({"TERM=xterm", "NO_COLOR", columns});
  ASSERT_TRUE(prompt.ReadUntil("> "));
  prompt.Write("put ");
  EXPECT_TRUE(prompt.ReadUntil("\033[90mKEY VALUE ...\033[0m"));
  prompt.Write("a_key_to_the_window's");
  EXPECT_TRUE(prompt.ReadUntil("window"));
  EXPECT_FALSE(prompt.ReadUntil(kGrey, kNoHint));
  prompt.Write("\003");
  ASSERT_TRUE(prompt.ReadUntil("> "));
  Quit(prompt);
}

TEST_F(KvcliPromptTest, CompletesOptionsAndFiles) {
  const test_support::TemporaryDirectory home;
  const std::string& directory = home.path();
  std::ofstream(directory + "/weights.bin") << "from a file";
  ChildProcess prompt = Prompt({"TERM=dumb", "NO_COLOR=1", "COLUMNS=400"});
  ASSERT_TRUE(prompt.ReadUntil("> "));
  prompt.Write("put model --fi\t" + directory + "/wei\t\n");
  ASSERT_TRUE(prompt.ReadUntil("--file=" + directory + "/weights.bin"));
  ASSERT_TRUE(prompt.ReadUntil("> "));
  prompt.Write("GET model\n");
  EXPECT_TRUE(prompt.ReadUntil("from a file\r\n"));
  prompt.Write("get mo\t--me\t\n");
  EXPECT_TRUE(prompt.ReadUntil("value_bytes 11")) << "of the key that was used, with --meta";
  Quit(prompt);
}

TEST_F(KvcliPromptTest, HasNoHintsWithoutColours) {
  const std::vector<std::vector<std::string>> without = {
      {"TERM=xterm", "NO_COLOR=1"}, {"TERM=dumb", "NO_COLOR"}, {"TERM", "NO_COLOR"}};
  for (const std::vector<std::string>& environment : without) {
    ChildProcess prompt = Prompt(environment);
    ASSERT_TRUE(prompt.ReadUntil("> "));
    prompt.Write("touch ");
    ASSERT_TRUE(prompt.ReadUntil("touch "));
    EXPECT_FALSE(prompt.ReadUntil(kGrey, kNoHint)) << environment[0] << ' ' << environment[1];
    prompt.Write("\003");
    ASSERT_TRUE(prompt.ReadUntil("> "));
    Quit(prompt);
  }
}

}  // namespace
}  // namespace gannet
