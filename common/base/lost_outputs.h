#ifndef GANNET_COMMON_BASE_LOST_OUTPUTS_H_
#define GANNET_COMMON_BASE_LOST_OUTPUTS_H_

#include <csignal>

namespace gannet {

// Lets this process outlive what it writes to: a write to a pipe whose reader is gone fails (EPIPE)
// and so does one to a file that may not grow any more (EFBIG, `ulimit -f`), instead of ending the
// process by SIGPIPE or SIGXFSZ. The main function of each program calls it first.
void SurviveLostOutputs();

// Returns the signals that the process ignores because of that, and did not before. Ignored signals
// stay ignored across exec, so who runs another program gives it these back (posix_spawn's
// SETSIGDEF).
sigset_t SignalsOfLostOutputs();

// Does that for this process, which is about to execute a program in its place. Returns whether
// there were any: if the program cannot be executed, SurviveLostOutputs again.
bool EndSurvivingLostOutputs();

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_LOST_OUTPUTS_H_
