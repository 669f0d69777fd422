#include <algorithm>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/kvcli/prompt.h"

namespace gannet::kvcli {

int RunScript(Shell& shell) {
  int worst = kExitDone;
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    const auto words = SplitLine(line);
    if (words.ok() && words->empty()) continue;
    const auto command = words.ok() ? ParseCommand(*words) : words.status();
    if (!command.ok()) {
      worst = std::max(worst, shell.ReportUsage(absl::InvalidArgumentError(absl::StrCat(
                                  "line ", number, ": ", command.status().message()))));
      continue;
    }
    if (command->verb == Verb::kQuit) break;
    worst = std::max(worst, shell.Execute(*command));
  }
  return worst;
}

}  // namespace gannet::kvcli
