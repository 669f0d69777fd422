#include "tools/kvcli/verb_words.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/group_policy.h"
#include "common/etcd/etcd_access.h"
#include "common/protocol/partition_map.h"

namespace gannet::kvcli {
namespace {

using std::chrono::milliseconds;

// The shortest interval of top. Each look costs the server's CPU some requests.
constexpr int64_t kIntervalMsMin = 100;

// The most hot keys that top shows. More would leave no room for clients.
constexpr uint64_t kTopHotKeysMax = 100;

template <class... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// --- A word of each type that Command has ---

absl::Status Set(const GivenWord&, bool* out) {
  *out = true;
  return absl::OkStatus();
}

absl::Status Set(const GivenWord& word, std::string* out) {
  *out = word.text;
  if (!out->empty() || !word.is_option()) return absl::OkStatus();
  return Wrong(std::string(word.name), " needs a value");
}

absl::Status Set(const GivenWord& word, milliseconds* out) {
  const auto time = ParseDuration(word.text);
  if (!time.ok()) {
    return Wrong(word.is_option() ? absl::StrCat(std::string(word.name), ": ") : "",
                 time.status().message());
  }
  *out = *time;
  return absl::OkStatus();
}

template <class T>
requires std::is_integral_v<T> absl::Status Set(const GivenWord& word, T* out) {
  if (ParseNumber(word.text, out)) return absl::OkStatus();
  return Wrong(std::string(word.name), word.is_option() ? " needs" : " is", " a number from ",
               std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max());
}

template <class T>
absl::Status Set(const GivenWord& word, std::optional<T>* out) {
  return Set(word, &out->emplace());
}

absl::Status Set(const GivenWord& word, std::vector<std::string>* out) {
  return Set(word, &out->emplace_back());
}

template <class C, class T>
T* FieldOf(Command* command, T C::*field) {
  if constexpr (std::is_same_v<C, ClusterCommand>) {
    return &(command->cluster.*field);
  } else if constexpr (std::is_same_v<C, EtcdAccess>) {
    return &(command->cluster.etcd_access.*field);
  } else {
    return &(command->*field);
  }
}

template <auto kField>
absl::Status Into(const GivenWord& word, Command* command) {
  return Set(word, FieldOf(command, kField));
}

// --- Words that mean more than a field's value ---

template <auto kField, int64_t kMsMin>
absl::Status IntoPeriod(const GivenWord& word, Command* command) {
  GANNET_RETURN_IF_ERROR(Into<kField>(word, command));
  if ((command->*kField).count() >= kMsMin) return absl::OkStatus();
  return Wrong(std::string(word.name), " is at least ", kMsMin, "ms");
}

absl::Status TakeCount(const GivenWord& word, Command* command) {
  GANNET_RETURN_IF_ERROR(Into<&Command::count>(word, command));
  if (*command->count > 0) return absl::OkStatus();
  return Wrong(std::string(word.name), " is at least 1");
}

absl::Status TakeHotKeys(const GivenWord& word, Command* command) {
  GANNET_RETURN_IF_ERROR(Into<&Command::hot_keys>(word, command));
  if (command->hot_keys == 0) return Wrong(std::string(word.name), " is at least 1");
  if (command->hot_keys <= kTopHotKeysMax) return absl::OkStatus();
  return Wrong(std::string(word.name), " is at most ", kTopHotKeysMax);
}

// The id of an authentication key is never 0.
absl::Status TakeId(const GivenWord& word, Command* command) {
  if (ParseNumber(word.text, &command->id.emplace()) && *command->id > 0) return absl::OkStatus();
  return Wrong("--id needs a number from 1 to 4294967295");
}

absl::Status TakeValue(const GivenWord& word, Command* command) {
  if (command->verb == Verb::kMultiPut) return Set(word, &command->values);
  command->value_from_stdin = word.text == "-" && !word.literal;
  if (!command->value_from_stdin) command->value = word.text;
  return absl::OkStatus();
}

absl::Status TakeGlob(const GivenWord& word, Command* command) {
  if (!command->match.empty()) return Wrong("GLOB and --match exclude each other");
  command->match = word.text;
  return absl::OkStatus();
}

absl::Status TakeEtcd(const GivenWord& word, Command* command) {
  command->cluster.etcd = absl::StrSplit(word.text, ',', absl::SkipEmpty());
  return command->cluster.etcd.empty() ? Wrong("--etcd needs a URL") : absl::OkStatus();
}

absl::Status TakeGroup(const GivenWord& word, Command* command) {
  const size_t colon = std::min(word.text.find(':'), word.text.size());
  ClusterCommand::Group group = {.name = word.text.substr(0, colon)};
  group.members = absl::StrSplit(word.text.substr(std::min(colon + 1, word.text.size())), ',',
                                 absl::SkipEmpty());
  if (group.name.empty() || group.members.empty()) {
    return Wrong("a group is its name and its members: g1:n1,n2,n3");
  }
  if (!word.is_option()) command->cluster.group = group.name;
  command->cluster.groups.push_back(std::move(group));
  return absl::OkStatus();
}

// "7", or "0-63".
absl::Status TakePartitions(const GivenWord& word, Command* command) {
  const size_t dash = word.text.find('-');
  const auto first = ParsePartition(word.text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : ParsePartition(word.text.substr(dash + 1));
  if (!first || !last || *first > *last) {
    return Wrong("'", word.text, "' is no partition: they are 0 to ", kPartitions - 1,
                 ", also as ranges, 0-63");
  }
  for (uint32_t i = *first; i <= *last; ++i) {
    command->cluster.partitions.push_back(static_cast<uint16_t>(i));
  }
  return absl::OkStatus();
}

absl::Status TakeSetting(const GivenWord& word, Command* command) {
  const std::string name(word.name.substr(2));
  command->cluster.policy.settings[name] = word.text;
  return FindPolicySetting(name)->Check(word.text);
}

// "min_copies=2". What else init takes stays as it was made.
absl::Status TakeTerm(const GivenWord& word, Command* command) {
  const size_t equals = word.text.find('=');
  const std::string name = word.text.substr(0, equals);
  const bool known =
      name == "min_copies" || name == "lease_ms" || FindPolicySetting(name) != nullptr;
  if (!known || equals == std::string::npos) {
    return Wrong("'", word.text, "' cannot be set. These can: ", WhatCanBeSet());
  }
  return Take({.name = "--" + name, .text = word.text.substr(equals + 1)}, command);
}

struct WordRow {
  std::string_view name;
  absl::Status (*take)(const GivenWord& word, Command* command);
  CompletedBy completed_by = CompletedBy::kNothing;
};

constexpr WordRow kWords[] = {
    {"KEY", Into<&Command::keys>, CompletedBy::kKeys},
    {"VALUE", TakeValue},
    {"NUMBER", Into<&Command::number>},
    {"VERSION", Into<&Command::if_version>},
    {"TIME", Into<&Command::ttl>},
    {"GLOB", TakeGlob},
    {"PATH", Into<&Command::path>, CompletedBy::kFiles},
    {"COMMAND", Into<&Command::topic>, CompletedBy::kVerbs},
    {"ACTION", nullptr, CompletedBy::kActions},  // a row of its own
    {"WORD", nullptr},                           // of that row
    {"GROUP", Into<&ClusterCommand::group>},
    {"NODE", Into<&ClusterCommand::node>},
    {"GROUP:NODES", TakeGroup},
    {"PARTITION", TakePartitions},
    {"NAME=VALUE", TakeTerm},
    {"--ttl", Into<&Command::ttl>},
    {"--wait", Into<&Command::wait>},
    {"--lease", Into<&Command::lease>},
    {"--force", Into<&Command::force>},
    {"--flags", Into<&Command::flags>},
    {"--if_version", Into<&Command::if_version>},
    {"--if_absent", Into<&Command::if_absent>},
    {"--if_present", Into<&Command::if_present>},
    {"--initial", Into<&Command::initial>},
    {"--yes", Into<&Command::yes>},
    {"--meta", Into<&Command::meta>},
    {"--keys", Into<&Command::show_keys>},
    {"--values", Into<&Command::show_values>},
    {"--file", Into<&Command::file>, CompletedBy::kFiles},
    {"--out", Into<&Command::out>, CompletedBy::kFiles},
    {"--prefix", Into<&Command::prefix>},
    {"--match", Into<&Command::match>},
    {"--limit", TakeCount},
    {"--count", TakeCount},
    {"--hotkeys", TakeHotKeys},
    {"--rate", Into<&Command::reads_per_second>},
    {"--every", IntoPeriod<&Command::every, 1>},
    {"--interval", IntoPeriod<&Command::interval, kIntervalMsMin>},
    {"--announce", Into<&Command::announce>},
    {"--kvserver", Into<&Command::kvserver>, CompletedBy::kFiles},
    {"--id", TakeId},
    {"--read", Into<&Command::read_only>},
    {"--replica", Into<&Command::replica>},
    {"--etcd", TakeEtcd},
    {"--etcd_ca_file", Into<&EtcdAccess::ca_file>, CompletedBy::kFiles},
    {"--etcd_cert_file", Into<&EtcdAccess::cert_file>, CompletedBy::kFiles},
    {"--etcd_key_file", Into<&EtcdAccess::key_file>, CompletedBy::kFiles},
    {"--etcd_user", Into<&EtcdAccess::user>},
    {"--etcd_password_file", Into<&EtcdAccess::password_file>, CompletedBy::kFiles},
    {"--cluster", Into<&ClusterCommand::cluster>},
    {"--group", TakeGroup},
    {"--lease_ms", Into<&ClusterCommand::lease_ms>},
    {"--min_copies", Into<&ClusterCommand::min_copies>},
    {"--ring_bytes", Into<&ClusterCommand::ring_bytes>},
    {"--if_missing", Into<&ClusterCommand::if_missing>},
    {"--abandon", Into<&ClusterCommand::abandon>},
    {"--check", Into<&ClusterCommand::check>},
    {"--from", Into<&ClusterCommand::from>},
    {"--lose-data", Into<&ClusterCommand::lose_data>},
    {"--even-if-worse", Into<&ClusterCommand::even_if_worse>},
    {"--to", Into<&ClusterCommand::to>},
    {"--dry-run", Into<&ClusterCommand::dry_run>},
    {"--stop", Into<&ClusterCommand::stop>},
    {"--by_partitions", Into<&ClusterCommand::by_partitions>},
};

const WordRow* Find(std::string_view name) {
  const auto row = std::ranges::find(kWords, name, &WordRow::name);
  return row == std::end(kWords) ? nullptr : &*row;
}

bool IsSetting(std::string_view name) {
  return name.starts_with("--") && FindPolicySetting(name.substr(2)) != nullptr;
}

}  // namespace

bool IsWord(std::string_view name) { return Find(name) != nullptr || IsSetting(name); }

absl::Status Take(const GivenWord& word, Command* command) {
  return IsSetting(word.name) ? TakeSetting(word, command) : Find(word.name)->take(word, command);
}

CompletedBy CompletionOfWord(std::string_view name) {
  const WordRow* const row = Find(name);
  return row == nullptr ? CompletedBy::kNothing : row->completed_by;
}

absl::StatusOr<milliseconds> ParseDuration(std::string_view text) {
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
    return Wrong("'", std::string(text), "' is no time: 10 or 10s, 500ms, 5m, 2h, 7d");
  }
  if (count > kMax / unit->ms) {
    return Wrong("'", std::string(text), "' is more than 100 years; 0 is for ever");
  }
  return milliseconds(count * unit->ms);
}

}  // namespace gannet::kvcli
