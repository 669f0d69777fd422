#include "tools/kvcli/command.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/invocation.h"
#include "tools/kvcli/nearest.h"
#include "tools/kvcli/verb_words.h"
#include "tools/kvcli/verbs.h"

namespace gannet::kvcli {
namespace {

constexpr std::pair<std::string_view, std::string_view> kExcludeEachOther[] = {
    {"--if_absent", "--if_present"}, {"--if_absent", "--if_version"}, {"--dry-run", "--stop"}};

// The words of a line, told apart by the usage of its row.
struct LineWords {
  std::vector<GivenWord> plain;     // names are not known yet
  std::vector<std::string> names;   // of its options: "--ttl"
  bool ends_with_literals = false;  // there is a "--"

  bool Has(std::string_view option) const {
    return std::ranges::find(names, option) != names.end();
  }
};

// Returns what to do about a word that is too many.
std::string_view AdviceOn(Verb verb, const std::string& word) {
  if (verb != Verb::kPut && verb != Verb::kCompareAndSet) return "";
  const std::string upper = absl::AsciiStrToUpper(word);  // options of Redis' SET
  if (upper == "EX" || upper == "PX") return "; for a time to live use --ttl=TIME";
  if (upper == "NX") return "; use --if_absent";
  if (upper == "XX") return "; use --if_present";
  return "; put quotes around a VALUE with blanks";
}

absl::Status NoOption(const VerbRow& row, std::string_view name) {
  if (IsFlag(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", std::string(name), " is a flag of kvcli's command line, not of a line here"));
  }
  std::vector<std::string> known;
  for (const UsageOption& option : UsageOf(row).options) known.push_back(option.name);
  const std::string nearest = Nearest(name, known);
  return absl::InvalidArgumentError(
      absl::StrCat("no option --", std::string(name), " here",
                   nearest.empty() ? " (put words that begin with -- behind a --)"
                                   : absl::StrCat("; did you mean --", nearest, "?")));
}

// Takes the option at `words[*at]`, and the word behind it if that is its value. Options of cluster
// are those of all actions: the action may stand behind them.
absl::Status TakeOption(const VerbRow& row, std::span<const std::string> words, size_t* at,
                        LineWords* line, Command* command) {
  const std::string& word = words[*at];
  const size_t equals = std::min(word.find('='), word.size());
  const UsageOption* known = UsageOf(row).FindOption(std::string_view(word).substr(2, equals - 2));
  if (known == nullptr) return NoOption(row, std::string_view(word).substr(2, equals - 2));
  const std::string name = word.substr(0, equals);
  std::string value = word.substr(std::min(equals + 1, word.size()));
  if (known->value.empty() && equals < word.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " takes no value"));
  }
  const bool more = *at + 1 < words.size() && !words[*at + 1].starts_with("--");
  if (!known->value.empty() && equals == word.size() && more) value = words[++*at];
  line->names.push_back(name);
  return Take({.name = name, .text = value}, command);
}

absl::Status TakeLine(const VerbRow& row, std::span<const std::string> words, LineWords* line,
                      Command* command) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (line->ends_with_literals && row.verb == Verb::kLock) {
      command->child.push_back(words[i]);
    } else if (line->ends_with_literals) {
      line->plain.push_back({.text = words[i], .literal = true});
    } else if (words[i] == "--") {
      line->ends_with_literals = true;
    } else if (words[i].starts_with("--")) {
      GANNET_RETURN_IF_ERROR(TakeOption(row, words, &i, line, command));
    } else {
      line->plain.push_back({.text = words[i]});
    }
  }
  return absl::OkStatus();
}

// Returns the row of the action, which is the line's first plain word, and takes that word away.
absl::StatusOr<const VerbRow*> TakeAction(LineWords* line) {
  if (line->plain.empty()) return absl::InvalidArgumentError("ACTION is missing");
  const std::string word = line->plain[0].text;
  line->plain.erase(line->plain.begin());
  if (const VerbRow* const row = FindAction(word)) return row;
  const std::string nearest = Nearest(word, ActionNames());
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is no ACTION",
                   nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

// Returns what an operator has to know before he gives the option.
std::string_view WhyNeeded(std::string_view option) {
  if (option == "from") return ", whose items are kept";
  if (option != "lose-data") return "";
  return ": writes that were acknowledged may be lost. First look at kvcli cluster status for the "
         "node that has applied most, and make sure that the former primary's machine is off: "
         "alone, it would go on serving";
}

// Other actions have the option: it was taken.
absl::Status CheckOptionsOfAction(const VerbRow& row, const LineWords& line) {
  for (const std::string& name : line.names) {
    const std::string_view bare = std::string_view(name).substr(2);
    if (UsageOf(row).FindOption(bare) != nullptr) continue;
    std::vector<std::string> actions;
    for (const VerbRow& other : VerbRows()) {
      if (other.action && UsageOf(other).FindOption(bare)) actions.emplace_back(other.name);
    }
    return absl::InvalidArgumentError(absl::StrCat(name, " is for ", absl::StrJoin(actions, ", ")));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const VerbRow& row, const LineWords& line) {
  for (const auto& [one, other] : kExcludeEachOther) {
    if (!line.Has(one) || !line.Has(other)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(one), " and ", std::string(other), " exclude each other"));
  }
  for (const UsageOption& option : UsageOf(row).options) {
    if (!option.must || line.Has("--" + option.name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option.Text(), " is missing", std::string(WhyNeeded(option.name))));
  }
  return absl::OkStatus();
}

absl::Status CheckNumberOfWords(const VerbRow& row, const LineWords& line) {
  const Usage& usage = UsageOf(row);
  const bool has_file = row.verb == Verb::kPut && line.Has("--file");
  const size_t min = usage.words_min - (has_file ? 1 : 0);
  const size_t given = line.plain.size();
  if (given < min) {
    const bool or_file = row.verb == Verb::kPut && given == 1;
    return absl::InvalidArgumentError(absl::StrCat(std::string(usage.PlaceAt(given)), " is missing",
                                                   or_file ? ", or --file=PATH" : ""));
  }
  if (has_file && given > min) {
    return absl::InvalidArgumentError("VALUE and --file exclude each other");
  }
  if (row.verb == Verb::kMultiPut && given % 2 != 0) {
    return absl::InvalidArgumentError("a VALUE is missing");
  }
  if (row.verb == Verb::kDelete && given > 1 && line.Has("--if_version")) {
    return absl::InvalidArgumentError("--if_version is for one key");
  }
  if (given <= usage.words_max) return absl::OkStatus();
  const std::string& extra = line.plain[usage.words_max].text;
  return absl::InvalidArgumentError(
      absl::StrCat("'", extra, "' is one word too many", std::string(AdviceOn(row.verb, extra))));
}

// Takes the words behind the name. `*row` becomes the action's of a line of cluster.
absl::Status TakeWords(const VerbRow** row, std::span<const std::string> words, Command* command) {
  LineWords line;
  GANNET_RETURN_IF_ERROR(TakeLine(**row, words, &line, command));
  if (command->verb == Verb::kLock && line.ends_with_literals && command->child.empty()) {
    return absl::InvalidArgumentError("no command behind the --");
  }
  if (command->verb == Verb::kCluster) {
    GANNET_ASSIGN_OR_RETURN(*row, TakeAction(&line));
    command->cluster.action = *(*row)->action;
    GANNET_RETURN_IF_ERROR(CheckOptionsOfAction(**row, line));
  }
  GANNET_RETURN_IF_ERROR(CheckOptions(**row, line));
  GANNET_RETURN_IF_ERROR(CheckNumberOfWords(**row, line));
  for (size_t i = 0; i < line.plain.size(); ++i) {
    line.plain[i].name = UsageOf(**row).PlaceAt(i);
    GANNET_RETURN_IF_ERROR(Take(line.plain[i], command));
  }
  return command->verb == Verb::kCluster ? Complete(&command->cluster) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<Command> ParseCommand(std::span<const std::string> line) {
  if (line.empty()) return absl::InvalidArgumentError("no command");
  auto words = WordsOfName(line[0]);
  if (!words) return absl::InvalidArgumentError(NoCommand(line[0]));
  words->insert(words->end(), line.begin() + 1, line.end());
  Command command{.verb = *FindVerb(words->front())};
  const VerbRow* row = &RowOf(command.verb);
  const absl::Status taken =
      TakeWords(&row, std::span<const std::string>(*words).subspan(1), &command);
  if (!taken.ok()) return UsageError(*row, std::string(taken.message()));
  return command;
}

absl::Status CheckOneShot(const Command& command) {
  if (command.verb == Verb::kLock && command.child.empty()) {
    return UsageError(RowOf(command.verb),
                      "kvcli would end and free the lock at once: give it a command to run, or use "
                      "the prompt or a script");
  }
  if (command.verb == Verb::kUnlock && !command.force) {
    return UsageError(RowOf(command.verb),
                      "a command line holds no lock to release: use --force, or the prompt or a "
                      "script");
  }
  return absl::OkStatus();
}

}  // namespace gannet::kvcli
