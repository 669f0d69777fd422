#include "tools/kvcli/cluster_moves.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/map_changes.h"
#include "common/protocol/partition_map.h"

namespace gannet::kvcli {
namespace {

constexpr int64_t kMsPerSecond = 1000;

absl::Status NotNow(const std::string& why) { return absl::FailedPreconditionError(why); }

absl::StatusOr<uint16_t> PlaceOf(const ClusterConfig& map, const std::string& group) {
  const auto found = std::ranges::find(map.groups, group);
  if (found != map.groups.end()) return static_cast<uint16_t>(found - map.groups.begin());
  return absl::NotFoundError(absl::StrCat("the cluster has no group ", group,
                                          "; kvcli cluster status shows which it has"));
}

// A group that has no primary would never begin.
absl::Status MayReceive(const ClusterState& state, const std::string& name) {
  const auto group = state.groups.find(name);
  if (group == state.groups.end()) {
    return NotNow(absl::StrCat("etcd has no register of group ", name));
  }
  if (group->second.config.epoch > 0) return absl::OkStatus();
  return NotNow(absl::StrCat(
      "no member of group ", name,
      " has been started: start kvserver --name=", group->second.config.members.front(), " first"));
}

absl::Status CheckReceivers(const ClusterState& state, std::span<const PartitionMove> plan) {
  GANNET_RETURN_IF_ERROR(KnowMoves(state));
  for (const PartitionMove& move : plan) {
    GANNET_RETURN_IF_ERROR(MayReceive(state, state.map.groups[move.to]));
  }
  return absl::OkStatus();
}

absl::Status MovesElsewhere(uint16_t partition, const std::string& to) {
  return NotNow(absl::StrCat("partition ", partition, " moves to ", to,
                             " already. Wait for it, or give that up first: kvcli cluster moves "
                             "--stop"));
}

// What one group has, now and after a plan.
struct Share {
  uint64_t partitions = 0;
  uint64_t bytes = 0;
};

std::vector<Share> SharesOf(const ClusterConfig& map, std::span<const uint64_t> bytes) {
  std::vector<Share> shares(map.groups.size());
  for (uint16_t p = 0; p < kPartitions; ++p) {
    Share& share = shares[map.partitions[p]];
    ++share.partitions;
    if (!bytes.empty()) share.bytes += bytes[p];
  }
  return shares;
}

ClusterConfig AfterPlan(const ClusterState& state, std::span<const PartitionMove> plan) {
  ClusterConfig map = MapAfterMoves(state);
  for (const PartitionMove& move : plan) map.partitions[move.partition] = move.to;
  return map;
}

// From and to, by place, and what goes that way.
std::map<std::pair<uint16_t, uint16_t>, Share> WaysOf(std::span<const PartitionMove> plan,
                                                      std::span<const uint64_t> bytes) {
  std::map<std::pair<uint16_t, uint16_t>, Share> ways;
  for (const PartitionMove& move : plan) {
    Share& share = ways[{move.from, move.to}];
    ++share.partitions;
    if (!bytes.empty()) share.bytes += bytes[move.partition];
  }
  return ways;
}

std::string ShareText(const Share& share, bool with_bytes) {
  return absl::StrCat(share.partitions, share.partitions == 1 ? " partition" : " partitions",
                      with_bytes ? absl::StrCat(", ", BytesText(share.bytes)) : "");
}

}  // namespace

std::string BytesText(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(bytes);
  size_t unit = 0;
  while (number >= 1024 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, number, kUnits[unit]);
}

absl::Status KnowMoves(const ClusterState& state) {
  for (const auto& [name, group] : state.groups) {
    for (const std::string& node : group.config.members) {
      const auto info = state.nodes.find(node);
      if (info == state.nodes.end()) continue;  // it has not run yet
      const auto version = state.versions.find(node);
      const bool known = version != state.versions.end() &&
                         version->second.incarnation == info->second.incarnation;
      if (known && version->second.moves) continue;
      return NotNow(absl::StrCat(
          "member ", node, " of group ", name, " runs Gannet ",
          known ? version->second.version : "0.1.0",
          ", which knows of no moves: it would go on serving keys that are not its group's any "
          "more. Upgrade it first. If it does not run any more: kvcli cluster remove ",
          name, " ", node));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AddedGroup> WithGroup(const ClusterState& state, const std::string& name,
                                     GroupConfig group) {
  if (state.groups.contains(name)) {
    return absl::AlreadyExistsError(absl::StrCat("the cluster has a group ", name,
                                                 " already; kvcli cluster add makes a node a "
                                                 "member of it"));
  }
  for (const auto& [other, there] : state.groups) {
    for (const std::string& node : group.members) {
      if (std::ranges::find(there.config.members, node) == there.config.members.end()) continue;
      return absl::AlreadyExistsError(
          absl::StrCat(node, " is a member of group ", other, ". A node is a member of one group"));
    }
  }
  GANNET_RETURN_IF_ERROR(Check(group));
  GANNET_RETURN_IF_ERROR(KnowMoves(state));
  GANNET_ASSIGN_OR_RETURN(ClusterConfig map, AddGroup(state.map, name));
  return AddedGroup{.map = std::move(map), .group = std::move(group)};
}

absl::StatusOr<ClusterConfig> WithoutGroup(const ClusterState& state, const std::string& name) {
  GANNET_ASSIGN_OR_RETURN(const uint16_t place, PlaceOf(state.map, name));
  if (!state.moves.empty()) {
    return NotNow(
        absl::StrCat(state.moves.size(),
                     " partitions move. Wait for them (kvcli cluster moves), or give that "
                     "up (--stop)"));
  }
  if (const auto has = std::ranges::count(state.map.partitions, place); has > 0) {
    return NotNow(absl::StrCat("group ", name, " still has ", has,
                               " partitions. Move them first: kvcli cluster drain ", name));
  }
  return RemoveGroup(state.map, name);
}

ClusterConfig MapAfterMoves(const ClusterState& state) {
  ClusterConfig map = state.map;
  for (const auto& [partition, move] : state.moves) {
    const auto found = std::ranges::find(map.groups, move.info.to);
    if (found == map.groups.end() || move.info.stop) continue;
    map.partitions[partition] = static_cast<uint16_t>(found - map.groups.begin());
  }
  return map;
}

absl::StatusOr<std::vector<PartitionMove>> PlanOfMove(const ClusterState& state,
                                                      std::span<const uint16_t> partitions,
                                                      const std::string& to) {
  GANNET_ASSIGN_OR_RETURN(const uint16_t place, PlaceOf(state.map, to));
  std::vector<PartitionMove> plan;
  for (const uint16_t partition : partitions) {
    const auto move = state.moves.find(partition);
    if (move != state.moves.end()) {
      if (move->second.info.to == to && !move->second.info.stop) continue;
      return MovesElsewhere(partition, move->second.info.to);
    }
    const uint16_t from = state.map.partitions[partition];
    if (from != place) plan.push_back({.partition = partition, .from = from, .to = place});
  }
  GANNET_RETURN_IF_ERROR(CheckReceivers(state, plan));
  return plan;
}

absl::StatusOr<std::vector<PartitionMove>> PlanOfBalance(const ClusterState& state,
                                                         std::span<const uint64_t> bytes) {
  ClusterConfig map = MapAfterMoves(state);
  // What moves already stays where it goes to.
  map.closed.clear();
  for (const auto& [partition, move] : state.moves) map.closed.push_back(partition);
  std::vector<PartitionMove> plan = PlanBalance(map, bytes);
  GANNET_RETURN_IF_ERROR(CheckReceivers(state, plan));
  return plan;
}

absl::Status MayDrain(const ClusterState& state, const std::string& group) {
  for (const auto& [partition, move] : state.moves) {
    const bool from_here = state.map.groups[state.map.partitions[partition]] == group;
    if (move.info.to == group || (move.info.stop && from_here)) {
      return MovesElsewhere(partition, move.info.to);
    }
  }
  return absl::OkStatus();
}

absl::Status IsDrained(const ClusterState& state, const std::string& group) {
  GANNET_ASSIGN_OR_RETURN(const uint16_t place, PlaceOf(state.map, group));
  const auto has = std::ranges::count(state.map.partitions, place);
  const auto come = std::ranges::count_if(
      state.moves, [&](const auto& move) { return move.second.info.to == group; });
  if (has == 0 && come == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "all that was asked for has moved, but group ", group, " has ", has, " partitions, and ",
      come,
      " more move to it: somebody else moves partitions to it. Once that has ended (kvcli "
      "cluster moves), drain it again"));
}

absl::StatusOr<std::vector<PartitionMove>> PlanOfDrain(const ClusterState& state,
                                                       const std::string& group,
                                                       std::span<const uint64_t> bytes) {
  GANNET_RETURN_IF_ERROR(PlaceOf(state.map, group).status());
  GANNET_RETURN_IF_ERROR(MayDrain(state, group));
  ClusterConfig map = MapAfterMoves(state);
  map.closed.clear();
  GANNET_ASSIGN_OR_RETURN(std::vector<PartitionMove> plan, PlanDrain(map, group, bytes));
  GANNET_RETURN_IF_ERROR(CheckReceivers(state, plan));
  return plan;
}

std::string PlanText(const ClusterState& state, std::span<const PartitionMove> plan,
                     std::span<const uint64_t> bytes) {
  const std::vector<std::string>& groups = state.map.groups;
  std::string text;
  Share all;
  for (const auto& [way, share] : WaysOf(plan, bytes)) {
    absl::StrAppend(&text, "  ", groups[way.first], " -> ", groups[way.second], "  ",
                    ShareText(share, !bytes.empty()), "\n");
    all.partitions += share.partitions;
    all.bytes += share.bytes;
  }
  text = absl::StrCat("plan: ", ShareText(all, !bytes.empty()), " to move\n", text, "then:\n");
  const std::vector<Share> shares = SharesOf(AfterPlan(state, plan), bytes);
  for (size_t i = 0; i < groups.size(); ++i) {
    absl::StrAppend(&text, "  ", groups[i], "  ", ShareText(shares[i], !bytes.empty()), "\n");
  }
  return text;
}

Json PlanJson(const ClusterState& state, std::span<const PartitionMove> plan,
              std::span<const uint64_t> bytes) {
  const std::vector<std::string>& groups = state.map.groups;
  Json moves = Json::array(), after = Json::array();
  for (const PartitionMove& move : plan) {
    moves.push_back({{"partition", move.partition},
                     {"from", groups[move.from]},
                     {"to", groups[move.to]},
                     {"bytes", bytes.empty() ? Json(nullptr) : Json(bytes[move.partition])}});
  }
  const std::vector<Share> shares = SharesOf(AfterPlan(state, plan), bytes);
  for (size_t i = 0; i < groups.size(); ++i) {
    after.push_back({{"group", groups[i]},
                     {"partitions", shares[i].partitions},
                     {"bytes", bytes.empty() ? Json(nullptr) : Json(shares[i].bytes)}});
  }
  return {{"moves", moves}, {"after", after}};
}

std::string MovesText(const ClusterState& state) {
  if (state.moves.empty()) return "no partition moves\n";
  struct Way {
    size_t partitions = 0, closed = 0, stopped = 0;
    std::string asked;
  };
  std::map<std::pair<std::string, std::string>, Way> ways;
  for (const auto& [partition, move] : state.moves) {
    Way& way = ways[{state.map.groups[state.map.partitions[partition]], move.info.to}];
    ++way.partitions;
    way.closed += IsClosed(state.map, partition) ? 1 : 0;
    way.stopped += move.info.stop ? 1 : 0;
    way.asked = move.info.asked;
  }
  std::string text;
  for (const auto& [groups, way] : ways) {
    absl::StrAppendFormat(&text, "%s -> %s  %u to move, %u closed for it", groups.first,
                          groups.second, way.partitions, way.closed);
    if (way.stopped > 0) absl::StrAppendFormat(&text, ", %u are given up", way.stopped);
    if (!way.asked.empty()) absl::StrAppend(&text, "; asked ", way.asked);
    text += '\n';
  }
  return text;
}

Json MovesJson(const ClusterState& state) {
  Json moves = Json::array();
  for (const auto& [partition, move] : state.moves) {
    moves.push_back({{"partition", partition},
                     {"from", state.map.groups[state.map.partitions[partition]]},
                     {"to", move.info.to},
                     {"closed", IsClosed(state.map, partition)},
                     {"stop", move.info.stop},
                     {"asked", move.info.asked}});
  }
  return moves;
}

// --- progress ---

PlanProgress::PlanProgress(std::map<uint16_t, std::string> wanted, std::span<const uint64_t> bytes,
                           int64_t now_ms)
    : wanted_(std::move(wanted)),
      bytes_(bytes.begin(), bytes.end()),
      begun_ms_(now_ms),
      changed_ms_(now_ms),
      left_(wanted_.size()) {}

void PlanProgress::Take(const ClusterState& state, int64_t now_ms) {
  const auto before = std::pair(left_, closed_);
  left_ = closed_ = 0;
  left_bytes_ = 0;
  given_up_.clear();
  for (const auto& [partition, to] : wanted_) {
    if (state.moves.contains(partition)) {
      ++left_;
      left_bytes_ += bytes_.empty() ? 0 : bytes_[partition];
      closed_ += IsClosed(state.map, partition) ? 1 : 0;
    } else if (state.map.groups[state.map.partitions[partition]] != to) {
      given_up_.push_back(partition);
    }
  }
  if (!std::exchange(taken_, true)) {
    left_at_first_ = left_;
    left_bytes_at_first_ = left_bytes_;
  }
  if (std::pair(left_, closed_) != before) changed_ms_ = now_ms;
}

std::string PlanProgress::Text(int64_t now_ms) const {
  uint64_t all_bytes = 0;
  for (const auto& [partition, to] : wanted_) all_bytes += bytes_.empty() ? 0 : bytes_[partition];
  std::string text = absl::StrCat(moved(), " of ", wanted_.size(), " partitions have moved");
  if (all_bytes > 0) {
    absl::StrAppend(&text, ", ", BytesText(all_bytes - left_bytes_), " of ", BytesText(all_bytes));
  }
  if (closed_ > 0) absl::StrAppend(&text, ", ", closed_, " are closed for it");
  // Empty partitions cost a little, too.
  const auto weight = [&](size_t partitions, uint64_t bytes) {
    return static_cast<double>(bytes) + 4096.0 * static_cast<double>(partitions);
  };
  const double left = weight(left_, left_bytes_);
  const double gone = weight(left_at_first_, left_bytes_at_first_) - left;
  if (left_ > 0 && gone > 0) {
    const auto ms = static_cast<double>(now_ms - begun_ms_) * left / gone;
    absl::StrAppend(&text, ", about ", static_cast<int64_t>(ms) / kMsPerSecond + 1, " s left");
  }
  return text;
}

}  // namespace gannet::kvcli
