#include "common/cluster/move_plan.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/map_changes.h"

namespace gannet {
namespace {

// What each group has, as far as the plan goes.
class Loads {
 public:
  Loads(const ClusterConfig& map, std::span<const uint64_t> bytes) : of_(map.groups.size()) {
    GANNET_CHECK(bytes.size() == kPartitions, "another number of partitions");
    for (uint32_t p = 0; p < kPartitions; ++p) {
      weights_.push_back(bytes[p] + 1);
      of_[map.partitions[p]] += weights_[p];
      total_ += weights_[p];
    }
  }

  uint64_t of(size_t group) const { return of_[group]; }
  uint64_t weight(uint16_t partition) const { return weights_[partition]; }
  uint64_t mean() const { return total_ / of_.size(); }
  uint16_t Most() const {
    return static_cast<uint16_t>(std::max_element(of_.begin(), of_.end()) - of_.begin());
  }
  // The group that has least, but for `except`.
  uint16_t Least(std::optional<uint16_t> except = std::nullopt) const {
    std::optional<uint16_t> least;
    for (uint16_t group = 0; group < of_.size(); ++group) {
      if (group != except && (!least || of_[group] < of_[*least])) least = group;
    }
    return *least;
  }
  bool Even() const {
    const uint64_t slack = mean() / kEvenWithin;
    return std::ranges::all_of(
        of_, [&](uint64_t it) { return it + slack >= mean() && it <= mean() + slack; });
  }
  void Move(const PartitionMove& move) {
    of_[move.from] -= weights_[move.partition];
    of_[move.to] += weights_[move.partition];
  }

 private:
  std::vector<uint64_t> weights_;  // of partitions
  std::vector<uint64_t> of_;       // groups
  uint64_t total_ = 0;
};

// Returns the partition to move between these groups, or nullopt if none helps. `at_home`: those
// that may still move.
std::optional<uint16_t> Choose(const Loads& loads, const std::vector<uint16_t>& at_home,
                               uint16_t from, uint16_t to) {
  const uint64_t excess = loads.of(from) > loads.mean() ? loads.of(from) - loads.mean() : 0;
  const uint64_t missing = loads.of(to) < loads.mean() ? loads.mean() - loads.of(to) : 0;
  const uint64_t slack = loads.mean() / kEvenWithin;
  const uint64_t most = std::min(excess, missing) + slack / 2;
  const uint64_t difference = loads.of(from) - loads.of(to);
  std::optional<uint16_t> best;
  for (const uint16_t partition : at_home) {
    const uint64_t weight = loads.weight(partition);
    if (weight > most || weight >= difference) continue;
    if (!best || weight > loads.weight(*best)) best = partition;
  }
  return best;
}

}  // namespace

std::vector<PartitionMove> PlanBalance(const ClusterConfig& map, std::span<const uint64_t> bytes) {
  Loads loads(map, bytes);
  std::vector<std::vector<uint16_t>> at_home(map.groups.size());
  for (uint16_t p = 0; p < kPartitions; ++p) {
    if (!IsClosed(map, p)) at_home[map.partitions[p]].push_back(p);
  }
  std::vector<PartitionMove> moves;
  while (!loads.Even()) {
    const uint16_t from = loads.Most();
    const uint16_t to = loads.Least();
    const std::optional<uint16_t> partition = Choose(loads, at_home[from], from, to);
    if (!partition) break;
    moves.push_back({.partition = *partition, .from = from, .to = to});
    loads.Move(moves.back());
    std::erase(at_home[from], *partition);
  }
  return moves;
}

absl::StatusOr<std::vector<PartitionMove>> PlanDrain(const ClusterConfig& map,
                                                     std::string_view group,
                                                     std::span<const uint64_t> bytes) {
  const auto found = std::ranges::find(map.groups, group);
  if (found == map.groups.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cluster has no group ", std::string(group)));
  }
  if (map.groups.size() == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("group ", std::string(group), " is the only one of the cluster"));
  }
  const auto from = static_cast<uint16_t>(found - map.groups.begin());
  Loads loads(map, bytes);
  std::vector<uint16_t> all;
  for (uint16_t p = 0; p < kPartitions; ++p) {
    if (map.partitions[p] != from) continue;
    if (IsClosed(map, p)) {
      return absl::FailedPreconditionError(
          absl::StrCat("partition ", p, " is closed: it moves already"));
    }
    all.push_back(p);
  }
  std::ranges::stable_sort(all, std::ranges::greater{},
                           [&](uint16_t partition) { return loads.weight(partition); });
  std::vector<PartitionMove> moves;
  for (const uint16_t partition : all) {
    moves.push_back({.partition = partition, .from = from, .to = loads.Least(from)});
    loads.Move(moves.back());
  }
  return moves;
}

}  // namespace gannet
