#include "tools/kvcli/cluster_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/protocol/versions.h"
#include "tools/kvcli/cluster_moves.h"

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
  } else if (key.kind == kDisk) {
    GANNET_ASSIGN_OR_RETURN(state->disks[key.name], DecodeNodeDisk(item.value));
  } else if (key.kind == kMove) {
    GANNET_ASSIGN_OR_RETURN(MoveInfo info, DecodeMoveInfo(item.value));
    state->moves[key.partition] = {std::move(info), item.mod_revision};
  } else if (key.kind == kWish) {
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

// What a node's newest process said of itself, if it is the one in sync. Others' LSNs say nothing
// of the group's items.
const NodeInfo* InfoInSync(const ClusterState& state, const GroupConfig& config,
                           const std::string& node) {
  const GroupMember* member = InSync(config, node);
  const auto info = state.nodes.find(node);
  if (member == nullptr || info == state.nodes.end()) return nullptr;
  return info->second.incarnation == member->incarnation ? &info->second : nullptr;
}

// Returns what the disk of a node has, if its newest process is not in sync; 0: nothing is known.
uint64_t KeptBy(const ClusterState& state, const GroupConfig& config, const std::string& node) {
  const auto info = state.nodes.find(node);
  if (info == state.nodes.end() || InfoInSync(state, config, node) != nullptr) return 0;
  return info->second.applied;
}

// Returns the last epoch in which a process that was primary with --sync=always took clients, and
// whose disk the node's newest process has found, in the group's present history; 0: none.
uint64_t OpenedBy(const ClusterState& state, const GroupConfig& config, const std::string& node) {
  const auto info = state.nodes.find(node);
  const auto disk = state.disks.find(node);
  if (info == state.nodes.end() || disk == state.disks.end()) return 0;
  const bool newest = disk->second.incarnation == info->second.incarnation;
  if (!newest || InfoInSync(state, config, node) != nullptr) return 0;
  return disk->second.history == config.history ? disk->second.opened : 0;
}

// Returns the version of the stream that all in sync speak. The primary uses that.
uint32_t StreamOf(const ClusterState& state, const GroupConfig& config) {
  uint32_t stream = kStreamVersions.max;
  for (const GroupMember& member : config.in_sync) {
    const auto version = state.versions.find(member.node);
    const bool known =
        version != state.versions.end() && version->second.incarnation == member.incarnation;
    stream = std::min(stream, known ? version->second.stream : 0);
  }
  return stream;
}

// What `status` shows of a member.
struct MemberView {
  std::string name;
  std::string role;
  std::optional<std::string> address;
  std::optional<uint64_t> applied;
  std::optional<uint64_t> lag_bytes;
  std::optional<uint64_t> kept;
  std::optional<uint64_t> opened;
};

MemberView ViewOf(const ClusterState& state, const GroupConfig& config, const std::string& node) {
  MemberView view = {.name = node};
  const bool primary = config.epoch > 0 && config.primary.node == node;
  view.role = primary ? "primary" : InSync(config, node) != nullptr ? "backup" : "out";
  if (const auto info = state.nodes.find(node); info != state.nodes.end()) {
    view.address = info->second.address;
  }
  if (const NodeInfo* info = InfoInSync(state, config, node)) view.applied = info->applied;
  if (const uint64_t kept = KeptBy(state, config, node)) view.kept = kept;
  if (const uint64_t opened = OpenedBy(state, config, node)) view.opened = opened;
  const NodeInfo* leader = InfoInSync(state, config, config.primary.node);
  // What the primary said may be older than what the backup said. Then nothing is known.
  if (view.applied && leader != nullptr && leader->applied >= *view.applied) {
    view.lag_bytes = leader->applied - *view.applied;
  }
  return view;
}

size_t PartitionsOf(const ClusterConfig& map, const std::string& group) {
  const auto place = std::ranges::find(map.groups, group) - map.groups.begin();
  return static_cast<size_t>(std::ranges::count(map.partitions, place));
}

}  // namespace

absl::StatusOr<ClusterState> ReadCluster(const std::string& name,
                                         const std::vector<EtcdKeyValue>& items) {
  ClusterState state = {.name = name};
  const auto config = std::ranges::find(items, ConfigKey(name), &EtcdKeyValue::key);
  if (config == items.end()) {
    return absl::NotFoundError(
        absl::StrCat("etcd has no cluster ", name, "; kvcli cluster init makes one"));
  }
  auto map = DecodeClusterConfig(config->value);
  if (!map.ok()) return In(config->key, map.status());
  state.map = *std::move(map);
  state.map_revision = config->mod_revision;
  for (const EtcdKeyValue& item : items) {
    const auto key = ParseClusterKey(name, item.key);
    if (!key) continue;
    if (const absl::Status taken = Take(*key, item, &state); !taken.ok())
      return In(item.key, taken);
  }
  return state;
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
  config.history = history;
  ++config.epoch;
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

std::string StatusText(const ClusterState& state) {
  std::string text;
  for (const auto& [name, group] : state.groups) {
    const GroupConfig& config = group.config;
    absl::StrAppendFormat(&text, "group %s: epoch %u, primary %s, %u of %u in sync, lease %u ms\n",
                          name, config.epoch, config.epoch > 0 ? config.primary.node : "none",
                          config.in_sync.size(), config.members.size(), config.lease_ms);
    if (!config.in_sync.empty() && StreamOf(state, config) < kStreamVersions.max) {
      text.pop_back();
      absl::StrAppend(&text, ", stream version ", StreamOf(state, config), " of ",
                      kStreamVersions.max, "\n");
    }
    if (state.map.groups.size() > 1) {
      text.pop_back();
      absl::StrAppend(&text, ", ", PartitionsOf(state.map, name), " partitions\n");
    }
    for (const std::string& node : config.members) {
      const MemberView view = ViewOf(state, config, node);
      absl::StrAppendFormat(&text, "  %-12s %-8s %-22s", view.name, view.role,
                            view.address.value_or("-"));
      if (view.applied) absl::StrAppendFormat(&text, " applied %u", *view.applied);
      if (view.kept) absl::StrAppendFormat(&text, " not in sync, kept %u", *view.kept);
      if (view.opened) absl::StrAppendFormat(&text, ", opened epoch %u", *view.opened);
      if (view.lag_bytes && view.role == "backup")
        absl::StrAppendFormat(&text, ", %u bytes behind", *view.lag_bytes);
      text += '\n';
    }
    if (const auto wish = state.wishes.find(name); wish != state.wishes.end()) {
      absl::StrAppendFormat(&text, "  wanted: hand over to %s\n", wish->second.wish.handover);
    }
  }
  if (!state.moves.empty()) text += MovesText(state);
  return text;
}

Json StatusJson(const ClusterState& state) {
  Json groups = Json::array();
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  for (const auto& [name, group] : state.groups) {
    const GroupConfig& config = group.config;
    Json in_sync = Json::array(), members = Json::array();
    for (const GroupMember& member : config.in_sync) in_sync.push_back(member.node);
    for (const std::string& node : config.members) {
      const MemberView view = ViewOf(state, config, node);
      members.push_back({{"name", view.name},
                         {"role", view.role},
                         {"address", or_null(view.address)},
                         {"applied", or_null(view.applied)},
                         {"lag_bytes", or_null(view.lag_bytes)},
                         {"kept", or_null(view.kept)},
                         {"opened", or_null(view.opened)},
                         // Records are not counted: LSNs are bytes of the stream.
                         {"lag_records", view.lag_bytes == 0 ? Json(0) : Json(nullptr)}});
    }
    const auto wish = state.wishes.find(name);
    groups.push_back({{"name", name},
                      {"epoch", config.epoch},
                      {"primary", config.epoch > 0 ? Json(config.primary.node) : Json(nullptr)},
                      {"in_sync", in_sync},
                      {"members", members},
                      {"lease_ms", config.lease_ms},
                      {"min_copies", config.min_copies},
                      {"stream", StreamOf(state, config)},
                      {"partitions", PartitionsOf(state.map, name)},
                      {"handover", wish != state.wishes.end() ? Json(wish->second.wish.handover)
                                                              : Json(nullptr)}});
  }
  return {{"cluster", state.name}, {"groups", groups}, {"moves", MovesJson(state)}};
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
