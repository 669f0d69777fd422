#ifndef GANNET_TOOLS_KVCLI_NEAREST_H_
#define GANNET_TOOLS_KVCLI_NEAREST_H_

#include <span>
#include <string>
#include <string_view>

namespace gannet::kvcli {

// Returns the known name that `word` is most likely a slip of, or "" if it resembles none. A slip
// is a letter too many, missing, wrong, or swapped with the next; one for every three letters.
std::string Nearest(std::string_view word, std::span<const std::string> known);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_NEAREST_H_
