#ifndef GANNET_TOOLS_KVCLI_HINT_H_
#define GANNET_TOOLS_KVCLI_HINT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace gannet::kvcli {

// Returns what a command still takes behind `line`, which is being typed at the prompt: the words
// of its usage that `line` does not have yet. Begins with a blank if `line` does not end with one.
// Returns "" if `line` names no command, if nothing is left, or inside quotes.
//
//   "put "         KEY VALUE [--file=PATH] [--ttl=TIME] ...
//   "put k v"       [--file=PATH] [--ttl=TIME] ...
std::string HintFor(std::string_view line);

// Returns the hint if it takes at most `columns`. Otherwise as many of its words as fit together
// with "...", which follows them. Returns "" if not even one word fits.
std::string CutHint(std::string_view hint, size_t columns);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_HINT_H_
