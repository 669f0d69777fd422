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

// Takes an option of `command`, whose verb is set: --name, --name=value, or --name and then `next`,
// the word behind it (null: there is none). Then `used_next` is set. InvalidArgument: the command
// has no such option, or the value is wrong.
absl::Status ApplyOption(std::string_view word, const std::string* next, Command* command,
                         bool* used_next);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_COMMAND_OPTIONS_H_
