#include "tools/kvcli/word_completion.h"

#include <algorithm>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "tools/kvcli/verb_words.h"
#include "tools/kvcli/verbs.h"

namespace gannet::kvcli {
namespace {

WordCompletion Matching(std::string_view typed, const auto& candidates) {
  WordCompletion completion;
  for (const std::string& candidate : candidates) {
    if (candidate.starts_with(typed)) completion.words.push_back(candidate);
  }
  std::ranges::sort(completion.words);
  return completion;
}

// "--ttl=" for an option with a value. Leaves out those that `words` have.
std::vector<std::string> OptionsLeft(const Usage& usage, const std::vector<std::string>& words) {
  std::vector<std::string> left;
  for (const UsageOption& option : usage.options) {
    const std::string name = "--" + option.name;
    const bool typed = std::ranges::any_of(
        words, [&name](const std::string& word) { return word.substr(0, word.find('=')) == name; });
    if (!typed) left.push_back(option.value.empty() ? name : name + "=");
  }
  return left;
}

// Returns the option that `before` ends with and that still lacks its value.
const UsageOption* OpenOption(const Usage& usage, std::string_view before,
                              const std::string& last) {
  if (!last.starts_with("--")) return nullptr;
  const UsageOption* option =
      usage.FindOption(std::string_view(last).substr(2, last.find('=') - 2));
  if (option == nullptr || option->value.empty()) return nullptr;
  const bool has_value = last.find('=') != std::string::npos && !before.ends_with('=');
  return has_value ? nullptr : option;
}

// Returns how many words there are that are neither options nor their values.
size_t PlainWords(const Usage& usage, std::span<const std::string> words) {
  size_t plain = 0;
  bool literal = false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (literal || !words[i].starts_with("--")) {
      ++plain;
    } else if (words[i] == "--") {
      literal = true;
    } else if (OpenOption(usage, "", words[i]) != nullptr && words[i].find('=') == words[i].npos) {
      ++i;
    }
  }
  return plain;
}

WordCompletion CompletionBy(CompletedBy by, std::string_view typed,
                            const std::set<std::string>& keys) {
  switch (by) {
    case CompletedBy::kKeys:
      return Matching(typed, keys);
    case CompletedBy::kVerbs:
      return Matching(typed, VerbNames());
    case CompletedBy::kActions:
      return Matching(typed, ActionNames());
    case CompletedBy::kFiles:
      return {.words = {}, .files = true};
    case CompletedBy::kNothing:
      break;
  }
  return {};
}

}  // namespace

WordCompletion CompletionOf(std::string_view before, std::string_view typed,
                            const std::set<std::string>& keys) {
  const auto words = SplitLine(before);
  if (!words.ok()) return {};
  if (words->empty()) return Matching(absl::AsciiStrToLower(std::string(typed)), VerbNames());
  const NamedRow named = FindRow(*words);
  if (named.row == nullptr) return {};
  const Usage& usage = UsageOf(*named.row);
  const bool literal = std::ranges::find(*words, "--") != words->end();
  if (literal && named.row->verb == Verb::kLock) return {.words = {}, .files = true};  // a command
  if (!literal) {
    if (const UsageOption* open = OpenOption(usage, before, words->back()); open != nullptr) {
      if (open->value.find('|') != std::string::npos) {
        return Matching(typed, std::vector<std::string>(absl::StrSplit(open->value, '|')));
      }
      return CompletionBy(CompletionOfWord("--" + open->name), typed, keys);
    }
    if (typed.starts_with('-')) return Matching(typed, OptionsLeft(usage, *words));
  }
  const size_t plain = PlainWords(usage, std::span<const std::string>(*words).subspan(named.words));
  return CompletionBy(CompletionOfWord(usage.PlaceAt(plain)), typed, keys);
}

}  // namespace gannet::kvcli
