#include "tools/kvcli/cluster_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "tools/kvcli/lost_cluster.h"

namespace gannet::kvcli {
namespace {

using enum ClusterKey::Kind;

absl::Status In(std::string_view key, const absl::Status& status) {
  return {status.code(), absl::StrCat(std::string(key), " in etcd: ", status.message())};
}

// Takes a key that is neither the configuration nor a stranger's.
absl::Status Take(const ClusterKey& key, const EtcdKeyValue& item, ClusterState* state) {
  if (key.kind == kGroup) {
    GANNET_ASSIGN_OR_RETURN(GroupConfig config, DecodeGroupConfig(item.value));
    state->groups[key.name] = {std::move(config), item.mod_revision};
  } else if (key.kind == kNode) {
    GANNET_ASSIGN_OR_RETURN(state->nodes[key.name], DecodeNodeInfo(item.value));
  } else if (key.kind == kVersion) {
    GANNET_ASSIGN_OR_RETURN(state->versions[key.name], DecodeNodeVersion(item.value));
  } else if (key.kind == kRails) {
    GANNET_ASSIGN_OR_RETURN(state->rails[key.name], DecodeNodeRails(item.value));
  } else if (key.kind == kDisk) {
    GANNET_ASSIGN_OR_RETURN(state->disks[key.name], DecodeNodeDisk(item.value));
  } else if (key.kind == kPolicy) {
    auto policy = DecodeGroupPolicy(item.value);
    if (absl::IsUnimplemented(policy.status())) state->newer_policies.insert(key.name);
    if (!policy.ok()) return policy.status();
    state->policies[key.name] = *std::move(policy);
  } else if (key.kind == kMove) {
    GANNET_ASSIGN_OR_RETURN(MoveInfo info, DecodeMoveInfo(item.value));
    state->moves[key.partition] = {std::move(info), item.mod_revision};
  } else if (key.kind == kLife) {
    GANNET_ASSIGN_OR_RETURN(NodeLife life, DecodeNodeLife(item.value));
    state->lives[key.name] = {std::move(life), item.mod_revision};
  } else if (key.kind == kWish) {
    state->wishes[key.name].mod_revision = item.mod_revision;  // also if nobody can read it
    GANNET_ASSIGN_OR_RETURN(GroupWish wish, DecodeGroupWish(item.value));
    state->wishes[key.name] = {std::move(wish), item.mod_revision};
  }
  return absl::OkStatus();
}

absl::StatusOr<GroupConfig> Find(const ClusterState& state, const std::string& group) {
  const auto found = state.groups.find(group);
  if (found != state.groups.end()) return found->second.config;
  return absl::NotFoundError(absl::StrCat("cluster ", state.name, " has no group ", group));
}

bool IsMember(const GroupConfig& config, const std::string& node) {
  return std::ranges::find(config.members, node) != config.members.end();
}

absl::Status NoMember(const std::string& group, const std::string& node) {
  return absl::NotFoundError(absl::StrCat("group ", group, " has no member ", node));
}

// Returns the node's entry among those in sync, or nullptr.
const GroupMember* InSync(const GroupConfig& config, const std::string& node) {
  const auto found = std::ranges::find(config.in_sync, node, &GroupMember::node);
  return found == config.in_sync.end() ? nullptr : &*found;
}

}  // namespace

const NodeInfo* InfoInSync(const ClusterState& state, const GroupConfig& config,
                           const std::string& node) {
  const GroupMember* member = InSync(config, node);
  const auto info = state.nodes.find(node);
  if (member == nullptr || info == state.nodes.end()) return nullptr;
  return info->second.incarnation == member->incarnation ? &info->second : nullptr;
}

uint64_t KeptBy(const ClusterState& state, const GroupConfig& config, const std::string& node) {
  const auto info = state.nodes.find(node);
  if (info == state.nodes.end() || InfoInSync(state, config, node) != nullptr) return 0;
  return info->second.applied;
}

absl::StatusOr<ClusterState> ReadCluster(const std::string& name,
                                         const std::vector<EtcdKeyValue>& items) {
  ClusterState state = {.name = name};
  for (const EtcdKeyValue& item : items) {
    const auto key = ParseClusterKey(name, item.key);
    if (!key || key->kind == kConfig) continue;
    const absl::Status taken = Take(*key, item, &state);
    if (taken.ok()) continue;
    if (key->kind == kGroup) return In(item.key, taken);
    state.unreadable.emplace_back(In(item.key, taken).message());
  }
  const auto config = std::ranges::find(items, ConfigKey(name), &EtcdKeyValue::key);
  if (config == items.end()) {
    if (!state.lives.empty()) return absl::NotFoundError(LivesText(name, state.lives));
    return absl::NotFoundError(
        absl::StrCat("etcd has no cluster ", name, "; kvcli cluster init makes one"));
  }
  auto map = DecodeClusterConfig(config->value);
  if (!map.ok()) return In(config->key, map.status());
  state.map = *std::move(map);
  state.map_revision = config->mod_revision;
  // Of a group that has a primary, only what processes say that the register does not know.
  std::erase_if(state.lives, [&](const auto& it) {
    const auto& [node, life] = it;
    const auto group = state.groups.find(life.info.group);
    if (group == state.groups.end() || group->second.config.epoch == 0) return false;
    const auto info = state.nodes.find(node);
    const bool newest =
        info != state.nodes.end() && info->second.incarnation == life.info.incarnation;
    return !newest || life.info.known.epoch < group->second.config.epoch;
  });
  return state;
}

GroupPolicy PolicyIn(const ClusterState& state, const std::string& group) {
  const auto found = state.policies.find(group);
  return found == state.policies.end() ? GroupPolicy{} : found->second;
}

absl::StatusOr<GroupConfig> WithMember(const ClusterState& state, const std::string& group,
                                       const std::string& node) {
  GANNET_ASSIGN_OR_RETURN(GroupConfig config, Find(state, group));
  for (const auto& [name, other] : state.groups) {
    if (!IsMember(other.config, node)) continue;
    return absl::AlreadyExistsError(absl::StrCat(node, " is a member of group ", name));
  }
  config.members.push_back(node);
  GANNET_RETURN_IF_ERROR(Check(config));
  return config;
}

absl::StatusOr<GroupConfig> WithoutMember(const ClusterState& state, const std::string& group,
                                          const std::string& node) {
  GANNET_ASSIGN_OR_RETURN(GroupConfig config, Find(state, group));
  if (!IsMember(config, node)) return NoMember(group, node);
  if (config.epoch > 0 && config.primary.node == node) {
    return absl::FailedPreconditionError(absl::StrCat(node, " is primary of group ", group,
                                                      ". Hand over first: kvcli cluster handover ",
                                                      group, " NODE"));
  }
  if (config.members.size() == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(node, " is the only member of group ", group));
  }
  if (config.min_copies == config.members.size()) {
    return absl::FailedPreconditionError(absl::StrCat("group ", group, " takes writes only with ",
                                                      config.min_copies, " members in sync"));
  }
  std::erase(config.members, node);
  // Whoever is in sync may be left out by anybody: the primary counts it until it sees that.
  std::erase_if(config.in_sync, [&](const GroupMember& it) { return it.node == node; });
  GANNET_RETURN_IF_ERROR(Check(config));
  return config;
}

absl::StatusOr<GroupConfig> Forced(const ClusterState& state, const std::string& group,
                                   const std::string& node, uint64_t history) {
  GANNET_ASSIGN_OR_RETURN(GroupConfig config, Find(state, group));
  if (!IsMember(config, node)) return NoMember(group, node);
  const auto info = state.nodes.find(node);
  if (info == state.nodes.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(node, " has not run yet: start its kvserver first"));
  }
  uint64_t newest = config.epoch;
  for (const auto& [name, life] : state.lives) {
    if (life.info.group == group) newest = std::max(newest, life.info.known.epoch);
  }
  config.history = history;
  config.epoch = newest + 1;
  const auto life = state.lives.find(node);
  const GroupMember process = {.node = node, .incarnation = info->second.incarnation};
  if (life != state.lives.end() && life->second.info.known.primary == process &&
      life->second.info.known.epoch == newest) {
    config.history = life->second.info.known.history;
    config.epoch = newest;
  }
  config.primary = {.node = node, .incarnation = info->second.incarnation};
  config.in_sync = {config.primary};
  GANNET_RETURN_IF_ERROR(Check(config));
  return config;
}

absl::Status MayHandOver(const ClusterState& state, const std::string& group,
                         const std::string& node) {
  GANNET_ASSIGN_OR_RETURN(const GroupConfig config, Find(state, group));
  if (!IsMember(config, node)) return NoMember(group, node);
  if (config.epoch == 0) {
    return absl::FailedPreconditionError(absl::StrCat("group ", group, " has no primary yet"));
  }
  if (InSync(config, node) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(node, " is not in sync: it does not have all items"));
  }
  return absl::OkStatus();
}

std::string LossText(const ClusterState& state, const std::string& group, const std::string& node) {
  const GroupConfig& config = state.groups.at(group).config;
  const NodeInfo* own = InfoInSync(state, config, node);
  std::string text;
  const uint64_t kept = KeptBy(state, config, node);
  if (own != nullptr) {
    absl::StrAppend(&text, node, " said that it had applied LSN ", own->applied, "\n");
  } else if (kept != 0) {
    absl::StrAppend(&text, node, " is not in sync. If it runs, its disk has all up to LSN ", kept,
                    "\n");
  } else {
    absl::StrAppend(&text, node, " was not in sync: it may have none of the group's items\n");
  }
  for (const GroupMember& member : config.in_sync) {
    if (member.node == node) continue;
    const NodeInfo* info = InfoInSync(state, config, member.node);
    const uint64_t others = KeptBy(state, config, member.node);
    absl::StrAppend(&text, "lost: what only ", member.node, " has",
                    info != nullptr ? absl::StrCat(", which had applied LSN ", info->applied)
                    : others != 0   ? absl::StrCat(", whose disk has LSN ", others)
                                    : "",
                    "\n");
  }
  return text;
}

}  // namespace gannet::kvcli
