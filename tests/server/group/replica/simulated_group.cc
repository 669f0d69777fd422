#include "tests/server/group/replica/simulated_group.h"

#include <algorithm>
#include <memory>

#include "tests/server/group/replica/simulated_member.h"

namespace gannet {
namespace {

constexpr int64_t kCalmMs = 14'000;  // from then on nothing goes wrong
// A transaction may be executed 4 s late. Of 1,500 seeds, none took longer than that.
constexpr int64_t kBackMsMax = 8'000;

}  // namespace

SimulatedGroup::SimulatedGroup(uint64_t seed) : world_(seed) {
  for (int64_t& rate : world_.rates) rate = static_cast<int64_t>(world_.time.Below(3)) - 1;
  for (size_t node = 0; node < SimulatedWorld::kNodes; ++node) {
    world_.members.push_back(std::make_unique<SimulatedMember>(&world_, node));
  }
  SimulatedMember& first = *world_.members[0];
  world_.shared.now = {
      .revision = 1,
      .configuration = {.epoch = 1, .primary = first.self(), .in_sync = {first.self()}}};
  first.Found(world_.shared.now);
}

std::string SimulatedGroup::Run() {
  size_t committed = 0;
  GroupRegister before = world_.shared.now;
  while (world_.wrong.empty() && world_.time.now() < 26'000 * SimulatedTime::kMs) {
    if (before.revision != world_.shared.now.revision) before = world_.shared.now;
    world_.time.Step();
    if (world_.time.now() >= kCalmMs * SimulatedTime::kMs && !world_.time.calm()) {
      world_.time.CalmDown();
      world_.cut = {};
      world_.shared.away = false;
    }
    Faults();
    // New ones may come.
    for (size_t i = 0; i < world_.members.size(); ++i) world_.members[i]->Turn();
    Check();
    if (!SomebodyLives(nullptr)) {
      OnLost(before.configuration);
      return world_.wrong;
    }
    if (world_.time.now() < 25'000 * SimulatedTime::kMs) committed = world_.committed.size();
    if (world_.time.calm()) CheckProgress();
  }
  if (world_.wrong.empty()) world_.wrong = WhoIsMissing();
  if (world_.committed.size() == committed)
    world_.Wrong("nothing was committed in the last second");
  world_.tallies.committed = world_.committed.size();
  return world_.wrong;
}

void SimulatedGroup::Faults() {
  SimulatedTime& time = world_.time;
  if (time.calm() || time.now() < 1'000 * SimulatedTime::kMs) return;
  for (auto& from : world_.cut) {
    for (bool& cut : from) {
      if (time.OneIn(cut ? 150 : 4'000)) cut = !cut;
    }
  }
  if (time.OneIn(world_.shared.away ? 300 : 2'000)) world_.shared.away = !world_.shared.away;
  for (const auto& member : world_.members) {
    if (!member->alive() || !time.OneIn(1'500)) continue;
    member->StopUntil(time.now() + time.BelowMs(time.OneIn(3) ? 3'000 : 400));
  }
  if (time.OneIn(1'200)) MaybeCrash();
  if (!time.OneIn(1'500)) return;
  // One is told to stop, or several at once.
  for (const auto& member : world_.members) {
    if (member->alive() && time.OneIn(2)) member->AskToStop();
  }
}

void SimulatedGroup::MaybeCrash() {
  SimulatedMember& member = *world_.members[world_.time.Below(world_.members.size())];
  // Who leaves may be out by the next moment.
  const bool others_stay = std::ranges::any_of(world_.members, [&](const auto& it) {
    return it.get() != &member && it->alive() && !it->leaving() &&
           world_.shared.now.configuration.IsInSync(it->self());
  });
  if (!member.alive() || !others_stay) return;
  ++world_.tallies.crashes;
  member.End();
}

bool SimulatedGroup::SomebodyLives(const GroupConfiguration& now,
                                   const SimulatedMember* except) const {
  return std::ranges::any_of(world_.members, [&](const auto& member) {
    return member.get() != except && member->alive() && now.IsInSync(member->self());
  });
}

// Crashes leave one in sync alive. But who crashed may have sent a transaction that takes that one
// out, as a primary that removes it, or a backup that takes over. If it is executed afterwards, the
// register names only the dead.
void SimulatedGroup::OnLost(const GroupConfiguration& before) {
  ++world_.tallies.lost_groups;
  const GroupConfiguration& now = world_.shared.now.configuration;
  if (now == before || !SomebodyLives(before, nullptr)) {
    return world_.Wrong("the last copy is lost");
  }
  ++world_.tallies.late_transactions;
}

SimulatedMember* SimulatedGroup::RegistersPrimary() {
  for (const auto& member : world_.members) {
    if (member->self() == world_.shared.now.configuration.primary) return member.get();
  }
  return nullptr;
}

void SimulatedGroup::Check() {
  for (const auto& member : world_.members) {
    if (member->alive() && member->primary()) CheckPrimary(member.get());
  }
}

void SimulatedGroup::CheckPrimary(SimulatedMember* member) {
  SimulatedPrimary& primary = *member->primary();
  const GroupConfiguration& now = world_.shared.now.configuration;
  if (primary.LeaseIsValid() && primary.MayCommit()) {
    if (now.primary != member->self()) {
      world_.Wrong("a lease is valid although somebody else is primary");
    }
    for (const auto& other : world_.members) {
      if (other->alive() && now.IsInSync(other->self()) && other->HasFenced()) {
        world_.Wrong("the primary's lease is valid although a backup in sync has fenced it");
      }
    }
  }
  if (!primary.Serves()) return;
  for (const auto& other : world_.members) {
    if (other.get() != member && other->alive() && other->primary() &&
        other->primary()->believed_until() > world_.time.now()) {
      world_.Wrong("clients believe two primaries");
    }
  }
}

std::string SimulatedGroup::WhoIsMissing() {
  SimulatedMember* const member = RegistersPrimary();
  if (!member || !member->alive() || !member->primary() || !member->primary()->Serves()) {
    return "nobody serves in the end";
  }
  if (world_.shared.now.configuration.in_sync.size() != SimulatedWorld::kNodes) {
    return "not all are in sync in the end";
  }
  return "";
}

void SimulatedGroup::CheckProgress() {
  int64_t& back_ms = world_.tallies.back_ms;
  if (back_ms > 0) return;
  const int64_t since_ms = world_.time.now() / SimulatedTime::kMs - kCalmMs;
  if (WhoIsMissing().empty()) {
    back_ms = since_ms + 1;
  } else if (since_ms > kBackMsMax) {
    world_.Wrong("not all are back in time: " + WhoIsMissing());
  }
}

}  // namespace gannet
