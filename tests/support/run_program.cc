#include "tests/support/run_program.h"

namespace test_support {

Finished Finish(ChildProcess& program) {
  const int exit_code = program.Wait().value_or(-1);
  return {exit_code, program.Stdout(), program.Stderr()};
}

Finished RunProgram(const std::vector<std::string>& argv, std::string_view input) {
  ChildProcess program(
      {.argv = argv, .streams = ChildProcess::Streams::kCaptured, .input = std::string(input)});
  return Finish(program);
}

Finished RunOnTerminal(const std::vector<std::string>& argv, std::string_view input) {
  ChildProcess program({.argv = argv, .streams = ChildProcess::Streams::kTerminal});
  program.Write(input);
  const std::string out = program.ReadAll();
  return {program.Wait().value_or(-1), out, ""};
}

}  // namespace test_support
