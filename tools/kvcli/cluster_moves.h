#ifndef GANNET_TOOLS_KVCLI_CLUSTER_MOVES_H_
#define GANNET_TOOLS_KVCLI_CLUSTER_MOVES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster_config.h"
#include "common/cluster/move_plan.h"
#include "tools/kvcli/cluster_state.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {

// What operators make of the partitions of a cluster (docs/partitions.md). Pure: no I/O. The
// errors' texts say what to do.

// What a cluster becomes with a group more.
struct AddedGroup {
  ClusterConfig map;
  GroupConfig group;
};
// `group`: of its terms, members and history; nobody has served it. AlreadyExists: there is such a
// group, or a member of it is one of another group. Others as KnowMoves and Check.
absl::StatusOr<AddedGroup> WithGroup(const ClusterState& state, const std::string& name,
                                     GroupConfig group);
// Returns the map without the group. FailedPrecondition: it has partitions, or some move.
absl::StatusOr<ClusterConfig> WithoutGroup(const ClusterState& state, const std::string& name);

// Returns FailedPrecondition if a member is of a version that does not know of moves: it would go
// on serving what is not its group's any more.
absl::Status KnowMoves(const ClusterState& state);

// Returns which group has which partition once all moves that are under way have ended.
ClusterConfig MapAfterMoves(const ClusterState& state);

// Return moves that are not asked for yet: of these partitions, to make groups even, or to leave a
// group without partitions. `bytes`: of each partition. FailedPrecondition: a group that would get
// some has no primary, a member knows of no moves, or other moves are in the way.
absl::StatusOr<std::vector<PartitionMove>> PlanOfMove(const ClusterState& state,
                                                      std::span<const uint16_t> partitions,
                                                      const std::string& to);
absl::StatusOr<std::vector<PartitionMove>> PlanOfBalance(const ClusterState& state,
                                                         std::span<const uint64_t> bytes);
absl::StatusOr<std::vector<PartitionMove>> PlanOfDrain(const ClusterState& state,
                                                       const std::string& group,
                                                       std::span<const uint64_t> bytes);

// A plan, and what each group has afterwards. `bytes`: of each partition; empty: not known.
std::string PlanText(const ClusterState& state, std::span<const PartitionMove> plan,
                     std::span<const uint64_t> bytes);
Json PlanJson(const ClusterState& state, std::span<const PartitionMove> plan,
              std::span<const uint64_t> bytes);

// Returns OK if the group may be drained: no partition is to move to it, and it is not to keep one.
absl::Status MayDrain(const ClusterState& state, const std::string& group);
// Returns OK if the group has no partition, and none is to move to it: others may have moved some
// to it while it was drained.
absl::Status IsDrained(const ClusterState& state, const std::string& group);

// The moves that are under way.
std::string MovesText(const ClusterState& state);
Json MovesJson(const ClusterState& state);

// "1.5 GiB".
std::string BytesText(uint64_t bytes);

// How far moves are. Times are those of any clock, in ms.
class PlanProgress {
 public:
  // `wanted`: the group that each partition is to have. `bytes` as above.
  PlanProgress(std::map<uint16_t, std::string> wanted, std::span<const uint64_t> bytes,
               int64_t now_ms);

  void Take(const ClusterState& state, int64_t now_ms);
  bool done() const { return left_ == 0; }
  // Partitions whose move has ended without them having that group.
  const std::vector<uint16_t>& given_up() const { return given_up_; }
  size_t moved() const { return wanted_.size() - left_ - given_up_.size(); }
  // "12 of 100 partitions have moved, 0.3 of 1.0 GiB, about 14 s left". Without an end.
  std::string Text(int64_t now_ms) const;
  // For how long nothing has changed.
  int64_t StillMs(int64_t now_ms) const { return now_ms - changed_ms_; }

 private:
  const std::map<uint16_t, std::string> wanted_;
  std::vector<uint64_t> bytes_;
  const int64_t begun_ms_;
  int64_t changed_ms_;
  size_t left_;
  size_t closed_ = 0;
  size_t left_at_first_ = 0;
  uint64_t left_bytes_ = 0;
  uint64_t left_bytes_at_first_ = 0;
  bool taken_ = false;
  std::vector<uint16_t> given_up_;
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CLUSTER_MOVES_H_
