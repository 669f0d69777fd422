#include "tools/kvcli/lost_cluster.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/map_changes.h"

namespace gannet::kvcli {
namespace {

// No process has it: they are random.
constexpr uint64_t kNobody = 1;

const EtcdKeyValue* Find(const std::vector<EtcdKeyValue>& items, const std::string& key) {
  const auto found = std::ranges::find(items, key, &EtcdKeyValue::key);
  return found == items.end() ? nullptr : &*found;
}

bool IsPrimary(const std::string& node, const NodeLife& life) {
  return life.known.primary == GroupMember{.node = node, .incarnation = life.incarnation};
}

// Whether the process is in sync, as far as it knows.
bool SaysItIsInSync(const std::string& node, const NodeLife& life) {
  const GroupMember self = {.node = node, .incarnation = life.incarnation};
  return std::ranges::find(life.known.in_sync, self) != life.known.in_sync.end();
}

// Orders processes by what they have (docs/group-recovery.md, "A register that is lost"): those in
// sync, then the highest epoch, then who leads, then who has most. A backup may have been taken out
// of those in sync, and not know it. Then another one has more.
std::tuple<bool, uint64_t, bool, uint64_t> RankOf(const std::string& node, const NodeLife& life) {
  const bool leads = life.leads || IsPrimary(node, life);
  return {SaysItIsInSync(node, life), life.known.epoch, leads, leads ? 0 : life.applied};
}

// Returns the nodes whose notes are of the group, the best first.
std::vector<std::string> NodesOf(const std::string& group, const Lives& lives) {
  std::vector<std::string> nodes;
  for (const auto& [node, life] : lives) {
    if (life.info.group == group) nodes.push_back(node);
  }
  std::ranges::stable_sort(nodes, std::ranges::greater{}, [&](const std::string& node) {
    return RankOf(node, lives.at(node).info);
  });
  return nodes;
}

// Returns the newest map that any of them knows; nullptr: there are none.
const ClusterConfig* NewestMap(const Lives& lives) {
  const ClusterConfig* newest = nullptr;
  for (const auto& [node, life] : lives) {
    if (newest == nullptr || life.info.map.revision > newest->revision) newest = &life.info.map;
  }
  return newest;
}

std::string WhatItHas(const std::string& node, const NodeLife& life) {
  return absl::StrCat(node, " (", IsPrimary(node, life) ? "primary" : "backup", " in epoch ",
                      life.known.epoch, ", applied ", life.applied, ")");
}

// "--group=g1:n1,n2", as members know it.
std::string GroupsOf(const ClusterConfig& map, const Lives& lives) {
  std::vector<std::string> flags;
  for (const std::string& group : map.groups) {
    const std::vector<std::string> nodes = NodesOf(group, lives);
    const std::string members =
        nodes.empty() ? "NODES" : absl::StrJoin(lives.at(nodes.front()).info.known.members, ",");
    flags.push_back(absl::StrCat("--group=", group, ":", members));
  }
  return absl::StrJoin(flags, " ");
}

// Adds what the map is to become, if it is to change.
absl::Status PlanMap(const NewCluster& cluster, const EtcdTxn& create, const EtcdKeyValue* there,
                     const Lives& lives, EtcdTxn* txn) {
  const std::string key = ConfigKey(cluster.name);
  const ClusterConfig* const known = NewestMap(lives);
  std::string value;
  if (there == nullptr) {
    value = std::ranges::find(create.puts, key, &EtcdTxn::Put::key)->value;
    if (known != nullptr) {
      std::set<std::string> named;
      for (const NewCluster::Group& group : cluster.groups) named.insert(group.name);
      if (named != std::set<std::string>(known->groups.begin(), known->groups.end())) {
        return absl::FailedPreconditionError(
            absl::StrCat("members live that know the cluster with other groups. Name these: ",
                         GroupsOf(*known, lives)));
      }
      value = Encode(*known);
    }
  } else if (known != nullptr) {
    const auto config = DecodeClusterConfig(there->value);
    if (config.ok() && CheckFollows(*known, *config).ok()) return absl::OkStatus();
    // Clients may know the one that is there.
    ClusterConfig again = *known;
    if (again.revision > 0) {
      again.revision = std::max(again.revision, config.ok() ? config->revision : 0) + 1;
    }
    value = Encode(again);
  }
  if (value.empty()) return absl::OkStatus();
  txn->compares.push_back({.key = key, .mod_revision = there == nullptr ? 0 : there->mod_revision});
  txn->puts.push_back({key, value});
  return absl::OkStatus();
}

absl::Status NobodyHas(const std::string& group, const std::vector<std::string>& nodes) {
  return absl::FailedPreconditionError(absl::StrCat(
      absl::StrJoin(nodes, ", "), " had items of group ", group,
      " when etcd had lost it, and no process of it that has any has said that it lives. Start no "
      "member before it is clear where they are. If they are gone for good, begin without them: "
      "--abandon=",
      absl::StrJoin(nodes, " --abandon=")));
}

// Whether the node's process is the one that has said so, or has what that one left on the disk.
bool HasWhatItSaid(const ClusterState& state, const std::string& node, const NodeLife& life) {
  const auto process = state.nodes.find(node);
  if (process == state.nodes.end()) return true;  // nobody knows
  const uint64_t incarnation = process->second.incarnation;
  const auto disk = state.disks.find(node);
  const bool kept = disk != state.disks.end() && disk->second.incarnation == incarnation &&
                    disk->second.run == life.incarnation;
  return incarnation == life.incarnation || kept;
}

}  // namespace

NodeLife Asking(NodeLife life) {
  life.incarnation = kNobody;
  life.leads = false;
  return life;
}

bool IsAsking(const NodeLife& life) { return life.incarnation == kNobody; }

absl::StatusOr<InitPlan> PlanInit(const NewCluster& cluster, const EtcdTxn& create,
                                  const std::vector<EtcdKeyValue>& items, const Lives& lives,
                                  const std::set<std::string>& living) {
  InitPlan plan;
  const EtcdKeyValue* const map = Find(items, ConfigKey(cluster.name));
  GANNET_RETURN_IF_ERROR(PlanMap(cluster, create, map, lives, &plan.txn));
  for (const NewCluster::Group& group : cluster.groups) {
    const std::string key = GroupKey(cluster.name, group.name);
    const EtcdKeyValue* const there = Find(items, key);
    std::vector<std::string> nodes = NodesOf(group.name, lives);
    const auto there_now =
        there == nullptr ? std::nullopt : std::optional(DecodeGroupConfig(there->value));
    const bool unfounded = !there_now || (there_now->ok() && (*there_now)->epoch == 0);
    plan.txn.compares.push_back(
        {.key = key, .mod_revision = there == nullptr ? 0 : there->mod_revision});
    const std::string policy_key = PolicyKey(cluster.name, group.name);
    std::string value = std::ranges::find(create.puts, key, &EtcdTxn::Put::key)->value;
    std::string policy = std::ranges::find(create.puts, policy_key, &EtcdTxn::Put::key)->value;
    if (!nodes.empty()) {
      GroupConfig again = lives.at(nodes.front()).info.known;
      again.epoch = 0;
      again.primary = {};
      again.in_sync.clear();
      value = Encode(again);
      policy = Encode(lives.at(nodes.front()).info.policy);
    }
    const bool is_new = there == nullptr && (map == nullptr || !nodes.empty());
    if (is_new) plan.txn.puts.push_back({key, value});
    if (is_new && Find(items, policy_key) == nullptr) {
      plan.txn.puts.push_back({policy_key, policy});
    }
    if (nodes.empty()) continue;
    const NodeLife& best = lives.at(nodes.front()).info;
    if (unfounded && best.leads && living.contains(nodes.front())) {
      plan.adopting.push_back(group.name);
      continue;
    }
    const std::vector<std::string> all = nodes;
    std::erase_if(nodes, [&](const std::string& node) { return !living.contains(node); });
    if (nodes.empty() && unfounded) return NobodyHas(group.name, all);
    if (nodes.empty()) continue;
    absl::StrAppend(&plan.advice, "nobody leads group ", group.name,
                    " that can be sure of it. What lives: ");
    for (const std::string& node : nodes) {
      absl::StrAppend(&plan.advice, node == nodes.front() ? "" : ", ",
                      WhatItHas(node, lives.at(node).info));
    }
    absl::StrAppend(&plan.advice, ". Take the best: kvcli cluster force ", group.name,
                    " --from=", nodes.front(), " --lose-data\n");
  }
  return plan;
}

std::string LivesText(const std::string& cluster, const Lives& lives) {
  if (lives.empty()) return "";
  std::string text = absl::StrCat("etcd has lost cluster ", cluster,
                                  " or a part of it, and these members have said that they have "
                                  "its items: ");
  for (const auto& [node, life] : lives) {
    absl::StrAppend(&text, node == lives.begin()->first ? "" : ", ", WhatItHas(node, life.info),
                    " of group ", life.info.group);
  }
  absl::StrAppend(&text, ". To take over what they have: kvcli cluster init ",
                  GroupsOf(*NewestMap(lives), lives));
  return text;
}

std::string WhatIsBetter(const ClusterState& state, const std::string& group,
                         const std::string& node) {
  const std::vector<std::string> alive = NodesOf(group, state.lives);
  const auto own_life = state.lives.find(node);
  if (!alive.empty() && own_life == state.lives.end()) {
    return absl::StrCat(alive.front(), " has said that it lives and has the group's items");
  }
  if (!alive.empty() && !HasWhatItSaid(state, node, own_life->second.info)) {
    return absl::StrCat("the process of ", node,
                        " that has said that it lives has ended, and the one that runs now does "
                        "not have its items");
  }
  if (!alive.empty()) {
    const NodeLife& best = state.lives.at(alive.front()).info;
    const NodeLife& own = own_life->second.info;
    if (RankOf(alive.front(), best) <= RankOf(node, own)) return "";
    return absl::StrCat("better is ", WhatItHas(alive.front(), best));
  }
  const GroupConfig& config = state.groups.at(group).config;
  // Of a group that nobody has founded, all runs are of other histories.
  const auto own_disk = state.disks.find(node);
  const bool founded = config.epoch > 0 || own_disk == state.disks.end();
  const uint64_t history = founded ? config.history : own_disk->second.history;
  struct Rank {
    uint64_t opened = 0;
    uint64_t lsn = 0;
  };
  const auto rank_of = [&](const std::string& member) -> std::optional<Rank> {
    const auto disk = state.disks.find(member);
    const auto info = state.nodes.find(member);
    if (disk == state.disks.end() || info == state.nodes.end()) return std::nullopt;
    if (disk->second.incarnation != info->second.incarnation) return std::nullopt;
    if (disk->second.history != history) return std::nullopt;
    return Rank{disk->second.opened, disk->second.applied};
  };
  Rank own = rank_of(node).value_or(Rank{});
  if (const auto info = state.nodes.find(node); own.lsn == 0 && info != state.nodes.end()) {
    own.lsn = info->second.applied;  // in memory
  }
  const bool is_in_sync =
      std::ranges::find(config.in_sync, node, &GroupMember::node) != config.in_sync.end();
  for (const GroupMember& member : config.in_sync) {
    const auto info = state.nodes.find(member.node);
    if (is_in_sync || own.lsn != 0 || own.opened != 0 || info == state.nodes.end()) break;
    if (info->second.incarnation != member.incarnation || info->second.applied == 0) continue;
    return absl::StrCat(node, " has none of the group's items, as far as is known, and ",
                        member.node, " is in sync");
  }
  for (const std::string& member : config.members) {
    const std::optional<Rank> other = rank_of(member);
    if (!other || member == node) continue;
    if (other->opened > own.opened) {
      return absl::StrCat(
          "the disk of ", member, " has opened epoch ", other->opened,
          ": it has all that was acknowledged until then. That of ", node,
          own.opened == 0 ? " has opened none" : absl::StrCat(" has opened epoch ", own.opened));
    }
    if (other->opened == own.opened && other->lsn > own.lsn) {
      return absl::StrCat("the disk of ", member, " has all up to LSN ", other->lsn, ", and ", node,
                          " up to ", own.lsn);
    }
  }
  return "";
}

}  // namespace gannet::kvcli
