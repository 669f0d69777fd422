#include "tools/kvcli/word_completion.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "tools/kvcli/cluster_command.h"
#include "tools/kvcli/command.h"
#include "tools/kvcli/spec.h"

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
std::vector<std::string> OptionsLeft(Verb verb, const std::vector<std::string>& words) {
  std::vector<std::string> left;
  for (const UsageOption& option : UsagePartsOf(verb).options) {
    const std::string name = "--" + option.name;
    const bool typed = std::ranges::any_of(
        words, [&name](const std::string& word) { return word.substr(0, word.find('=')) == name; });
    if (!typed) left.push_back(option.takes_value ? name + "=" : name);
  }
  return left;
}

bool TakesKey(Verb verb) {
  const std::vector<std::string>& places = UsagePartsOf(verb).places;
  return !places.empty() && places[0].starts_with("KEY");
}

// Returns the option that `before` ends with and that still lacks its value.
const UsageOption* OpenOption(Verb verb, std::string_view before, const std::string& last) {
  if (!last.starts_with("--")) return nullptr;
  const UsageOption* option =
      FindOption(verb, std::string_view(last).substr(2, last.find('=') - 2));
  if (option == nullptr || !option->takes_value) return nullptr;
  const bool has_value = last.find('=') != std::string::npos && !before.ends_with('=');
  return has_value ? nullptr : option;
}

}  // namespace

WordCompletion CompletionOf(std::string_view before, std::string_view typed,
                            const std::set<std::string>& keys) {
  const auto words = SplitLine(before);
  if (!words.ok()) return {};
  if (words->empty()) return Matching(absl::AsciiStrToLower(std::string(typed)), VerbNames());
  const std::optional<Verb> verb = FindVerb(words->front());
  if (!verb) return {};
  if (*verb == Verb::kHelp) return Matching(typed, VerbNames());
  const bool literal = std::ranges::find(*words, "--") != words->end();
  if (literal && *verb == Verb::kLock) return {.words = {}, .files = true};  // a command
  if (!literal) {
    if (const UsageOption* open = OpenOption(*verb, before, words->back()); open != nullptr) {
      return {.words = {},
              .files = open->name == "file" || open->name == "out" || open->name == "kvserver"};
    }
    if (typed.starts_with('-')) return Matching(typed, OptionsLeft(*verb, *words));
  }
  if (*verb == Verb::kUpgradeCheck) return {.words = {}, .files = true};
  if (*verb == Verb::kCluster && words->size() == 1) return Matching(typed, ClusterActions());
  return TakesKey(*verb) ? Matching(typed, keys) : WordCompletion{};
}

}  // namespace gannet::kvcli
