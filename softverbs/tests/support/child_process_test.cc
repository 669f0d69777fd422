#include "softverbs/tests/support/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace test_support {
namespace {

using Streams = ChildProcess::Streams;
using std::chrono::milliseconds;

TEST(ChildProcessTest, TalksInLines) {
  ChildProcess cat({.argv = {"cat"}});
  EXPECT_TRUE(cat.WriteLine("one\ntwo"));
  EXPECT_EQ(cat.ReadLine(), "one");
  EXPECT_EQ(cat.ReadLine(), "two");
  EXPECT_EQ(cat.ReadLine(milliseconds(1)), std::nullopt);
  EXPECT_EQ(cat.Wait(milliseconds(1)), std::nullopt);
}

TEST(ChildProcessTest, CapturesBothStreamsAndTheExitCode) {
  ChildProcess shell({.argv = {"sh", "-c", "cat; echo no >&2; exit 3"},
                      .streams = Streams::kCaptured,
                      .input = "given"});
  EXPECT_EQ(shell.Wait(), 3);
  EXPECT_EQ(shell.Stdout(), "given");
  EXPECT_EQ(shell.Stderr(), "no\n");
}

TEST(ChildProcessTest, ChangesTheEnvironment) {
  ChildProcess shell(
      {.argv = {"sh", "-c", "echo ${HOME-none} $ADDED"}, .environment = {"HOME", "ADDED=yes"}});
  EXPECT_EQ(shell.ReadLine(), "none yes");
}

TEST(ChildProcessTest, SaysWhichSignalEndedIt) {
  ChildProcess cat({.argv = {"cat"}});
  cat.Stop();
  cat.Signal(SIGKILL);
  EXPECT_EQ(cat.Wait(), KilledBy(SIGKILL));
  cat.Signal(SIGKILL);  // nobody
  EXPECT_EQ(cat.ReadLine(), std::nullopt);
}

TEST(ChildProcessTest, AProgramThatDoesNotExistExitsWith127) {
  ChildProcess none({.argv = {"/nonexistent"}});
  EXPECT_EQ(none.Wait(), 127);
  EXPECT_NE(none.Stderr().find("/nonexistent"), std::string::npos);
}

TEST(ChildProcessTest, AwaitsWhatItWritesToStderr) {
  ChildProcess shell({.argv = {"sh", "-c", "read go; echo going >&2; exit 0"}});
  EXPECT_FALSE(shell.AwaitStderr("going", milliseconds(1)));
  shell.WriteLine("go");
  EXPECT_TRUE(shell.AwaitStderr("going"));
  EXPECT_FALSE(shell.AwaitStderr("gone"));
}

TEST(ChildProcessTest, ATerminalIsItsControllingOne) {
  ChildProcess cat({.argv = {"sh", "-c", "tty; exec cat"}, .streams = Streams::kTerminal});
  EXPECT_TRUE(cat.ReadUntil("/dev/pts/"));
  EXPECT_TRUE(cat.ReadUntil("\r\n"));
  cat.Write("\003");
  EXPECT_EQ(cat.ReadAll(), "^C");
  EXPECT_EQ(cat.Wait(), KilledBy(SIGINT));
}

TEST(ChildProcessTest, PassesADescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    ChildProcess shell(
        {.argv = {"sh", "-c", "echo x >&3"}, .streams = Streams::kInherited, .passed = ends[1]});
    EXPECT_EQ(shell.Wait(), 0);
  }
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  close(ends[0]);
  close(ends[1]);
}

TEST(ChildProcessTest, DestructionKillsWhatTheProgramStartedToo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    ChildProcess shell({.argv = {"sh", "-c", "sleep 1000 & echo ready; wait"}, .passed = ends[1]});
    ASSERT_EQ(shell.ReadLine(), "ready");
  }
  // Both had this end open, so the pipe ends when both are dead.
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

TEST(ChildProcessTest, EndsWithATestThatRunsNoDestructor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t test = fork();
  if (test == 0) {
    ChildProcess shell({.argv = {"sh", "-c", "echo ready; exec sleep 1000"}, .passed = ends[1]});
    _exit(shell.ReadLine() == "ready" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(test, &status, 0), test);
  EXPECT_EQ(status, 0);
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace test_support
