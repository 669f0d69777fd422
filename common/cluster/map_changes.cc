#include "common/cluster/map_changes.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"

namespace gannet {
namespace {

absl::Status NotIn(std::string_view group) {
  return absl::InvalidArgumentError(absl::StrCat("the cluster has no group ", std::string(group)));
}

std::optional<uint16_t> PlaceOf(const ClusterConfig& map, std::string_view group) {
  const auto found = std::ranges::find(map.groups, group);
  if (found == map.groups.end()) return std::nullopt;
  return static_cast<uint16_t>(found - map.groups.begin());
}

absl::Status CheckPartitions(std::span<const uint16_t> partitions) {
  if (partitions.empty()) return absl::InvalidArgumentError("no partition is named");
  for (const uint16_t partition : partitions) {
    if (partition >= kPartitions) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no partition ", partition, ": they end at ", kPartitions - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckClosed(const ClusterConfig& map, std::span<const uint16_t> partitions) {
  for (const uint16_t partition : partitions) {
    if (!IsClosed(map, partition)) {
      return absl::FailedPreconditionError(absl::StrCat("partition ", partition, " is open"));
    }
  }
  return absl::OkStatus();
}

// Begins the next revision.
void Advance(ClusterConfig* map) {
  ++map->revision;
  map->changed.resize(kPartitions);
  map->lost.resize(map->groups.size());
}

absl::Status CannotFollow(std::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("no change makes this map of the one that is known: ", std::string(why)));
}

// Returns at which revision the partition was changed last; 0: never.
uint64_t ChangedAt(const ClusterConfig& map, uint16_t partition) {
  return map.revision == 0 ? 0 : map.changed[partition];
}

// Returns when the group last closed a partition; 0: never, or it is not there.
uint64_t LostAt(const ClusterConfig& map, std::string_view group) {
  const std::optional<uint16_t> place = PlaceOf(map, group);
  return map.revision == 0 || !place ? 0 : map.lost[*place];
}

// One partition of CheckFollows.
absl::Status CheckPartitionFollows(const ClusterConfig& before, const ClusterConfig& after,
                                   uint16_t partition) {
  const std::string& owner = before.groups[before.partitions[partition]];
  const std::string& next_owner = after.groups[after.partitions[partition]];
  const bool was_closed = IsClosed(before, partition);
  const uint64_t changed = ChangedAt(after, partition);
  const auto wrong = [&](std::string_view why) {
    return CannotFollow(
        absl::StrCat("partition ", partition, " of group ", owner, " ", std::string(why)));
  };
  if (changed == ChangedAt(before, partition)) {
    const bool same = owner == next_owner && was_closed == IsClosed(after, partition);
    return same ? absl::OkStatus() : wrong("differs, and no revision says when it was changed");
  }
  if (changed <= before.revision) return wrong("was changed at an earlier revision");
  const bool moved = owner != next_owner;
  if (was_closed || !moved) return absl::OkStatus();
  // It was closed in between, by its owner, and that takes a revision of its own. Only a group that
  // was removed, and came again, does not say so.
  const bool says = PlaceOf(after, owner) && after.revision < before.revision + 4;
  if (changed >= before.revision + 2 && (!says || LostAt(after, owner) > before.revision)) {
    return absl::OkStatus();
  }
  return wrong(absl::StrCat("goes to ", next_owner, ", and was not closed before"));
}

void Open(ClusterConfig* map, std::span<const uint16_t> partitions) {
  std::erase_if(map->closed, [&](uint16_t partition) {
    return std::ranges::find(partitions, partition) != partitions.end();
  });
  for (const uint16_t partition : partitions) map->changed[partition] = map->revision;
}

}  // namespace

bool IsClosed(const ClusterConfig& map, uint16_t partition) {
  return std::ranges::binary_search(map.closed, partition);
}

absl::StatusOr<ClusterConfig> ClosePartitions(ClusterConfig map, std::string_view giver,
                                              std::span<const uint16_t> partitions) {
  GANNET_RETURN_IF_ERROR(CheckPartitions(partitions));
  const std::optional<uint16_t> place = PlaceOf(map, giver);
  if (!place) return NotIn(giver);
  for (const uint16_t partition : partitions) {
    if (map.partitions[partition] != *place) {
      return absl::FailedPreconditionError(
          absl::StrCat("group ", map.groups[map.partitions[partition]], " has partition ",
                       partition, ", not ", std::string(giver)));
    }
    if (IsClosed(map, partition)) {
      return absl::FailedPreconditionError(
          absl::StrCat("partition ", partition, " is closed already"));
    }
  }
  Advance(&map);
  map.lost[*place] = map.revision;
  for (const uint16_t partition : partitions) map.changed[partition] = map.revision;
  map.closed.insert(map.closed.end(), partitions.begin(), partitions.end());
  std::ranges::sort(map.closed);
  map.closed.erase(std::unique(map.closed.begin(), map.closed.end()), map.closed.end());
  return map;
}

absl::StatusOr<ClusterConfig> GivePartitions(ClusterConfig map, std::string_view receiver,
                                             std::span<const uint16_t> partitions,
                                             uint64_t closed_at) {
  GANNET_RETURN_IF_ERROR(CheckPartitions(partitions));
  const std::optional<uint16_t> place = PlaceOf(map, receiver);
  if (!place) return NotIn(receiver);
  GANNET_RETURN_IF_ERROR(CheckClosed(map, partitions));
  for (const uint16_t partition : partitions) {
    if (map.changed[partition] != closed_at) {
      return absl::FailedPreconditionError(
          absl::StrCat("partition ", partition, " was closed at revision ", map.changed[partition],
                       ", not ", closed_at));
    }
  }
  Advance(&map);
  Open(&map, partitions);
  for (const uint16_t partition : partitions) map.partitions[partition] = *place;
  return map;
}

absl::StatusOr<ClusterConfig> ReopenPartitions(ClusterConfig map,
                                               std::span<const uint16_t> partitions) {
  GANNET_RETURN_IF_ERROR(CheckPartitions(partitions));
  GANNET_RETURN_IF_ERROR(CheckClosed(map, partitions));
  Advance(&map);
  Open(&map, partitions);
  return map;
}

absl::StatusOr<ClusterConfig> AddGroup(ClusterConfig map, std::string_view group) {
  if (!IsClusterName(group)) return absl::InvalidArgumentError(WhatNamesAre("group"));
  if (PlaceOf(map, group)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cluster has a group ", std::string(group), " already"));
  }
  if (map.groups.size() == kGroupsMax) {
    return absl::FailedPreconditionError(
        absl::StrCat("a cluster has no more than ", kGroupsMax, " groups"));
  }
  Advance(&map);
  const auto at = std::ranges::lower_bound(map.groups, group);
  const auto place = at - map.groups.begin();
  map.groups.insert(at, std::string(group));
  map.lost.insert(map.lost.begin() + place, 0);
  for (uint16_t& owner : map.partitions) owner += owner >= place ? 1 : 0;
  return map;
}

absl::StatusOr<ClusterConfig> RemoveGroup(ClusterConfig map, std::string_view group) {
  const std::optional<uint16_t> place = PlaceOf(map, group);
  if (!place) return NotIn(group);
  const auto owned = std::ranges::count(map.partitions, *place);
  if (owned > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("group ", std::string(group), " still has ", owned, " partitions"));
  }
  Advance(&map);
  map.groups.erase(map.groups.begin() + *place);
  map.lost.erase(map.lost.begin() + *place);
  for (uint16_t& owner : map.partitions) owner -= owner > *place ? 1 : 0;
  return map;
}

absl::Status CheckFollows(const ClusterConfig& before, const ClusterConfig& after) {
  if (after.revision < before.revision) return CannotFollow("its revision is lower");
  if (after.revision == before.revision) {
    return after == before ? absl::OkStatus() : CannotFollow("its revision is the same");
  }
  // Each group that comes or goes takes a revision.
  uint64_t revisions = 0;
  for (const std::string& group : before.groups) revisions += PlaceOf(after, group) ? 0 : 1;
  for (const std::string& group : after.groups) revisions += PlaceOf(before, group) ? 0 : 1;
  if (after.revision - before.revision < revisions) return CannotFollow("its groups are others");
  for (uint16_t partition = 0; partition < kPartitions; ++partition) {
    GANNET_RETURN_IF_ERROR(CheckPartitionFollows(before, after, partition));
  }
  return absl::OkStatus();
}

}  // namespace gannet
