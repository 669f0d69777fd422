#include "tools/kvcli/command.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/command_options.h"
#include "tools/kvcli/spec.h"

namespace gannet::kvcli {
namespace {

// A word as the user gave it. A word behind a "--" is never an option or "-".
struct Word {
  std::string text;
  bool literal = false;
};

void TakeValue(const Word& word, Command* command) {
  command->value_from_stdin = word.text == "-" && !word.literal;
  if (!command->value_from_stdin) command->value = word.text;
}

// Returns what to do about a word that is too many.
std::string_view AdviceOn(Verb verb, const std::string& word) {
  if (verb != Verb::kPut && verb != Verb::kCompareAndSet) return "";
  const std::string upper = absl::AsciiStrToUpper(word);  // options of Redis' SET
  if (upper == "EX" || upper == "PX") return "; for a time to live use --ttl=TIME";
  if (upper == "NX") return "; use --if_absent";
  if (upper == "XX") return "; use --if_present";
  return "; put quotes around a VALUE with blanks";
}

absl::Status CheckNumberOfWords(const Spec& spec, const std::vector<Word>& words, bool has_file) {
  const Usage& usage = UsagePartsOf(spec.verb);
  const size_t min = usage.words_min - (has_file ? 1 : 0);
  if (words.size() < min) {
    const std::string& name = usage.places[words.size()];
    const bool or_file = spec.verb == Verb::kPut && words.size() == 1;
    return UsageError(spec, absl::StrCat(absl::StripSuffix(name, "..."), " is missing",
                                         or_file ? ", or --file=PATH" : ""));
  }
  if (has_file && words.size() > min)
    return UsageError(spec, "VALUE and --file exclude each other");
  if (words.size() <= usage.words_max) return absl::OkStatus();
  const std::string& extra = words[usage.words_max].text;
  return UsageError(spec, absl::StrCat("'", extra, "' is one word too many",
                                       std::string(AdviceOn(spec.verb, extra))));
}

absl::Status TakeWords(const Spec& spec, const std::vector<Word>& words, Command* command) {
  GANNET_RETURN_IF_ERROR(CheckNumberOfWords(spec, words, !command->file.empty()));
  switch (spec.verb) {
    case Verb::kHelp:
      if (!words.empty()) command->topic = words[0].text;
      return absl::OkStatus();
    case Verb::kCluster: {
      std::vector<std::string> texts;
      for (const Word& word : words) texts.push_back(word.text);
      const absl::Status taken = TakeClusterWords(texts, &command->cluster);
      return taken.ok() ? taken : UsageError(spec, std::string(taken.message()));
    }
    case Verb::kUpgradeCheck:
      command->path = words[0].text;
      return absl::OkStatus();
    case Verb::kScan:
      if (words.empty()) return absl::OkStatus();
      if (!command->match.empty()) return UsageError(spec, "GLOB and --match exclude each other");
      command->match = words[0].text;
      return absl::OkStatus();
    case Verb::kPut:
    case Verb::kAppend:
    case Verb::kPrepend:
      if (words.size() > 1) TakeValue(words[1], command);
      break;
    case Verb::kDelete:
      if (words.size() > 1 && command->if_version)
        return UsageError(spec, "--if_version is for one key");
      break;
    case Verb::kMultiPut:
      if (words.size() % 2 != 0) return UsageError(spec, "a VALUE is missing");
      for (size_t i = 0; i < words.size(); i += 2) {
        command->keys.push_back(words[i].text);
        command->values.push_back(words[i + 1].text);
      }
      return absl::OkStatus();
    case Verb::kIncr:
    case Verb::kDecr:
      if (words.size() > 1 && !ParseNumber(words[1].text, &command->number)) {
        return UsageError(spec, "NUMBER is a number of 64 bits");
      }
      break;
    case Verb::kTouch:
    case Verb::kGetAndTouch: {
      auto ttl = ParseDuration(words[1].text);
      if (!ttl.ok()) return UsageError(spec, std::string(ttl.status().message()));
      command->ttl = *ttl;
      break;
    }
    case Verb::kCompareAndSet:
      if (!ParseNumber(words[1].text, &command->if_version.emplace())) {
        return UsageError(spec, "VERSION is a number");
      }
      TakeValue(words[2], command);
      break;
    default:
      break;
  }
  const bool takes_many =
      spec.verb == Verb::kMultiGet || spec.verb == Verb::kExists || spec.verb == Verb::kDelete;
  const size_t keys = takes_many ? words.size() : std::min<size_t>(1, words.size());
  for (size_t i = 0; i < keys; ++i) command->keys.push_back(words[i].text);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Command> ParseCommand(std::span<const std::string> line) {
  if (line.empty()) return absl::InvalidArgumentError("no command");
  auto words = WordsOfName(line[0]);
  if (!words) return absl::InvalidArgumentError(NoCommand(line[0]));
  words->insert(words->end(), line.begin() + 1, line.end());
  const Verb verb = *FindVerb(words->front());
  const Spec& spec = SpecOf(verb);
  Command command{.verb = verb};
  std::vector<Word> plain;
  bool literal = false;
  for (size_t i = 1; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    if (literal && verb == Verb::kLock) {
      command.child.push_back(word);
    } else if (literal) {
      plain.push_back({word, true});
    } else if (word == "--") {
      literal = true;
    } else if (word.starts_with("--")) {
      const bool more = i + 1 < words->size() && !(*words)[i + 1].starts_with("--");
      bool used_next = false;
      const absl::Status applied =
          ApplyOption(word, more ? &(*words)[i + 1] : nullptr, &command, &used_next);
      if (!applied.ok()) return UsageError(spec, std::string(applied.message()));
      if (used_next) ++i;
    } else {
      plain.push_back({word, false});
    }
  }
  if (verb == Verb::kLock && literal && command.child.empty()) {
    return UsageError(spec, "no command behind the --");
  }
  if (command.if_absent && command.if_present) {
    return UsageError(spec, "--if_absent and --if_present exclude each other");
  }
  if (command.if_absent && command.if_version) {
    return UsageError(spec, "--if_absent and --if_version exclude each other");
  }
  GANNET_RETURN_IF_ERROR(TakeWords(spec, plain, &command));
  return command;
}

absl::Status CheckOneShot(const Command& command) {
  if (command.verb == Verb::kLock && command.child.empty()) {
    return UsageError(SpecOf(command.verb),
                      "kvcli would end and free the lock at once: give it a command to run, or use "
                      "the prompt or a script");
  }
  if (command.verb == Verb::kUnlock && !command.force) {
    return UsageError(SpecOf(command.verb),
                      "a command line holds no lock to release: use --force, or the prompt or a "
                      "script");
  }
  return absl::OkStatus();
}

}  // namespace gannet::kvcli
