// GroupWorld: what goes wrong.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/group_world.h"

namespace gannet::simulation {
namespace {

// Stops within stops: then the first one lasts at least as long as the second.
constexpr uint32_t kDepthMax = 2;
constexpr uint64_t kReadsMax = 40;
constexpr int64_t kPauseNsMax = 2 * kNsPerSecond;
constexpr int64_t kSoonNsMax = 30 * kNsPerMs;
// An event that waits for a closed partition happens in one of so many turns.
constexpr uint64_t kTurnsWhileClosed = 200;

bool IsAskedOfEtcd(GroupEvent::Type type) {
  using enum GroupEvent::Type;
  return type == kHandOver || type == kMove || type == kStopMoves;
}

}  // namespace

void GroupWorld::OnClock(uint32_t node) {
  Standing& standing = standing_[node];
  if (!faulty_ || standing.stop_next_ns == 0 || standing.within || depth_ == kDepthMax) return;
  if (standing.reads_left-- > 0) return;
  const int64_t ns = std::exchange(standing.stop_next_ns, 0);
  run_->Note(absl::StrCat("node ", node, " is stopped within a call for ", ns, " ns"));
  ++happened_.stops;
  standing.within = true;
  ++depth_;
  pace_.StepUntil(run_->now_ns() + ns, [this] { return !faulty_; });
  --depth_;
  standing.within = false;
  run_->OnNode(node);
}

void GroupWorld::Later(int64_t at_ns, std::function<void()> what) {
  mends_.emplace(at_ns, std::move(what));
}

void GroupWorld::HandleEvents() {
  const int64_t now_ns = run_->now_ns();
  while (!mends_.empty() && mends_.begin()->first <= now_ns) {
    const std::function<void()> what = std::move(mends_.begin()->second);
    mends_.erase(mends_.begin());
    what();
  }
  OperatorTurn();
  if (!faulty_) return;
  if (scenario_.hot_key()) return TakeHotTurn();
  TakeSteps();
  for (auto it = waiting_events_.begin(); it != waiting_events_.end(); ++it) {
    if (!IsDue()) continue;
    const GroupEvent event = *it;
    waiting_events_.erase(it);
    ++happened_.closed;
    return Happen(event);
  }
  if (next_event_ == scenario_.events.size()) return;
  const GroupEvent& event = scenario_.events[next_event_];
  if (now_ns < began_ns_ + event.at_ns) return;
  ++next_event_;
  if (event.while_closed) return waiting_events_.push_back(event);
  Happen(event);
}

// At any moment while a partition is closed.
bool GroupWorld::IsDue() const {
  return !register_.map().closed.empty() && run_->OneIn(kTurnsWhileClosed);
}

// A primary is as likely as all others.
uint32_t GroupWorld::AnyServer() {
  const size_t groups = scenario_.groups.size();
  const std::optional<uint32_t> primary =
      Primary(groups == 1 ? 0 : static_cast<uint32_t>(run_->Below(groups)));
  if (primary && run_->OneIn(2)) return *primary;
  return static_cast<uint32_t>(run_->Below(servers_.size()));
}

void GroupWorld::Happen(const GroupEvent& event) {
  using Type = GroupEvent::Type;
  if (IsAskedOfEtcd(event.type) && (etcd_lost_ || has_garbage_)) return;  // kvcli refuses then
  const int64_t until_ns = run_->now_ns() + event.duration_ns;
  run_->Note(absl::StrCat("event ", static_cast<int>(event.type)));
  const uint32_t node = AnyServer();
  Standing& standing = standing_[node];
  Standing& client = standing_[servers_.size() + run_->Below(guests_.size())];
  switch (event.type) {
    case Type::kKill:
      Kill(node);
      return;
    case Type::kKillSoon:
      Kill(node);
      return Later(run_->now_ns() + static_cast<int64_t>(run_->Below(kPauseNsMax)),
                   [this, node] { KillSoon(node); });
    case Type::kStop:
      standing.until_ns = std::max(standing.until_ns, until_ns);
      return;
    case Type::kStopWithin:
      standing.stop_next_ns = event.duration_ns;
      standing.reads_left = run_->Below(kReadsMax);
      return;
    case Type::kStopPart:
      if (servers_[node]->up()) {
        standing.parts[run_->Below(servers_[node]->parts())] = until_ns;
      }
      return;
    case Type::kStopClient:
      client.stop_next_ns = event.duration_ns;
      client.reads_left = run_->Below(kReadsMax);
      return;
    case Type::kCut:
      return Cut(node, static_cast<uint32_t>(run_->Below(servers_.size())), until_ns);
    case Type::kCutOff:
      for (uint32_t other = 0; other < servers_.size(); ++other) {
        Cut(node, other, until_ns);
        Cut(other, node, until_ns);
      }
      return;
    case Type::kCutClients:
      for (uint32_t i = 0; i < guests_.size(); ++i) {
        if (run_->OneIn(3)) continue;
        Cut(node, guests_[i].node, until_ns);
        Cut(guests_[i].node, node, until_ns);
      }
      return;
    case Type::kRegisterAway:
      register_.SetAway(true);
      return Later(until_ns, [this] { register_.SetAway(false); });
    case Type::kBreaking:
      run_->SetFaults(scenario_.breaking_faults);
      return Later(until_ns, [this] { run_->SetFaults(scenario_.faults); });
    case Type::kHandOver:
      register_.WantSuccessor(servers_[node]->group(), GroupServer::NameOf(node));
      return;
    case Type::kLeave:
      return TellToStop(node);
    case Type::kMove:
      return WishMoves();
    case Type::kStopMoves:
      return register_.StopMoves();
    case Type::kKillBackups:
      return KillBackups();
    case Type::kLoseEtcd:
      return LoseEtcd();
    case Type::kGarbage:
      return PutGarbage(until_ns);
  }
}

void GroupWorld::TellToStop(uint32_t node) {
  const bool all = run_->OneIn(3);
  for (const auto& server : servers_) {
    const bool meant =
        server->node() == node || (all && server->group() == servers_[node]->group());
    if (!meant || !server->up() || standing_[server->node()].within) continue;
    run_->OnNode(server->node());
    server->StepDown();
  }
}

void GroupWorld::Cut(uint32_t from, uint32_t to, int64_t until_ns) {
  if (from == to || cut_[from][to]) return;
  cut_[from][to] = true;
  run_->Cut(from, to, true);
  Later(until_ns, [this, from, to] {
    cut_[from][to] = false;
    run_->Cut(from, to, false);
  });
}

// Not the last one that has all: then everything would be lost.
bool GroupWorld::Kill(uint32_t node) {
  if (!faulty_ || !servers_[node]->up() || standing_[node].within || !SomebodyStays(node)) {
    return false;
  }
  ++happened_.kills;
  standing_[node] = {};
  // Otherwise a late transaction may take out the only one that is left, and the walk is over.
  if (scenario_.kind == GroupScenario::Kind::kWalk) {
    register_.DropRequestsOf(servers_[node]->self());
  }
  servers_[node]->Kill(static_cast<int64_t>(run_->Below(kPauseNsMax)));
  if (!SomebodyLives(kNobody)) lost_ = true;
  return true;
}

void GroupWorld::KillBackups() {
  const std::optional<uint32_t> primary = Primary(0);
  for (uint32_t node = 0; primary && node < servers_.size(); ++node) {
    if (node != *primary && servers_[node]->group() == 0) Kill(node);
  }
}

void GroupWorld::KillSoon(uint32_t node) {
  if (!faulty_) return;
  if (!servers_[node]->up()) servers_[node]->StartNow();
  Later(run_->now_ns() + static_cast<int64_t>(run_->Below(kSoonNsMax)),
        [this, node] { Kill(node); });
}

// Who is told to stop may be out by the next moment.
bool GroupWorld::SomebodyStays(uint32_t except) const {
  const uint32_t group = servers_[except]->group();
  const GroupConfiguration& now = register_.now(group);
  const auto stays = [&](const auto& server) {
    return server->group() == group && server->node() != except && server->up() &&
           !server->steps_down() && now.IsInSync(server->self());
  };
  const bool founded = register_.Has(group) && !now.in_sync.empty();
  if (etcd_lost_ && !SomebodyKnows(group, except)) return false;
  return SomebodyLives(except) && (!founded || std::ranges::any_of(servers_, stays));
}

bool GroupWorld::SomebodyLives(uint32_t except) const {
  for (uint32_t group = 0; group < scenario_.groups.size(); ++group) {
    if (!SomebodyLives(group, except)) return false;
  }
  return true;
}

bool GroupWorld::SomebodyLives(uint32_t group, uint32_t except) const {
  const GroupConfiguration& now = register_.now(group);
  if (!register_.Has(group) || now.in_sync.empty()) return true;  // before the first epoch
  return std::any_of(servers_.begin(), servers_.end(), [&](const auto& server) {
    return server->group() == group && server->node() != except && server->up() &&
           !server->member().ended() && now.IsInSync(server->self());
  });
}

std::optional<uint32_t> GroupWorld::Primary(uint32_t group) const {
  if (!register_.Has(group)) return std::nullopt;
  for (const auto& server : servers_) {
    if (server->group() == group && server->up() &&
        register_.now(group).primary == server->self()) {
      return server->node();
    }
  }
  return std::nullopt;
}

bool GroupWorld::Whole() const {
  for (uint32_t group = 0; group < scenario_.groups.size(); ++group) {
    if (!Whole(group)) return false;
  }
  return true;
}

bool GroupWorld::Whole(uint32_t group) const {
  if (!register_.Has(group)) return true;
  const std::optional<uint32_t> primary = Primary(group);
  if (!primary || !servers_[*primary]->HasLease()) return false;
  const bool all_stay = std::ranges::all_of(servers_, [&](const auto& server) {
    return server->group() != group ||
           (server->up() && !server->steps_down() && register_.now(group).IsInSync(server->self()));
  });
  // A hand-over takes longer than a lease, in which the primary serves.
  return all_stay && !register_.WantsSuccessor(group) && !servers_[*primary]->HandsOver();
}

// From now on nothing goes wrong.
void GroupWorld::MendAll() {
  faulty_ = false;
  while (!mends_.empty()) {
    const std::function<void()> what = std::move(mends_.begin()->second);
    mends_.erase(mends_.begin());
    what();
  }
  register_.SetAway(false);
  register_.SetLossy(false);
  run_->SetFaults(scenario_.faults);
  for (Standing& standing : standing_) standing = {};
  for (const auto& server : servers_) {
    if (!server->up()) server->StartNow();
  }
}

}  // namespace gannet::simulation
