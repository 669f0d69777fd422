#include "tools/kvcli/command_options.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/invocation.h"
#include "tools/kvcli/nearest.h"
#include "tools/kvcli/spec.h"

namespace gannet::kvcli {
namespace {

// The shortest interval of top. Each look costs the server's CPU some requests.
constexpr int64_t kIntervalMsMin = 100;

// The most hot keys that top shows. More would leave no room for clients.
constexpr uint64_t kTopHotKeysMax = 100;

struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

Option SplitOption(std::string_view word) {
  word.remove_prefix(2);
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {word, std::nullopt};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

absl::Status ApplyDuration(const Option& option, std::chrono::milliseconds* out) {
  const auto time = ParseDuration(option.value.value_or(""));
  if (!time.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", std::string(option.name), ": ", time.status().message()));
  }
  *out = *time;
  return absl::OkStatus();
}

template <class T>
absl::Status ApplyNumber(const Option& option, T* out) {
  if (ParseNumber(option.value.value_or(""), out)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", std::string(option.name), " needs a number from ",
                   std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max()));
}

absl::Status ApplySwitch(const Option& option, bool* out) {
  if (option.value) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", std::string(option.name), " takes no value"));
  }
  *out = true;
  return absl::OkStatus();
}

absl::Status ApplyCount(const Option& option, uint64_t* out) {
  GANNET_RETURN_IF_ERROR(ApplyNumber(option, out));
  if (*out > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", std::string(option.name), " is at least 1"));
}

// Takes the id of an authentication key, which is never 0.
absl::Status ApplyId(const Option& option, uint32_t* out) {
  if (ParseNumber(option.value.value_or(""), out) && *out > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("--id needs a number from 1 to 4294967295");
}

absl::Status ApplyHotKeys(const Option& option, uint64_t* out) {
  GANNET_RETURN_IF_ERROR(ApplyCount(option, out));
  if (*out <= kTopHotKeysMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", std::string(option.name), " is at most ", kTopHotKeysMax));
}

absl::Status ApplyPeriod(const Option& option, int64_t ms_min, std::chrono::milliseconds* out) {
  GANNET_RETURN_IF_ERROR(ApplyDuration(option, out));
  if (out->count() >= ms_min) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", std::string(option.name), " is at least ", ms_min, "ms"));
}

absl::Status ApplyText(const Option& option, std::string* out) {
  *out = option.value.value_or("");
  if (!out->empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", std::string(option.name), " needs a value"));
}

absl::Status NoOption(std::string_view name, Verb verb) {
  if (IsFlag(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", std::string(name), " is a flag of kvcli's command line, not of a line here"));
  }
  std::vector<std::string> known;
  for (const UsageOption& option : UsagePartsOf(verb).options) known.push_back(option.name);
  const std::string nearest = Nearest(name, known);
  return absl::InvalidArgumentError(
      absl::StrCat("no option --", std::string(name), " here",
                   nearest.empty() ? " (put words that begin with -- behind a --)"
                                   : absl::StrCat("; did you mean --", nearest, "?")));
}

// REQUIRES: the command has this option.
absl::Status Apply(const Option& option, Command* command) {
  const std::string_view name = option.name;
  if (command->verb == Verb::kCluster) {
    const std::string_view value = option.value.value_or("");
    if (const auto applied = ApplyClusterOption(name, value, &command->cluster)) return *applied;
    if (name == "check") return ApplySwitch(option, &command->cluster.check);
    if (name == "if_missing") return ApplySwitch(option, &command->cluster.if_missing);
    if (name == "lose-data") return ApplySwitch(option, &command->cluster.lose_data);
    if (name == "even-if-worse") return ApplySwitch(option, &command->cluster.even_if_worse);
    if (name == "dry-run") return ApplySwitch(option, &command->cluster.dry_run);
    if (name == "stop") return ApplySwitch(option, &command->cluster.stop);
    if (name == "by_partitions") return ApplySwitch(option, &command->cluster.by_partitions);
  }
  if (name == "ttl") return ApplyDuration(option, &command->ttl);
  if (name == "wait") return ApplyDuration(option, &command->wait.emplace());
  if (name == "lease") return ApplyDuration(option, &command->lease.emplace());
  if (name == "force") return ApplySwitch(option, &command->force);
  if (name == "flags") return ApplyNumber(option, &command->flags);
  if (name == "if_version") return ApplyNumber(option, &command->if_version.emplace());
  if (name == "if_absent") return ApplySwitch(option, &command->if_absent);
  if (name == "if_present") return ApplySwitch(option, &command->if_present);
  if (name == "initial") return ApplyNumber(option, &command->initial);
  if (name == "yes") return ApplySwitch(option, &command->yes);
  if (name == "keys") return ApplySwitch(option, &command->show_keys);
  if (name == "values") return ApplySwitch(option, &command->show_values);
  if (name == "file") return ApplyText(option, &command->file);
  if (name == "out") return ApplyText(option, &command->out);
  if (name == "prefix") return ApplyText(option, &command->prefix);
  if (name == "match") return ApplyText(option, &command->match);
  if (name == "limit") return ApplyCount(option, &command->count.emplace());
  if (name == "count") return ApplyCount(option, &command->count.emplace());
  if (name == "hotkeys") return ApplyHotKeys(option, &command->hot_keys);
  if (name == "rate") return ApplyNumber(option, &command->reads_per_second.emplace());
  if (name == "every") return ApplyPeriod(option, 1, &command->every);
  if (name == "announce") return ApplyText(option, &command->announce);
  if (name == "kvserver") return ApplyText(option, &command->kvserver);
  if (name == "id") return ApplyId(option, &command->id.emplace());
  if (name == "read") return ApplySwitch(option, &command->read_only);
  if (name == "replica") return ApplySwitch(option, &command->replica);
  if (name == "interval") return ApplyPeriod(option, kIntervalMsMin, &command->interval);
  return ApplySwitch(option, &command->meta);
}

}  // namespace

absl::Status ApplyOption(std::string_view word, const std::string* next, Command* command,
                         bool* used_next) {
  Option option = SplitOption(word);
  const UsageOption* known = FindOption(command->verb, option.name);
  if (known == nullptr) return NoOption(option.name, command->verb);
  if (known->takes_value && !option.value && next != nullptr) {
    option.value = *next;
    *used_next = true;
  }
  return Apply(option, command);
}

absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  struct Unit {
    std::string_view name;
    int64_t ms;
  };
  constexpr Unit kUnits[] = {{"", 1000},    {"ms", 1},        {"s", 1000},
                             {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  constexpr int64_t kMax = int64_t{100} * 365 * 86'400'000;
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = std::ranges::find(kUnits, text.substr(digits), &Unit::name);
  int64_t count = 0;
  if (!ParseNumber(text.substr(0, digits), &count) || unit == std::end(kUnits)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' is no time: 10 or 10s, 500ms, 5m, 2h, 7d"));
  }
  if (count > kMax / unit->ms) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' is more than 100 years; 0 is for ever"));
  }
  return std::chrono::milliseconds(count * unit->ms);
}

}  // namespace gannet::kvcli
