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

uint64_t MoveBatch::closed_at() const {
  uint64_t last = 0;
  for (const Slice& slice : slices) last = std::max(last, slice.closed_at);
  return last;
}

bool MoveBatch::IsClosed(uint16_t partition) const {
  return std::ranges::any_of(slices, [&](const Slice& slice) {
    return slice.closed_at != 0 && std::ranges::binary_search(slice.partitions, partition);
  });
}

bool NextSlice(MoveBatch* batch) {
  std::vector<MoveBatch::Slice>& slices = batch->slices;
  if (!slices.empty() && slices.back().closed_at == 0) slices.pop_back();
  MoveBatch::Slice next;
  for (const uint16_t partition : batch->partitions) {
    if (next.partitions.size() == kMovesOfTxnMax) break;
    if (!batch->IsClosed(partition)) next.partitions.push_back(partition);
  }
  if (next.partitions.empty()) return false;
  slices.push_back(std::move(next));
  return true;
}

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
    if (!batch) batch = {.giver = giver, .partitions = {}, .slices = {}};
    if (giver == batch->giver) batch->partitions.push_back(partition);
  }
  return batch;
}

bool Follow(const MovesSeen& seen, MoveBatch* batch) {
  const auto closed_at = [&](uint16_t partition) {
    return OwnerOf(seen.map, partition) == batch->giver ? ClosedAt(seen.map, partition) : 0;
  };
  std::vector<MoveBatch::Slice>& slices = batch->slices;
  if (!slices.empty() && slices.back().closed_at == 0) {
    const std::vector<uint16_t>& closing = slices.back().partitions;
    const uint64_t first = closed_at(closing.front());
    const bool together = std::ranges::all_of(
        closing, [&](uint16_t partition) { return closed_at(partition) == first; });
    if (together) slices.back().closed_at = first;
  }
  const auto stays = [&](uint16_t partition) {
    for (const MoveBatch::Slice& slice : slices) {
      if (slice.closed_at != 0 && std::ranges::binary_search(slice.partitions, partition)) {
        return closed_at(partition) == slice.closed_at;
      }
    }
    return OwnerOf(seen.map, partition) == batch->giver && ClosedAt(seen.map, partition) == 0 &&
           IsWanted(seen, partition);
  };
  std::erase_if(batch->partitions, [&](uint16_t partition) {
    if (stays(partition)) return false;
    batch->moved += OwnerOf(seen.map, partition) == seen.group ? 1 : 0;
    return true;
  });
  for (MoveBatch::Slice& slice : slices) {
    std::erase_if(slice.partitions, [&](uint16_t partition) {
      return !std::ranges::binary_search(batch->partitions, partition);
    });
  }
  std::erase_if(slices, [](const MoveBatch::Slice& slice) { return slice.partitions.empty(); });
  return !batch->partitions.empty();
}

std::vector<uint16_t> LeftClosed(const MovesSeen& seen, const MoveBatch* batch) {
  std::vector<uint16_t> left;
  const auto is_closing = [&](uint16_t partition) {
    return batch != nullptr && batch->IsClosed(partition);
  };
  if (batch != nullptr) {
    for (const uint16_t partition : batch->partitions) {
      if (is_closing(partition) && !IsWanted(seen, partition)) left.push_back(partition);
    }
  }
  for (const auto& [partition, wish] : seen.wishes) {
    if (!IsWanted(seen, partition) || ClosedAt(seen.map, partition) == 0) continue;
    if (!is_closing(partition)) left.push_back(partition);
  }
  return left;
}

absl::StatusOr<MapTxn> CloseTxn(const MovesSeen& seen, const MoveBatch& batch,
                                uint64_t group_revision) {
  const std::vector<uint16_t>& closing = batch.slices.back().partitions;
  GANNET_ASSIGN_OR_RETURN(ClusterConfig closed,
                          ClosePartitions(seen.map.config, batch.giver, closing));
  MapTxn txn = TxnOf(seen, std::move(closed), closing);
  txn.group = group_revision;
  return txn;
}

absl::StatusOr<MapTxn> GiveTxn(const MovesSeen& seen, const MoveBatch& batch,
                               uint64_t group_revision) {
  const MoveBatch::Slice& slice = batch.slices.front();
  GANNET_ASSIGN_OR_RETURN(ClusterConfig given, GivePartitions(seen.map.config, seen.group,
                                                              slice.partitions, slice.closed_at));
  MapTxn txn = TxnOf(seen, std::move(given), slice.partitions);
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
