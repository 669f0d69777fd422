// Decides by what was seen of the map and the wishes: which partitions come next, what has become
// of those that were begun, which are to be opened again, and which wishes are over. It keeps
// nothing, so each decision can be made again.

#include "server/group/move/move_batch.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/cluster/map_changes.h"

namespace gannet {
namespace {

const std::string& OwnerOf(const SeenMap& map, uint16_t partition) {
  return map.config.groups[map.config.partitions[partition]];
}

// The map's revision at which the partition was closed; 0: it is open.
uint64_t ClosedAt(const SeenMap& map, uint16_t partition) {
  return IsClosed(map.config, partition) ? map.config.changed[partition] : 0;
}

// Whether the partition is to come to the receiver.
bool IsWanted(const MovesSeen& seen, uint16_t partition) {
  const auto wish = seen.wishes.find(partition);
  return wish != seen.wishes.end() && wish->second.to == seen.group && !wish->second.stop &&
         partition < seen.map.config.partitions.size() &&
         OwnerOf(seen.map, partition) != seen.group;
}

}  // namespace

size_t CountWanted(const MovesSeen& seen) {
  size_t count = 0;
  for (const auto& [partition, wish] : seen.wishes) count += IsWanted(seen, partition) ? 1 : 0;
  return count;
}

int64_t NewestWish(const MovesSeen& seen) {
  int64_t newest = 0;
  for (const auto& [partition, wish] : seen.wishes) {
    if (IsWanted(seen, partition)) newest = std::max(newest, wish.mod_revision);
  }
  return newest;
}

std::optional<MoveBatch> NextBatch(const MovesSeen& seen) {
  std::optional<MoveBatch> batch;
  for (const auto& [partition, wish] : seen.wishes) {
    if (!IsWanted(seen, partition) || ClosedAt(seen.map, partition) != 0) continue;
    const std::string& giver = OwnerOf(seen.map, partition);
    if (!batch) batch = {.giver = giver, .partitions = {}};
    if (giver == batch->giver) batch->partitions.push_back(partition);
  }
  return batch;
}

bool Follow(const MovesSeen& seen, MoveBatch* batch) {
  const auto closed_at = [&](uint16_t partition) {
    return OwnerOf(seen.map, partition) == batch->giver ? ClosedAt(seen.map, partition) : 0;
  };
  if (batch->closing && batch->closed_at == 0) {
    const uint64_t first = closed_at(batch->partitions.front());
    const bool together = std::ranges::all_of(
        batch->partitions, [&](uint16_t partition) { return closed_at(partition) == first; });
    if (together) batch->closed_at = first;
  }
  const auto stays = [&](uint16_t partition) {
    if (batch->closed_at != 0) return closed_at(partition) == batch->closed_at;
    return OwnerOf(seen.map, partition) == batch->giver && ClosedAt(seen.map, partition) == 0 &&
           IsWanted(seen, partition);
  };
  std::erase_if(batch->partitions, [&](uint16_t partition) {
    if (stays(partition)) return false;
    batch->moved += OwnerOf(seen.map, partition) == seen.group ? 1 : 0;
    return true;
  });
  return !batch->partitions.empty();
}

std::vector<uint16_t> LeftClosed(const MovesSeen& seen, const MoveBatch* batch) {
  std::vector<uint16_t> left;
  const auto is_closed = [&](uint16_t partition) {
    return batch != nullptr && batch->closed_at != 0 &&
           std::ranges::binary_search(batch->partitions, partition);
  };
  if (batch != nullptr && batch->closed_at != 0) {
    for (const uint16_t partition : batch->partitions) {
      if (!IsWanted(seen, partition)) left.push_back(partition);
    }
  }
  for (const auto& [partition, wish] : seen.wishes) {
    if (!IsWanted(seen, partition) || ClosedAt(seen.map, partition) == 0) continue;
    if (!is_closed(partition)) left.push_back(partition);
  }
  return left;
}

absl::StatusOr<MapTxn> CloseTxn(const MovesSeen& seen, const MoveBatch& batch,
                                uint64_t group_revision) {
  GANNET_ASSIGN_OR_RETURN(ClusterConfig closed,
                          ClosePartitions(seen.map.config, batch.giver, batch.partitions));
  return MapTxn{
      .map_revision = seen.map.mod_revision, .wanted = std::move(closed), .group = group_revision};
}

absl::StatusOr<MapTxn> GiveTxn(const MovesSeen& seen, const MoveBatch& batch,
                               uint64_t group_revision) {
  GANNET_ASSIGN_OR_RETURN(ClusterConfig given, GivePartitions(seen.map.config, seen.group,
                                                              batch.partitions, batch.closed_at));
  return MapTxn{
      .map_revision = seen.map.mod_revision, .wanted = std::move(given), .group = group_revision};
}

absl::StatusOr<MapTxn> ReopenTxn(const MovesSeen& seen, const std::vector<uint16_t>& partitions) {
  GANNET_ASSIGN_OR_RETURN(ClusterConfig opened, ReopenPartitions(seen.map.config, partitions));
  return MapTxn{.map_revision = seen.map.mod_revision, .wanted = std::move(opened)};
}

std::optional<MapTxn> EndTxn(const MovesSeen& seen) {
  std::vector<std::pair<uint16_t, int64_t>> ended;
  std::vector<uint16_t> closed;
  for (const auto& [partition, wish] : seen.wishes) {
    if (wish.to != seen.group || partition >= seen.map.config.partitions.size()) continue;
    const bool is_closed = ClosedAt(seen.map, partition) != 0;
    const bool has = OwnerOf(seen.map, partition) == seen.group && !is_closed;
    if (!wish.stop && !has) continue;
    if (ended.size() == kMovesOfTxnMax) break;
    ended.emplace_back(partition, wish.mod_revision);
    if (is_closed) closed.push_back(partition);
  }
  if (ended.empty()) return std::nullopt;
  ClusterConfig wanted = seen.map.config;
  if (!closed.empty()) {
    auto opened = ReopenPartitions(std::move(wanted), closed);
    if (!opened.ok()) return std::nullopt;
    wanted = *std::move(opened);
  }
  return MapTxn{.map_revision = seen.map.mod_revision,
                .wanted = std::move(wanted),
                .ended = std::move(ended)};
}

}  // namespace gannet
