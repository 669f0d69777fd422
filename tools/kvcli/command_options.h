#ifndef GANNET_TOOLS_KVCLI_COMMAND_OPTIONS_H_
#define GANNET_TOOLS_KVCLI_COMMAND_OPTIONS_H_

#include <charconv>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// Parses a whole text as a decimal number.
template <class T>
bool ParseNumber(std::string_view text, T* out) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stopped == end;
}

// Takes an option of a command: --name or --name=value. `options` has the names of those that the
// command has, each between blanks. InvalidArgument: it has no such option, or the value is wrong.
absl::Status ApplyOption(std::string_view options, std::string_view word, Command* command);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_COMMAND_OPTIONS_H_
