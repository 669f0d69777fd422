#include "tests/model/restart_model.h"

#include <algorithm>

namespace gannet::model::restart {
namespace {

using State = RestartModel::State;
using Node = RestartModel::Node;
using Log = RestartModel::Log;
using Run = RestartModel::Run;

constexpr uint8_t kProcessesMax = 3;  // of a node
constexpr uint8_t kEpochsMax = 4;

int LengthOf(const Log& log) { return static_cast<int>(std::ranges::find(log, 0) - log.begin()); }
Log FirstOf(Log log, int length) {
  std::fill(log.begin() + length, log.end(), 0);
  return log;
}
// The register has changed.
void Outdate(State* state) {
  for (RestartModel::Txn& txn : state->txns) txn.outdated = txn.under_way;
}
bool IsInSync(const State& state, int n) {
  return state.in_sync[n] != 0 && state.in_sync[n] == state.nodes[n].process;
}
bool IsPrimary(const State& state, int n) {
  return state.epoch > 0 && state.primary == n && IsInSync(state, n) && state.nodes[n].alive != 0;
}
// Each process makes one of its own.
uint8_t HistoryOf(int n, uint8_t process) { return static_cast<uint8_t>((n + 1) * 16 + process); }
// The run as it counts in the history that the register has now.
Run RunIn(const State& state, int n) {
  Run run = state.nodes[n].former;
  if (run.claimed_by != 0 && run.claimed_history == state.history) {
    run.process = run.claimed_by;
    run.history = run.claimed_history;
    run.opened = run.claimed_epoch;
  }
  return run;
}

// The run that the node's newest process has told of. It has none if another process has the name.
Run ToldRun(const State& state, int n) {
  const Node& node = state.nodes[n];
  const Run run = node.announced == node.process ? RunIn(state, n) : Run{};
  return run.process != node.announced && run.history == state.history ? run : Run{};
}

}  // namespace

std::vector<State> RestartModel::Initial() const {
  // The first one has founded the group, and takes clients.
  State state{};
  for (int n = 0; n < nodes_; ++n) {
    Node& node = state.nodes[n];
    node.process = node.announced = node.alive = 1;
  }
  Node& founder = state.nodes[0];
  founder.role = kLeads;
  founder.open = founder.whole = founder.opened = 1;
  state.in_sync[0] = state.epoch = state.history = 1;
  return {state};
}

void RestartModel::Next(const State& state, const Emit& emit) const {
  for (int n = 0; n < nodes_; ++n) {
    if (state.nodes[n].alive != 0 && state.nodes[n].role == kLeads) PrimarySteps(state, n, emit);
    FollowSteps(state, n, emit);
    DiskSteps(state, n, emit);
    LifeSteps(state, n, emit);
    RestartSteps(state, n, emit);
  }
  for (size_t i = 0; i < state.txns.size(); ++i) Execute(state, i, emit);
}

void RestartModel::PrimarySteps(const State& state, int p, const Emit& emit) const {
  const Node& primary = state.nodes[p];
  const int length = LengthOf(primary.log);
  if (primary.open != 0 && length < kWrites && state.written < kWrites) {
    State next = state;
    next.nodes[p].log[length] = ++next.written;
    emit("a primary records a write", next);
  }
  if (!IsPrimary(state, p)) return;
  // From here on it is primary by the register, which stands for its lease.
  int everywhere = length;
  for (int n = 0; n < nodes_; ++n) {
    if (state.in_sync[n] == 0 || n == p) continue;
    const bool there = IsInSync(state, n) && state.nodes[n].alive != 0;
    everywhere = there ? std::min(everywhere, LengthOf(state.nodes[n].log)) : 0;
    if (primary.open == 0) continue;
    State next = state;
    next.in_sync[n] = 0;
    Outdate(&next);
    emit("the primary removes a member", next);
  }
  const int kept = rules_.disk_before_answers ? primary.synced : length;
  const int acknowledged = std::min(everywhere, kept);
  if (primary.open != 0 && acknowledged > LengthOf(state.acknowledged)) {
    State next = state;
    next.acknowledged = FirstOf(primary.log, acknowledged);
    emit("writes are acknowledged", next);
  }
  const bool kept_all = primary.synced == length || !rules_.disk_before_clients;
  const bool whole = primary.whole != 0 || !rules_.whole_before_clients;
  if (primary.open == 0 && everywhere == length && kept_all && whole) {
    State next = state;
    next.nodes[p].open = 1;
    next.nodes[p].opened = state.epoch;
    next.acknowledged = primary.log;  // clients read it
    if (!std::equal(state.acknowledged.begin(),
                    state.acknowledged.begin() + LengthOf(state.acknowledged),
                    primary.log.begin())) {
      next.lost = 1;
    }
    emit("a primary takes clients", next);
  }
}

void RestartModel::FollowSteps(const State& state, int n, const Emit& emit) const {
  const Node& node = state.nodes[n];
  const int p = state.primary;
  if (n != p && IsPrimary(state, p) && node.alive != 0) {
    const Node& primary = state.nodes[p];
    State next = state;
    Node& mine = next.nodes[n];
    if (node.role == kWaits && primary.open != 0) {
      mine.role = kHasCopy;
      mine.log = primary.log;
      emit("a joiner copies what the primary has", next);
    } else if (node.role == kHasCopy && node.log != primary.log) {
      mine.log = FirstOf(primary.log, std::min(LengthOf(node.log) + 1, LengthOf(primary.log)));
      emit("the primary's record arrives", next);
    } else if (node.role == kHasCopy && !IsInSync(state, n) && primary.open != 0 &&
               node.whole != 0) {
      next.in_sync[n] = node.process;
      Outdate(&next);
      emit("a joiner is in sync", next);
    }
  }
  // Also of a process that has died, if no later one has its name.
  if (n == p || !IsInSync(state, n) || node.announced != node.process) return;
  if (state.epoch == kEpochsMax || node.role != kHasCopy) return;
  State next = state;
  next.in_sync[p] = 0;
  next.primary = static_cast<uint8_t>(n);
  ++next.epoch;
  Outdate(&next);
  next.begun_again = 0;
  if (node.alive != 0) {
    next.nodes[n].role = kLeads;
    next.nodes[n].open = 0;
  }
  emit("a backup takes over", next);
}

// A backup's run has what it has applied, which is committed. Here it may have more, as that does
// no harm: nobody begins with it.
void RestartModel::DiskSteps(const State& state, int n, const Emit& emit) const {
  const Node& node = state.nodes[n];
  if (node.alive == 0 || node.role == kWaits) return;
  if (node.synced < LengthOf(node.log)) {
    State next = state;
    ++next.nodes[n].synced;
    emit("a disk syncs", next);
  }
  if (node.whole != 0) return;
  State next = state;
  Node& mine = next.nodes[n];
  mine.whole = 1;
  mine.former = {};
  mine.synced = static_cast<uint8_t>(LengthOf(node.log));
  // It has all that the former run had, and that was enough to begin with.
  if (node.role == kLeads && rules_.restored_has_opened) mine.opened = state.epoch;
  emit("a run is whole", next);
}

void RestartModel::LifeSteps(const State& state, int n, const Emit& emit) const {
  const Node& node = state.nodes[n];
  State next = state;
  Node& mine = next.nodes[n];
  if (node.alive != 0) {
    mine = {.process = node.process, .announced = node.announced, .former = node.former};
    if (node.whole != 0) {
      mine.former = {.process = node.process,
                     .history = state.history,
                     .opened = node.opened,
                     .log = FirstOf(node.log, node.synced)};
    }
    emit("a process dies", next);
  } else if (node.process < kProcessesMax && node.announced == node.process) {
    mine.process = ++mine.announced;
    mine.alive = 1;
    emit("a process comes back", next);
  }
  if (state.spoiled != 0) return;
  next = state;
  next.spoiled = 1;
  if (node.alive == 0) {
    next.nodes[n].former = {};
    emit("a disk is lost", next);
  } else if (IsInSync(state, n)) {
    ++next.nodes[n].announced;
    emit("another process has the name, on another machine", next);
  }
}

bool RestartModel::RestsOnAll(const State& state, const Run& run) {
  return run.opened + 1 < state.epoch;
}

bool RestartModel::MayBegin(const State& state, int n) const {
  const Node& node = state.nodes[n];
  if (node.alive == 0 || node.role != kWaits) return false;
  if (node.announced != node.process || state.in_sync[n] == node.process) return false;
  uint8_t opened = 0;
  bool all_are_back = true;
  for (int m = 0; m < nodes_; ++m) {
    const Run told = ToldRun(state, m);
    opened = std::max(opened, told.opened);
    all_are_back = all_are_back && told.process != 0;
    if (state.in_sync[m] == 0 || (m != n && !rules_.all_are_back)) continue;
    if (state.nodes[m].announced == state.in_sync[m]) return false;
    // The impostor has no disk.
    if (told.process != state.in_sync[m] && rules_.runs_match) return false;
  }
  const Run own = rules_.runs_match ? ToldRun(state, n) : RunIn(state, n);
  if (own.process == 0) return false;
  if (!rules_.opened_matters) return state.primary == n;
  if (own.opened == 0 || own.opened != opened) return false;
  if (own.opened == state.epoch) return state.primary == n;
  if (!rules_.former_may_lead) return false;
  return all_are_back || !RestsOnAll(state, own) || !rules_.gap_wants_all;
}

void RestartModel::RestartSteps(const State& state, int n, const Emit& emit) const {
  if (state.epoch == kEpochsMax || !MayBegin(state, n)) return;
  State next = state;
  Node& mine = next.nodes[n];
  Txn* txn = nullptr;
  for (Txn& each : next.txns) {
    if (each.under_way == 0) txn = &each;
    if (each.under_way != 0 && each.node == n && each.process == mine.process) return;
  }
  if (txn == nullptr) return;
  *txn = {.under_way = 1,
          .outdated = 0,
          .node = static_cast<uint8_t>(n),
          .process = mine.process,
          .history = HistoryOf(n, mine.process),
          .announced = {}};
  const bool rests_on_all = RestsOnAll(state, RunIn(state, n));
  for (int m = 0; m < nodes_; ++m) {
    const bool compared = m == n || state.in_sync[m] != 0 || rests_on_all;
    txn->announced[m] = compared ? state.nodes[m].announced : 0;
  }
  if (rules_.claims_before) {
    const Run own = RunIn(state, n);
    mine.former = {.process = own.process,
                   .history = own.history,
                   .opened = own.opened,
                   .claimed_by = mine.process,
                   .claimed_history = txn->history,
                   .claimed_epoch = static_cast<uint8_t>(state.epoch + 1),
                   .log = own.log};
  }
  emit("a process asks to begin the group again", next);
}

void RestartModel::Execute(const State& state, size_t which, const Emit& emit) const {
  const Txn txn = state.txns[which];
  if (txn.under_way == 0) return;
  State next = state;
  next.txns[which] = {};
  bool wins = txn.outdated == 0;
  for (int m = 0; m < nodes_; ++m) {
    const bool same = txn.announced[m] == 0 || txn.announced[m] == state.nodes[m].announced;
    wins = wins && (same || !rules_.compares_processes);
  }
  if (!wins) return emit("it is refused", next);
  for (int m = 0; m < nodes_; ++m) {
    if (IsInSync(state, m) && state.nodes[m].alive != 0) next.misled = 1;
  }
  const int n = txn.node;
  Node& leader = next.nodes[n];
  const Log log = leader.former.log;
  next.in_sync = {};
  next.in_sync[n] = txn.process;
  ++next.epoch;
  Outdate(&next);
  next.history = txn.history;
  next.begun_again = 1;
  if (leader.alive != 0 && leader.process == txn.process) {
    leader.role = kLeads;
    leader.log = log;
    const int length = LengthOf(state.acknowledged);
    next.lost = std::equal(log.begin(), log.begin() + length, state.acknowledged.begin()) ? 0 : 1;
  }
  emit("the group is begun again", next);
}

bool RestartModel::AllCameBackWithTheirRuns(const State& state) const {
  for (int n = 0; n < nodes_; ++n) {
    const Node& node = state.nodes[n];
    const uint8_t run = ToldRun(state, n).process;
    if (node.alive == 0 || node.role != kWaits || run == 0) return false;
    if (state.in_sync[n] != 0 && state.in_sync[n] != run) return false;
  }
  return state.spoiled == 0;
}

const char* RestartModel::Broken(const State& state) const {
  if (state.lost != 0) return "whoever leads lacks what was acknowledged or read";
  if (state.misled != 0) return "the group is begun again while a member in sync lives";
  if (AllCameBackWithTheirRuns(state)) {
    for (int n = 0; n < nodes_; ++n) {
      if (MayBegin(state, n)) return nullptr;
    }
    return "all are back, and nobody begins";
  }
  if (state.begun_again == 0 || state.spoiled != 0) return nullptr;
  for (int n = 0; n < nodes_; ++n) {
    if (n != state.primary && state.in_sync[n] != 0) return nullptr;
  }
  const Node& node = state.nodes[state.primary];
  const bool is_back = node.alive != 0 && node.process != state.in_sync[state.primary];
  return is_back && !MayBegin(state, state.primary) ? "it cannot be begun again" : nullptr;
}

const char* RestartModel::BrokenAtRest(const State&) const { return nullptr; }

}  // namespace gannet::model::restart
