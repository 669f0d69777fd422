// GroupWorld: partitions that move between groups.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/map_changes.h"
#include "tests/simulation/group_world.h"

namespace gannet::simulation {
namespace {

// Long enough for a receiver that begins again after its longest pause, and for the giver's leases.
// A try makes several connections. If a fifth of all are refused, six tries were seen to fail.
constexpr int64_t kMovedNsMax = 60 * kNsPerSecond;
constexpr int64_t kCleanNsMax = 20 * kNsPerSecond;
constexpr int64_t kReadNsMax = 8 * kNsPerSecond;

// Returns a key of clients that is in the partition. REQUIRES: there is one.
std::string KeyIn(uint16_t partition) {
  const std::vector<std::string> keys = AllKeys();
  return *std::ranges::find_if(
      keys, [partition](const std::string& key) { return PartitionOf(key) == partition; });
}

}  // namespace

// kvcli asks it of nobody else, and a group that is to go gets no more.
bool GroupWorld::MayReceive(uint32_t group) const {
  return register_.Has(group) && register_.now(group).epoch > 0 &&
         !(drains_ && group == scenario_.groups.size() - 1);
}

// An operator wishes that some partitions move: all to one group, or each to another one.
void GroupWorld::WishMoves() {
  std::vector<uint32_t> to;
  for (uint32_t group = 0; group < scenario_.groups.size(); ++group) {
    if (MayReceive(group)) to.push_back(group);
  }
  if (to.empty()) return;
  const uint64_t one = run_->Below(to.size() + 1);
  for (const uint16_t partition : scenario_.partitions) {
    if (run_->OneIn(3)) continue;
    uint32_t group = to[run_->Below(to.size())];
    if (one < to.size()) group = to[one];
    register_.WishMove(partition, group);
  }
}

// Only one group at a time serves a partition, under its lease, or is believed by a client that
// READs its memory. Of a group only that server is believed that has the lease.
void GroupWorld::WatchOwners(std::span<const uint64_t> leader) {
  std::array<uint32_t, GroupScenario::kNodesMax> owned{};  // by group: bits of partitions
  for (const auto& server : servers_) {
    const uint64_t process = server->up() ? server->self().incarnation : 0;
    const bool leads = process != 0 && leader[server->group()] == process;
    Serving& serving = serving_[server->node()];
    const uint64_t map = leads ? server->partitions().revision() + 1 : 0;
    if (serving.map != map || serving.process != process) {
      serving = {.process = process, .map = map};
      if (leads) group_of_process_[process] = server->group();
      for (size_t i = 0; leads && i < scenario_.partitions.size(); ++i) {
        serving.partitions |= uint32_t{server->partitions().Serves(KeyIn(scenario_.partitions[i]))}
                              << i;
      }
    }
    owned[server->group()] |= serving.partitions;
  }
  for (const Guest& guest : guests_) {
    if (guest.client == nullptr) continue;  // it ends, and time passes meanwhile
    for (size_t i = 0; i < scenario_.partitions.size(); ++i) {
      const std::optional<uint64_t> process = guest.client->Believes(scenario_.partitions[i]);
      if (!process) continue;
      const auto group = group_of_process_.find(*process);
      if (group == group_of_process_.end()) continue;
      owned[group->second] |= uint32_t{1} << i;
      const uint64_t now = leader[group->second];
      if (now == 0 || now == *process) continue;
      run_->Fail(Check::kOneLease,
                 absl::StrCat("client ", guest.client->number(),
                              " believes a server, and another one has the lease"));
    }
  }
  for (uint32_t group = 1; group < scenario_.groups.size(); ++group) {
    for (uint32_t other = 0; other < group; ++other) {
      if ((owned[group] & owned[other]) == 0) continue;
      run_->Fail(Check::kOneOwner, absl::StrCat("groups ", other, " and ", group,
                                                " both serve a partition, or are believed"));
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
    for (const auto& [partition, wish] : register_.wishes()) {
      absl::StrAppend(&why, ", ", partition, " of group ", register_.OwnerOf(partition), " to ",
                      wish.to, wish.stop ? ", not any more" : "");
    }
    run_->Fail(Check::kMoves,
               absl::StrCat(register_.wishes().size(), " partitions are still to move, ",
                            register_.map().closed.size(), " are closed", why));
  }
  pace_.StepUntil(run_->now_ns() + kCleanNsMax, [this] { return Clean(); });
}

bool GroupWorld::Clean() const {
  for (const std::string& key : AllKeys()) {
    const uint32_t owner = register_.OwnerOf(static_cast<uint16_t>(PartitionOf(key)));
    for (const auto& server : servers_) {
      if (server->group() == owner || !server->up()) continue;
      const ReadOutcome read = server->store().Get(key, {}, Late());
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
  if (scenario_.ttl_percent > 0) return;  // of an item that expires the server is asked
  if (scenario_.leases()) return;         // what is copied needs no READ before
  ReadsOfAll(&*guest);
  const uint64_t before = ReadsOfAll(&*guest);
  uint16_t partition = 0;
  while (std::ranges::find(scenario_.partitions, partition) != scenario_.partitions.end()) {
    ++partition;
  }
  register_.WishMove(partition, 1 - register_.OwnerOf(partition));
  AwaitMoves();
  const uint64_t reads = ReadsOfAll(&*guest);
  if (!over() && reads > before) {
    run_->Fail(Check::kPlacesKept, absl::StrCat("GETs that took ", before, " READs take ", reads));
  }
}

}  // namespace gannet::simulation
