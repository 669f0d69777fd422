#ifndef GANNET_SERVER_GROUP_MOVE_MOVE_BATCH_H_
#define GANNET_SERVER_GROUP_MOVE_MOVE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/group/replica/cluster_register.h"
#include "server/group/replica/map_store.h"

namespace gannet {

// What a receiver decides by what it has seen of the register (docs/partitions.md). Pure functions.

struct MovesSeen {
  const SeenMap& map;
  const PartitionMoveWishes& wishes;
  std::string_view group;  // the receiver
};

// Partitions that come to the receiver together: by one stream and one walk, closed by one
// transaction, and given by one.
struct MoveBatch {
  std::string giver;
  std::vector<uint16_t> partitions;  // ascending
  bool closing = false;              // a transaction that closes them was sent
  uint64_t closed_at = 0;            // the map's revision at which they were closed; 0: not yet
  uint64_t moved = 0;                // partitions that were in it, and are the receiver's now
};

// Returns how many partitions are to come to the receiver.
size_t CountWanted(const MovesSeen& seen);

// Returns the mod_revision of the newest wish for a partition that is to come. 0: there is none.
int64_t NewestWish(const MovesSeen& seen);

// Returns all partitions of one giver that are to come and are open. nullopt: there are none.
std::optional<MoveBatch> NextBatch(const MovesSeen& seen);

// Takes over what has become of a batch. If it was to be closed, and all of it is closed by one
// map, that is its close. Partitions go that are given, or that are not open, or closed, as they
// were: what was copied of them says nothing any more. Returns false if nothing is left to do.
bool Follow(const MovesSeen& seen, MoveBatch* batch);

// Returns closed partitions that are to be opened again: those of the batch that nobody wants to
// come any more, and those that an earlier batch, or an earlier primary, has left. The receiver has
// no whole copy of these, and they are served while it makes one. `batch` may be null.
std::vector<uint16_t> LeftClosed(const MovesSeen& seen, const MoveBatch* batch);

// Steps 3 and 5 and rule 10. `group_revision` is the register's, of the receiver's group. The
// errors are those of map_changes.h, of a map that was not looked at before.
absl::StatusOr<MapTxn> CloseTxn(const MovesSeen& seen, const MoveBatch& batch,
                                uint64_t group_revision);
absl::StatusOr<MapTxn> GiveTxn(const MovesSeen& seen, const MoveBatch& batch,
                               uint64_t group_revision);
absl::StatusOr<MapTxn> ReopenTxn(const MovesSeen& seen, const std::vector<uint16_t>& partitions);
// Ends wishes: those that an operator wants to stop, whose partitions it opens, and those for what
// the receiver has. nullopt: there are none.
std::optional<MapTxn> EndTxn(const MovesSeen& seen);

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_MOVE_BATCH_H_
