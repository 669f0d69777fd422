#include "server/move/move_batch.h"

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

MapTxn TxnOf(const MovesSeen& seen, ClusterConfig wanted, const std::vector<uint16_t>& partitions) {
  MapTxn txn = {.map_revision = seen.map.mod_revision, .wanted = std::move(wanted)};
  for (const uint16_t partition : partitions) {
    const auto wish = seen.wishes.find(partition);
    if (wish != seen.wishes.end()) txn.moves.emplace_back(partition, wish->second.mod_revision);
  }
  return txn;
}

}  // namespace

size_t CountWanted(const MovesSeen& seen) {
  size_t count = 0;
  for (const auto& [partition, wish] : seen.wishes) count += IsWanted(seen, partition) ? 1 : 0;
  return count;
}

std::optional<MoveBatch> NextBatch(const MovesSeen& seen) {
  std::optional<MoveBatch> batch;
  for (const bool closed : {true, false}) {
    for (const auto& [partition, wish] : seen.wishes) {
      if (!IsWanted(seen, partition)) continue;
      const std::string& giver = OwnerOf(seen.map, partition);
      const uint64_t closed_at = ClosedAt(seen.map, partition);
      if ((closed_at != 0) != closed) continue;
      if (!batch) batch = {.giver = giver, .partitions = {}, .closed_at = closed_at};
      if (giver != batch->giver || closed_at != batch->closed_at) continue;
      if (batch->partitions.size() < kMovesOfTxnMax) batch->partitions.push_back(partition);
    }
    if (batch) return batch;
  }
  return std::nullopt;
}

bool Follow(const MovesSeen& seen, MoveBatch* batch) {
  const auto closed_at = [&](uint16_t partition) {
    return OwnerOf(seen.map, partition) == batch->giver ? ClosedAt(seen.map, partition) : 0;
  };
  if (!batch->closed()) {
    const uint64_t first = closed_at(batch->partitions.front());
    for (const uint16_t partition : batch->partitions) {
      if (OwnerOf(seen.map, partition) != batch->giver || closed_at(partition) != first) {
        return false;
      }
      if (first == 0 && !IsWanted(seen, partition)) return false;
    }
    batch->closed_at = first;
    return true;
  }
  std::erase_if(batch->partitions, [&](uint16_t partition) {
    if (closed_at(partition) == batch->closed_at) return false;
    batch->moved += OwnerOf(seen.map, partition) == seen.group ? 1 : 0;
    return true;
  });
  return !batch->partitions.empty();
}

std::vector<uint16_t> Unwanted(const MovesSeen& seen, const MoveBatch& batch) {
  std::vector<uint16_t> unwanted;
  if (!batch.closed()) return unwanted;
  for (const uint16_t partition : batch.partitions) {
    if (!IsWanted(seen, partition)) unwanted.push_back(partition);
  }
  return unwanted;
}

absl::StatusOr<MapTxn> CloseTxn(const MovesSeen& seen, const MoveBatch& batch) {
  GANNET_ASSIGN_OR_RETURN(ClusterConfig closed,
                          ClosePartitions(seen.map.config, batch.giver, batch.partitions));
  return TxnOf(seen, std::move(closed), batch.partitions);
}

absl::StatusOr<MapTxn> GiveTxn(const MovesSeen& seen, const MoveBatch& batch,
                               uint64_t group_revision) {
  GANNET_ASSIGN_OR_RETURN(ClusterConfig given, GivePartitions(seen.map.config, seen.group,
                                                              batch.partitions, batch.closed_at));
  MapTxn txn = TxnOf(seen, std::move(given), batch.partitions);
  txn.group = group_revision;
  txn.end_moves = true;
  return txn;
}

absl::StatusOr<MapTxn> ReopenTxn(const MovesSeen& seen, const std::vector<uint16_t>& partitions) {
  GANNET_ASSIGN_OR_RETURN(ClusterConfig opened, ReopenPartitions(seen.map.config, partitions));
  return TxnOf(seen, std::move(opened), {});
}

std::optional<MapTxn> EndTxn(const MovesSeen& seen) {
  std::vector<uint16_t> ended;
  std::vector<uint16_t> closed;
  for (const auto& [partition, wish] : seen.wishes) {
    if (wish.to != seen.group || partition >= seen.map.config.partitions.size()) continue;
    const bool is_closed = ClosedAt(seen.map, partition) != 0;
    const bool has = OwnerOf(seen.map, partition) == seen.group && !is_closed;
    if (!wish.stop && !has) continue;
    if (ended.size() == kMovesOfTxnMax) break;
    ended.push_back(partition);
    if (is_closed) closed.push_back(partition);
  }
  if (ended.empty()) return std::nullopt;
  ClusterConfig wanted = seen.map.config;
  if (!closed.empty()) {
    auto opened = ReopenPartitions(std::move(wanted), closed);
    if (!opened.ok()) return std::nullopt;
    wanted = *std::move(opened);
  }
  MapTxn txn = TxnOf(seen, std::move(wanted), ended);
  txn.end_moves = true;
  return txn;
}

}  // namespace gannet
