// GroupWorld: partitions that move between groups.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/map_changes.h"
#include "tests/simulation/group_world.h"

namespace gannet::simulation {
namespace {

// Long enough for a receiver that begins again after its longest pause, and for the giver's leases.
constexpr int64_t kMovedNsMax = 20 * kNsPerSecond;
constexpr int64_t kCleanNsMax = 20 * kNsPerSecond;
constexpr int64_t kReadNsMax = 8 * kNsPerSecond;

}  // namespace

// An operator wishes that some partitions move: all to one group, or each to the other one.
void GroupWorld::WishMoves() {
  const auto to = static_cast<uint32_t>(run_->Below(3));  // 2: to the other one
  for (const uint16_t partition : scenario_.partitions) {
    if (run_->OneIn(3)) continue;
    const uint32_t owner = register_.map().partitions[partition];
    register_.WishMove(partition, to == 2 ? 1 - owner : to);
  }
}

// No two servers of different groups serve a partition at once, by leases that clients believe.
void GroupWorld::WatchOwners() {
  bool changed = false;
  for (const auto& server : servers_) {
    const bool serves = server->up() && server->HasLease();
    const uint64_t by =
        serves ? server->self().incarnation ^ (server->partitions().revision() + 1) : 0;
    changed |= std::exchange(served_by_[server->node()], by) != by;
  }
  if (!changed) return;
  for (const std::string& key : AllKeys()) {
    std::optional<uint32_t> owner;
    for (const auto& server : servers_) {
      if (served_by_[server->node()] == 0 || !server->partitions().Serves(key)) continue;
      if (owner && *owner != server->group()) {
        run_->Fail(Check::kOneOwner, absl::StrCat("'", key, "' is served by both groups"));
      }
      owner = server->group();
    }
  }
}

bool GroupWorld::Moved() const {
  return register_.wishes().empty() && register_.map().closed.empty();
}

// Waits until what an operator wanted is done or given up, and the givers have deleted what moved.
void GroupWorld::AwaitMoves() {
  pace_.StepUntil(run_->now_ns() + kMovedNsMax, [this] { return Moved(); });
  if (!over() && !Moved()) {
    std::string why;
    for (const auto& server : servers_) {
      const auto moves = server->up() ? server->member().Look().moves : std::nullopt;
      if (moves)
        absl::StrAppend(&why, ", node ", server->node(), " ", moves->step, ": ", moves->trouble);
    }
    run_->Fail(Check::kMoves,
               absl::StrCat(register_.wishes().size(), " partitions are still to move, ",
                            register_.map().closed.size(), " are closed", why));
  }
  pace_.StepUntil(run_->now_ns() + kCleanNsMax, [this] { return Clean(); });
}

bool GroupWorld::Clean() const {
  for (const std::string& key : AllKeys()) {
    const uint32_t owner = register_.map().partitions[PartitionOf(key)];
    for (const auto& server : servers_) {
      if (server->group() == owner || !server->up()) continue;
      const ReadOutcome read = server->store().Get(key, {}, run_->wall_ms());
      if (read.status != ReplyStatus::kNotFound) return false;
    }
  }
  return true;
}

// Each key is in the group that has its partition, and nowhere else.
void GroupWorld::CheckPlaces() {
  if (!over() && !Clean()) {
    run_->Fail(Check::kOnePlace, "a group has items of partitions that it does not have");
  }
}

uint64_t GroupWorld::ReadsOfAll(Guest* guest) {
  const uint64_t before = guest->client->reads();
  run_->OnNode(guest->node);
  guest->client->ReadAll();
  pace_.StepUntil(run_->now_ns() + kReadNsMax, [this] { return AllIdle(); });
  return guest->client->reads() - before;
}

// A partition moves that has none of the clients' keys. What clients remember of the others still
// holds, so their GETs need no more READs than before. The faults may tear READs.
void GroupWorld::CheckPlacesKept() {
  const auto guest = std::ranges::find_if(
      guests_, [](const Guest& each) { return each.client->remembers_places(); });
  if (over() || guest == guests_.end() || !scenario_.faults.empty()) return;
  ReadsOfAll(&*guest);
  const uint64_t before = ReadsOfAll(&*guest);
  uint16_t partition = 0;
  while (std::ranges::find(scenario_.partitions, partition) != scenario_.partitions.end()) {
    ++partition;
  }
  register_.WishMove(partition, 1 - register_.map().partitions[partition]);
  AwaitMoves();
  const uint64_t reads = ReadsOfAll(&*guest);
  if (!over() && reads > before) {
    run_->Fail(Check::kPlacesKept, absl::StrCat("GETs that took ", before, " READs take ", reads));
  }
}

}  // namespace gannet::simulation
