// A client's clock goes on while the machine is suspended. A time namespace, in which the clock
// that does is ahead of the one that does not, stands for a suspension.

#include "common/base/client_clock.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace gannet {
namespace {

constexpr int64_t kSuspendedSeconds = 1'000'000;

// Exit codes of the processes below.
enum Verdict { kGoesOn, kStandsStill, kNoNamespace };

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

int WaitFor(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kNoNamespace;
  return WEXITSTATUS(status);
}

Verdict CompareClocks() {
  const int64_t ahead_ns = ClientClock::Real().MonotonicNs() - MonotonicNs();
  return ahead_ns > kSuspendedSeconds * kNsPerSecond / 2 ? kGoesOn : kStandsStill;
}

// Its children are in the namespace.
int RunInNamespace() {
  const bool made = unshare(CLONE_NEWTIME) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWTIME) == 0;
  if (!made) return kNoNamespace;
  std::ofstream offsets("/proc/self/timens_offsets");
  offsets << "boottime " << kSuspendedSeconds << " 0\n" << std::flush;
  if (!offsets) return kNoNamespace;
  const pid_t child = fork();
  if (child == 0) _exit(CompareClocks());
  return WaitFor(child);
}

TEST(ClientClockTest, GoesOnWhileTheMachineIsSuspended) {
  const pid_t child = fork();
  if (child == 0) _exit(RunInNamespace());
  const int verdict = WaitFor(child);
  if (verdict == kNoNamespace) GTEST_SKIP() << "this machine lets nobody make a time namespace";
  EXPECT_EQ(verdict, kGoesOn);
}

TEST(ClientClockTest, NeverGoesBack) {
  int64_t last_ns = ClientClock::Real().MonotonicNs();
  for (int i = 0; i < 10'000; ++i) {
    const int64_t now_ns = ClientClock::Real().MonotonicNs();
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
}

}  // namespace
}  // namespace gannet
