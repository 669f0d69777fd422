#ifndef GANNET_TOOLS_KVCLI_VERB_WORDS_H_
#define GANNET_TOOLS_KVCLI_VERB_WORDS_H_

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// What a word means is the same in each verb that takes it: KEY is a key, --ttl a time to live. So
// it stands once, and a verb's row only names it.

// A word as the user gave it.
struct GivenWord {
  std::string_view name = {};  // "KEY" of a usage, or an option: "--ttl"
  std::string text = {};       // an option's value, if it takes one
  bool literal = false;        // behind a "--": never an option or "-"

  bool is_option() const { return name.starts_with("--"); }
};

enum class CompletedBy : uint8_t { kNothing, kKeys, kFiles, kVerbs, kActions };

// Returns whether any verb may take a word of this name.
bool IsWord(std::string_view name);
// Puts the word into the command. InvalidArgument: it is wrong. REQUIRES: IsWord(word.name).
absl::Status Take(const GivenWord& word, Command* command);
CompletedBy CompletionOfWord(std::string_view name);

// Parses a whole text as a decimal number.
template <class T>
bool ParseNumber(std::string_view text, T* out) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stopped == end;
}

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_VERB_WORDS_H_
