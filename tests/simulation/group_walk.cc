// GroupWorld: a walk of many steps, in which whatever an operator or fate may do comes next.

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/versions.h"
#include "tests/simulation/group_world.h"

namespace gannet::simulation {
namespace {

// Steps until the histories are checked.
constexpr uint32_t kPieceStepsMin = 20;
constexpr uint32_t kPieceStepsMax = 60;
constexpr int64_t kStepNsMin = 2 * kNsPerMs;
constexpr int64_t kStepNsMax = 600 * kNsPerMs;
constexpr int64_t kForeverNs = 1'000 * kNsPerSecond;
constexpr size_t kWaitingMax = 4;
// For how long processes of a group that is gone still answer.
constexpr int64_t kGraceNsMax = 4 * kNsPerSecond;
constexpr int64_t kUpgradeNsMax = 1 * kNsPerSecond;
constexpr int64_t kAgainNs = 100 * kNsPerMs;
constexpr int64_t kDeleteNsMax = 8 * kNsPerSecond;

}  // namespace

void GroupWorld::Walk() {
  while (happened_.steps < scenario_.steps && !over()) {
    const uint32_t most = scenario_.steps - static_cast<uint32_t>(happened_.steps);
    const auto piece =
        kPieceStepsMin + static_cast<uint32_t>(run_->Below(kPieceStepsMax - kPieceStepsMin + 1));
    piece_end_ = static_cast<uint32_t>(happened_.steps) + std::min(piece, most);
    pace_.StepUntil(run_->now_ns() + kForeverNs, [this] { return happened_.steps == piece_end_; });
    Settle();
    CheckAtTheEnd();
    ++happened_.pieces;
    if (!over() && happened_.steps < scenario_.steps) BeginPiece();
  }
}

// Also while somebody is stopped within a call.
void GroupWorld::TakeSteps() {
  if (happened_.steps == piece_end_ || run_->now_ns() < next_step_ns_) return;
  ++happened_.steps;
  next_step_ns_ = run_->now_ns() + run_->LogUniform(kStepNsMin, kStepNsMax);
  TakeStep();
}

void GroupWorld::TakeStep() {
  switch (run_->Below(20)) {
    case 0:
    case 1:
    case 2:
      return ChangeGroups();
    case 3:
    case 4:
    case 5:
      return WishMoves();
    case 6:
      return register_.StopMoves();
    case 7:
    case 8:
      return Upgrade();
    case 9:
      return ReplaceClient();
    default:
      break;
  }
  const auto& terms = scenario_.groups[run_->Below(scenario_.groups.size())];
  const GroupEvent event = GroupEvent::AnyFault(run_, int64_t{terms.lease_ms} * kNsPerMs);
  if (run_->OneIn(2) && waiting_events_.size() < kWaitingMax) {
    return waiting_events_.push_back(event);  // until a partition is closed
  }
  Happen(event);
}

// The third group comes, or is drained, or goes once it has nothing any more.
void GroupWorld::ChangeGroups() {
  const auto group = static_cast<uint32_t>(scenario_.groups.size() - 1);
  if (!register_.Has(group)) return BeginGroup(group);
  drains_ = true;
  for (const uint16_t partition : scenario_.partitions) {
    if (register_.OwnerOf(partition) != group) continue;
    register_.WishMove(partition, static_cast<uint32_t>(run_->Below(group)));
  }
  if (!register_.RemoveGroup(group)) return;
  drains_ = false;
  ++happened_.groups_went;
  EndProcessesSoon(group);
}

// With other items, and members of any version.
void GroupWorld::BeginGroup(uint32_t group) {
  if (!EndProcesses(group)) return;
  GroupTerms terms = scenario_.groups[group];
  terms.history = 1 + run_->Below(1'000'000);
  register_.AddGroup(group, terms);
  ++happened_.groups_came;
  for (const auto& server : servers_) {
    if (server->group() != group) continue;
    server->SetTerms(terms);
    server->SetStreamVersion(run_->OneIn(3) ? kStreamVersions.max : kStreamVersions.min);
    server->StartNow();
  }
}

// Ends what still runs of a group that is gone. Returns false if somebody is stopped within a call.
bool GroupWorld::EndProcesses(uint32_t group) {
  for (const auto& server : servers_) {
    if (server->group() != group || !server->up()) continue;
    if (standing_[server->node()].within) return false;
    standing_[server->node()] = {};
    server->Kill(0);
  }
  return true;
}

void GroupWorld::EndProcessesSoon(uint32_t group) {
  Later(run_->now_ns() + static_cast<int64_t>(run_->Below(kGraceNsMax)), [this, group] {
    if (register_.Has(group) || EndProcesses(group)) return;
    Later(run_->now_ns() + kAgainNs, [this, group] { EndProcessesSoon(group); });
  });
}

// A member is started again, as one of the newest version. Half of them hand over first.
void GroupWorld::Upgrade() {
  const auto node = static_cast<uint32_t>(run_->Below(servers_.size()));
  GroupServer& server = *servers_[node];
  if (!server.up()) return;
  const bool hands_over = run_->OneIn(2);
  if (hands_over) {
    run_->OnNode(node);
    server.StepDown();
  }
  Later(
      run_->now_ns() + (hands_over ? static_cast<int64_t>(run_->Below(kUpgradeNsMax)) : int64_t{0}),
      [this, node] {
        if (!Kill(node)) return;
        servers_[node]->SetStreamVersion(kStreamVersions.max);
        ++happened_.upgrades;
      });
}

void GroupWorld::ReplaceClient() {
  Guest& guest = guests_[run_->Below(guests_.size())];
  if (!Stands(guest.node)) MakeGuest(&guest);
}

// REQUIRES: nothing is under way.
void GroupWorld::BeginPiece() {
  if (!DeleteTallies()) return;
  std::vector<uint32_t> ids;
  for (uint32_t key = 0; key < kKeysMax; ++key) ids.push_back(WriteThere(KeyName(key)));
  history_.BeginPiece(ids);
  faulty_ = acting_ = true;
  patient_ = false;
  register_.SetLossy(true);
  health_.SetBreaking(true, run_->now_ns());
  next_step_ns_ = run_->now_ns();
}

// Returns the write whose item the key has; 0: it has none.
uint32_t GroupWorld::WriteThere(const std::string& key) {
  const uint32_t owner = register_.OwnerOf(static_cast<uint16_t>(PartitionOf(key)));
  const std::optional<uint32_t> primary = Primary(owner);
  const ReadOutcome read =
      primary ? servers_[*primary]->store().Get(key, {}, run_->Time()) : ReadOutcome{};
  return read.status == ReplyStatus::kNotFound ? 0 : read.attributes.flags;
}

// Each piece counts anew: what was appended has to fit a client's buffer.
bool GroupWorld::DeleteTallies() {
  Guest& guest = guests_.front();
  for (const std::string_view key : {Tallies::kCounterKey, Tallies::kValueKey}) {
    run_->OnNode(guest.node);
    guest.client->DeleteTally(key);
    pace_.StepUntil(run_->now_ns() + kDeleteNsMax, [this] { return AllIdle(); });
    if (over()) return false;
    const uint32_t owner = register_.OwnerOf(static_cast<uint16_t>(PartitionOf(key)));
    const std::optional<uint32_t> primary = Primary(owner);
    if (primary &&
        servers_[*primary]->store().Get(key, {}, run_->Time()).status == ReplyStatus::kNotFound) {
      continue;
    }
    run_->Fail(Check::kPatience, absl::StrCat("'", std::string(key), "' cannot be deleted"));
    return false;
  }
  history_.tallies().BeginAnew();
  return true;
}

}  // namespace gannet::simulation
