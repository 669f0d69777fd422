#include "tools/kvcli/cluster_command.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/protocol/partition_map.h"
#include "tools/kvcli/command_options.h"
#include "tools/kvcli/nearest.h"

namespace gannet::kvcli {
namespace {

using Action = ClusterCommand::Action;

struct ActionSpec {
  Action action;
  std::string_view name;
  size_t words;  // behind the name: a group, or a group and a node; not of partitions
};
constexpr std::array<ActionSpec, 13> kActions = {{{Action::kInit, "init", 0},
                                                  {Action::kStatus, "status", 0},
                                                  {Action::kHandOver, "handover", 2},
                                                  {Action::kAdd, "add", 2},
                                                  {Action::kRemove, "remove", 2},
                                                  {Action::kForce, "force", 1},
                                                  {Action::kSet, "set", 1},
                                                  {Action::kAddGroup, "add-group", 1},
                                                  {Action::kRemoveGroup, "remove-group", 1},
                                                  {Action::kMove, "move", 0},
                                                  {Action::kDrain, "drain", 1},
                                                  {Action::kBalance, "balance", 0},
                                                  {Action::kMoves, "moves", 0}}};

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

bool TakesPartitions(Action action) { return action == Action::kMove || action == Action::kMoves; }

// "7", or "0-63".
absl::Status TakePartitions(const std::string& word, ClusterCommand* command) {
  const size_t dash = word.find('-');
  const auto first = ParsePartition(word.substr(0, dash));
  const auto last = dash == std::string::npos ? first : ParsePartition(word.substr(dash + 1));
  if (!first || !last || *first > *last) {
    return Wrong(absl::StrCat("'", word, "' is no partition: they are 0 to ", kPartitions - 1,
                              ", also as ranges, 0-63"));
  }
  for (uint32_t i = *first; i <= *last; ++i) {
    command->partitions.push_back(static_cast<uint16_t>(i));
  }
  return absl::OkStatus();
}

absl::Status ApplyGroup(std::string_view value, ClusterCommand* command) {
  const size_t colon = value.find(':');
  ClusterCommand::Group group = {.name = std::string(value.substr(0, colon))};
  if (colon != std::string_view::npos) {
    group.members = absl::StrSplit(std::string(value.substr(colon + 1)), ',', absl::SkipEmpty());
  }
  if (group.name.empty() || group.members.empty()) {
    return Wrong("a group is its name and its members: g1:n1,n2,n3");
  }
  command->groups.push_back(std::move(group));
  return absl::OkStatus();
}

template <class T>
absl::Status ApplyNumber(std::string_view name, std::string_view value, std::optional<T>* out) {
  if (ParseNumber(value, &out->emplace())) return absl::OkStatus();
  return Wrong(absl::StrCat("--", std::string(name), " needs a number"));
}

absl::Status ApplyText(std::string_view name, std::string_view value, std::string* out) {
  *out = value;
  if (!out->empty()) return absl::OkStatus();
  return Wrong(absl::StrCat("--", std::string(name), " needs a value"));
}

absl::Status ApplySetting(const PolicySetting& setting, std::string_view value,
                          ClusterCommand* command) {
  command->policy.settings[setting.name] = std::string(value);
  return setting.Check(value);
}

// "min_copies=N, lease_ms=N, on_full=reject|evict, ..."
std::string WhatCanBeSet() {
  std::string text = "min_copies=N, lease_ms=N";
  for (const PolicySetting& setting : PolicySettings()) {
    absl::StrAppend(&text, ", ", setting.name, "=", setting.Usage());
  }
  return text;
}

bool HasTerms(const ClusterCommand& command) {
  return command.lease_ms || command.min_copies || !command.policy.settings.empty();
}

// "min_copies=2". What else init takes stays as it was made.
absl::Status TakeTerm(const std::string& word, ClusterCommand* command) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const bool known =
      name == "min_copies" || name == "lease_ms" || FindPolicySetting(name) != nullptr;
  if (!known || equals == std::string::npos) {
    return Wrong(absl::StrCat("'", word, "' cannot be set. These can: ", WhatCanBeSet()));
  }
  return *ApplyClusterOption(name, word.substr(equals + 1), command);
}

absl::Status TakeTerms(std::span<const std::string> words, ClusterCommand* command) {
  if (words.empty()) return Wrong("set needs a GROUP");
  command->group = words[0];
  for (const std::string& word : words.subspan(1)) {
    GANNET_RETURN_IF_ERROR(TakeTerm(word, command));
  }
  if (HasTerms(*command)) return absl::OkStatus();
  return Wrong(absl::StrCat("set needs what is to be set: ", WhatCanBeSet()));
}

absl::Status NoAction(const std::string& word) {
  const std::string nearest = Nearest(word, ClusterActions());
  return Wrong(absl::StrCat("'", word, "' is no ACTION",
                            nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

absl::Status CheckMoveOptions(const ClusterCommand& command) {
  using enum ClusterCommand::Action;
  const Action action = command.action;
  const bool plans = action == kMove || action == kDrain || action == kBalance;
  if (command.dry_run && !plans) return Wrong("--dry-run is for move, drain and balance");
  if (command.stop && !plans && action != kMoves) {
    return Wrong("--stop is for move, drain, balance and moves");
  }
  if (command.dry_run && command.stop) return Wrong("--dry-run and --stop exclude each other");
  if (command.by_partitions && action != kDrain && action != kBalance) {
    return Wrong("--by_partitions is for drain and balance");
  }
  if (!command.to.empty() && action != kMove) return Wrong("--to is for move");
  if (action != kMove) return absl::OkStatus();
  if (command.partitions.empty()) return Wrong("move needs partitions: 7, or 0-63");
  if (command.to.empty() && !command.stop) return Wrong("move needs --to=GROUP");
  return absl::OkStatus();
}

absl::Status CheckOptions(const ClusterCommand& command) {
  if (command.etcd.empty()) {
    return Wrong(
        "--etcd=URL[,URL...] is missing, and so is $GANNET_ETCD: where etcd is, "
        "http://127.0.0.1:2379 for example");
  }
  if (command.cluster.empty()) {
    return Wrong("--cluster=NAME is missing, and so is $GANNET_CLUSTER");
  }
  GANNET_RETURN_IF_ERROR(Check(command.etcd_access));
  const bool init = command.action == Action::kInit;
  if (init && command.groups.empty()) return Wrong("init needs --group=GROUP:NODE,NODE...");
  const bool add_group = command.action == Action::kAddGroup;
  const bool set = command.action == Action::kSet;
  if (!init && (!command.groups.empty() || command.if_missing)) {
    return Wrong("--group and --if_missing are for init");
  }
  if (!init && !add_group && (command.ring_bytes || (HasTerms(command) && !set))) {
    return Wrong(
        "--lease_ms, --min_copies, --ring_bytes and what members do alike (--on_full and others) "
        "are for init and add-group");
  }
  GANNET_RETURN_IF_ERROR(CheckMoveOptions(command));
  if (command.check && command.action != Action::kStatus) return Wrong("--check is for status");
  if (!init && !command.abandon.empty()) return Wrong("--abandon is for init");
  const bool force = command.action == Action::kForce;
  if (!force && (!command.from.empty() || command.lose_data || command.even_if_worse)) {
    return Wrong("--from, --lose-data and --even-if-worse are for force");
  }
  if (force && command.from.empty()) return Wrong("force needs --from=NODE, whose items are kept");
  if (force && !command.lose_data) {
    return Wrong(
        "force may lose writes that were acknowledged, so it needs --lose-data. First look at "
        "kvcli cluster status for the node that has applied most, and make sure that the former "
        "primary's machine is off: alone, it would go on serving");
  }
  return absl::OkStatus();
}

void TakeDefaults(ClusterCommand* command) {
  const char* const etcd = std::getenv(kEtcdVariable);
  if (command->etcd.empty() && etcd != nullptr) {
    command->etcd = absl::StrSplit(etcd, ',', absl::SkipEmpty());
  }
  const char* const cluster = std::getenv(kClusterVariable);
  if (command->cluster.empty() && cluster != nullptr) command->cluster = cluster;
}

}  // namespace

std::vector<std::string> ClusterActions() {
  std::vector<std::string> names;
  for (const ActionSpec& spec : kActions) names.emplace_back(spec.name);
  return names;
}

std::optional<absl::Status> ApplyClusterOption(std::string_view name, std::string_view value,
                                               ClusterCommand* command) {
  if (name == "etcd") {
    command->etcd = absl::StrSplit(std::string(value), ',', absl::SkipEmpty());
    return command->etcd.empty() ? Wrong("--etcd needs a URL") : absl::OkStatus();
  }
  EtcdAccess* const access = &command->etcd_access;
  if (name == "etcd_ca_file") return ApplyText(name, value, &access->ca_file);
  if (name == "etcd_cert_file") return ApplyText(name, value, &access->cert_file);
  if (name == "etcd_key_file") return ApplyText(name, value, &access->key_file);
  if (name == "etcd_user") return ApplyText(name, value, &access->user);
  if (name == "etcd_password_file") return ApplyText(name, value, &access->password_file);
  if (name == "cluster") return ApplyText(name, value, &command->cluster);
  if (name == "group") return ApplyGroup(value, command);
  if (name == "lease_ms") return ApplyNumber(name, value, &command->lease_ms);
  if (name == "min_copies") return ApplyNumber(name, value, &command->min_copies);
  if (const PolicySetting* const setting = FindPolicySetting(name)) {
    return ApplySetting(*setting, value, command);
  }
  if (name == "ring_bytes") return ApplyNumber(name, value, &command->ring_bytes);
  if (name == "to") return ApplyText(name, value, &command->to);
  if (name == "from") return ApplyText(name, value, &command->from);
  if (name == "abandon") return ApplyText(name, value, &command->abandon.emplace_back());
  return std::nullopt;
}

absl::Status TakeClusterWords(std::span<const std::string> words, ClusterCommand* command) {
  if (words.empty()) return Wrong("ACTION is missing");
  const auto spec = std::ranges::find(kActions, words[0], &ActionSpec::name);
  if (spec == kActions.end()) return NoAction(words[0]);
  command->action = spec->action;
  TakeDefaults(command);
  const std::span<const std::string> rest = words.subspan(1);
  if (TakesPartitions(spec->action)) {
    for (const std::string& word : rest) GANNET_RETURN_IF_ERROR(TakePartitions(word, command));
    return CheckOptions(*command);
  }
  if (spec->action == Action::kSet) {
    GANNET_RETURN_IF_ERROR(TakeTerms(rest, command));
    return CheckOptions(*command);
  }
  if (rest.size() < spec->words) {
    return Wrong(absl::StrCat(words[0], rest.empty() ? " needs a GROUP" : " needs a NODE"));
  }
  if (rest.size() > spec->words) {
    return Wrong(absl::StrCat("'", rest[spec->words], "' is one word too many"));
  }
  if (!rest.empty()) command->group = rest[0];
  if (rest.size() > 1) command->node = rest[1];
  GANNET_RETURN_IF_ERROR(CheckOptions(*command));
  if (command->action != Action::kAddGroup) return absl::OkStatus();
  GANNET_RETURN_IF_ERROR(ApplyGroup(command->group, command));
  command->group = command->groups.front().name;
  return absl::OkStatus();
}

}  // namespace gannet::kvcli
