#include "common/program/execute_again.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "common/base/lost_outputs.h"

namespace gannet {
namespace {

constexpr const char* kVariable = "GANNET_EXECUTED_AGAIN";

}  // namespace

absl::Status ExecuteAgain(char** argv) {
  // Handlers go by themselves. What is blocked would stay blocked.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setenv(kVariable, "1", /*overwrite=*/1);
  const bool survives = EndSurvivingLostOutputs();
  execv("/proc/self/exe", argv);
  const absl::Status status = absl::ErrnoToStatus(errno, "cannot execute the program again");
  if (survives) SurviveLostOutputs();
  return status;
}

bool WasExecutedAgain() { return std::getenv(kVariable) != nullptr; }

}  // namespace gannet
