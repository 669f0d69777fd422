#include "common/program/execute_again.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace gannet {

absl::Status ExecuteAgain(char** argv) {
  // Handlers go by themselves. What is blocked would stay blocked.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", argv);
  return absl::ErrnoToStatus(errno, "cannot execute the program again");
}

}  // namespace gannet
