#include "tools/kvcli/cluster_health.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/cluster_keys.h"

namespace gannet::kvcli {
namespace {

using Kind = MemberAnswer::Kind;

const MemberAnswer& AnswerOf(const ClusterState& state, const std::string& node) {
  static const MemberAnswer* const none = new MemberAnswer();
  const auto found = state.answers.find(node);
  return found == state.answers.end() ? *none : found->second;
}

// Whether etcd has this process of the node among those in sync.
bool IsInSync(const GroupConfig& config, const std::string& node, uint64_t incarnation) {
  return std::ranges::find(config.in_sync, GroupMember{node, incarnation}) != config.in_sync.end();
}

bool AnyInSync(const GroupConfig& config, const std::string& node) {
  return std::ranges::find(config.in_sync, node, &GroupMember::node) != config.in_sync.end();
}

// Returns what is wrong with the group's primary; "" if it serves, or if nobody knows.
std::string WrongWithPrimary(const ClusterState& state, const GroupConfig& config) {
  if (config.epoch == 0) return "it has no primary yet: start its members";
  const std::string& node = config.primary.node;
  const MemberAnswer& answer = AnswerOf(state, node);
  switch (answer.kind) {
    case Kind::kNotAsked:
    case Kind::kLives:
      return "";
    case Kind::kDead:
    case Kind::kSilent:
    case Kind::kStarts:
      return absl::StrCat("its primary ", node, " does not serve: ", answer.why);
    case Kind::kTold:
      break;
  }
  const MemberStanding& standing = answer.standing;
  if (standing.incarnation != config.primary.incarnation) {
    return absl::StrCat("another process of ", node, " runs than the one that is primary");
  }
  if (standing.role != MemberRole::kPrimary) {
    return absl::StrCat(node, " does not serve yet: it becomes primary");
  }
  if (standing.lease_left_ms > 0) return "";
  return absl::StrCat("its primary ", node, " has no lease: its backups do not answer it");
}

std::string WhatMemberIs(const ClusterState& state, MemberState is, const std::string& node) {
  const MemberAnswer& answer = AnswerOf(state, node);
  switch (is) {
    case MemberState::kJoining:
      return absl::StrCat(node, " joins, and has ", answer.standing.joined_percent, " %");
    case MemberState::kAbsent:
      return absl::StrCat(node, " has not run yet");
    case MemberState::kOut:
      return absl::StrCat(node, " runs, and is not in sync");
    case MemberState::kStarting:
      return absl::StrCat(node, " starts");
    case MemberState::kDead:
    case MemberState::kSilent:
      return absl::StrCat(node, " is ", std::string(NameOf(is)), ": ", answer.why);
    case MemberState::kUnknown:
    case MemberState::kInSync:
      break;
  }
  return "";
}

}  // namespace

std::string_view NameOf(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kUnknown:
      return "unknown";
    case Health::kDegraded:
      return "degraded";
    case Health::kDown:
      break;
  }
  return "down";
}

std::string_view NameOf(MemberState state) {
  switch (state) {
    case MemberState::kInSync:
      return "in_sync";
    case MemberState::kJoining:
      return "joining";
    case MemberState::kOut:
      return "out";
    case MemberState::kStarting:
      return "starting";
    case MemberState::kSilent:
      return "silent";
    case MemberState::kDead:
      return "dead";
    case MemberState::kAbsent:
      return "absent";
    case MemberState::kUnknown:
      break;
  }
  return "unknown";
}

MemberState StateOf(const ClusterState& state, const GroupConfig& config, const std::string& node) {
  const auto info = state.nodes.find(node);
  if (info == state.nodes.end()) return MemberState::kAbsent;
  const MemberAnswer& answer = AnswerOf(state, node);
  switch (answer.kind) {
    case Kind::kNotAsked:
      return MemberState::kUnknown;
    case Kind::kDead:
      return MemberState::kDead;
    case Kind::kSilent:
      return MemberState::kSilent;
    case Kind::kStarts:
      return MemberState::kStarting;
    case Kind::kLives:  // which process it is, only etcd says
      return IsInSync(config, node, info->second.incarnation) ? MemberState::kInSync
                                                              : MemberState::kUnknown;
    case Kind::kTold:
      break;
  }
  switch (answer.standing.role) {
    case MemberRole::kJoining:
      return MemberState::kJoining;
    case MemberRole::kEnded:
      return MemberState::kStarting;
    case MemberRole::kBackup:
    case MemberRole::kPrimary:
      break;
  }
  return IsInSync(config, node, answer.standing.incarnation) ? MemberState::kInSync
                                                             : MemberState::kOut;
}

GroupHealth HealthOf(const ClusterState& state, const std::string& group) {
  GroupHealth result;
  const auto add = [&result](Health health, std::string problem) {
    result.health = std::max(result.health, health);
    if (!problem.empty()) result.problems.push_back(std::move(problem));
  };
  const auto found = state.groups.find(group);
  if (found == state.groups.end()) {
    add(Health::kDown,
        absl::StrCat("etcd has lost the group's entry, ", GroupKey(state.name, group),
                     ": nobody takes over. Stop none of its members: they have the "
                     "items, and serve them as long as they run"));
    return result;
  }
  const GroupConfig& config = found->second.config;
  if (std::string wrong = WrongWithPrimary(state, config); !wrong.empty()) {
    add(Health::kDown, std::move(wrong));
  }
  if (config.epoch > 0 && config.in_sync.size() < config.min_copies) {
    add(Health::kDown, absl::StrCat("it takes no writes: ", config.in_sync.size(),
                                    " in sync, and min_copies is ", config.min_copies));
  }
  for (const std::string& node : config.members) {
    const MemberState is = StateOf(state, config, node);
    if (is == MemberState::kInSync) continue;
    if (is == MemberState::kUnknown) {
      // Without its answer, only who is not in sync in etcd is known to be none.
      add(AnyInSync(config, node) ? Health::kUnknown : Health::kDegraded, "");
      continue;
    }
    const bool told = config.epoch > 0 && config.primary.node == node && !result.problems.empty();
    add(Health::kDegraded, told ? "" : WhatMemberIs(state, is, node));
  }
  return result;
}

Health HealthOf(const ClusterState& state) {
  Health worst = Health::kOk;
  std::set<std::string> groups(state.map.groups.begin(), state.map.groups.end());
  for (const auto& [name, group] : state.groups) groups.insert(name);
  for (const std::string& group : groups) worst = std::max(worst, HealthOf(state, group).health);
  return worst;
}

}  // namespace gannet::kvcli
