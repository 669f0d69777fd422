#include "tools/kvcli/child.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "common/base/lost_outputs.h"

extern char** environ;

namespace gannet::kvcli {
namespace {

// The child (0 before and after it runs), and a signal that must still be passed on to it. A signal
// may come, on any thread, before the child's number is known. Of the handler and RunChild, the one
// that writes later must see what the other wrote. So both are sequentially consistent.
std::atomic<pid_t> child_pid{0};
std::atomic<int> pending_signal{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void PassPendingOn() {
  const pid_t pid = child_pid.load();
  if (pid == 0) return;
  const int signal = pending_signal.exchange(0);
  if (signal != 0) kill(pid, signal);
}

extern "C" void HandleSignal(int signal) {
  pending_signal.store(signal);
  PassPendingOn();
}

// Sets handlers while a child runs, and restores the old ones afterwards.
class SignalGuard {
 public:
  SignalGuard() {
    for (size_t i = 0; i < kSignals; ++i) {
      struct sigaction action {};
      action.sa_handler = kPassedOn[i] ? &HandleSignal : SIG_IGN;
      action.sa_flags = SA_RESTART;
      sigaction(kNumbers[i], &action, &before_[i]);
    }
  }
  ~SignalGuard() {
    for (size_t i = 0; i < kSignals; ++i) sigaction(kNumbers[i], &before_[i], nullptr);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The signals that the child starts with. Ignored signals would stay ignored across exec.
  static sigset_t Defaults() {
    sigset_t set = SignalsOfLostOutputs();
    for (const int number : kNumbers) sigaddset(&set, number);
    return set;
  }

 private:
  static constexpr size_t kSignals = 4;
  static constexpr int kNumbers[kSignals] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  static constexpr bool kPassedOn[kSignals] = {false, false, true, true};
  struct sigaction before_[kSignals];
};

int Spawn(const std::vector<char*>& argv, pid_t* pid) {
  const sigset_t defaults = SignalGuard::Defaults();
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(pid, argv[0], nullptr, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// Returns when the child has ended (or at once on a kernel without pidfds). waitpid alone would be
// enough, but ThreadSanitizer does not know that it blocks, and would hold a signal back until it
// returns.
void WaitForEnd(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return;
  struct pollfd ended {};
  ended.fd = fd;
  ended.events = POLLIN;
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  close(fd);
}

}  // namespace

int RunChild(std::span<const std::string> words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const SignalGuard guard;
  pid_t pid = 0;
  const int error = Spawn(argv, &pid);
  if (error != 0) {
    std::fprintf(stderr, "kvcli: cannot run %s: %s\n", argv[0], std::strerror(error));
    return error == ENOENT ? kExitNoProgram : kExitCannotRun;
  }
  child_pid.store(pid);
  PassPendingOn();
  WaitForEnd(pid);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child_pid.store(0);
  pending_signal.store(0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace gannet::kvcli
