#ifndef GANNET_TOOLS_KVCLI_WORD_COMPLETION_H_
#define GANNET_TOOLS_KVCLI_WORD_COMPLETION_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gannet::kvcli {

// What a word of the prompt's line may become.
struct WordCompletion {
  std::vector<std::string> words;  // sorted; each begins with what was typed
  bool files = false;              // names of files instead
};

// `before` is the line up to the word, or up to the value of --name=value. `typed` is what there is
// of the word or value. `keys` are the keys that were used before.
WordCompletion CompletionOf(std::string_view before, std::string_view typed,
                            const std::set<std::string>& keys);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_WORD_COMPLETION_H_
