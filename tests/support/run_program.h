#ifndef GANNET_TESTS_SUPPORT_RUN_PROGRAM_H_
#define GANNET_TESTS_SUPPORT_RUN_PROGRAM_H_

#include <string>
#include <string_view>
#include <vector>

#include "softverbs/tests/support/child_process.h"

namespace test_support {

struct Finished {
  int exit_code = -1;  // as ChildProcess::Wait, or -1 if it still ran after kStepTimeout
  std::string out;
  std::string err;
};

// Waits until a program whose output is captured ends.
Finished Finish(ChildProcess& program);

// Runs a program to its end, with `input` as its stdin.
Finished RunProgram(const std::vector<std::string>& argv, std::string_view input = "");
// The same on a terminal; all output is in `out`.
Finished RunOnTerminal(const std::vector<std::string>& argv, std::string_view input);

}  // namespace test_support

#endif  // GANNET_TESTS_SUPPORT_RUN_PROGRAM_H_
