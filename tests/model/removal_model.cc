#include "tests/model/removal_model.h"

#include <algorithm>

namespace gannet::model::removal {
namespace {

uint8_t Later(uint8_t age, uint8_t by) {
  return std::min<uint8_t>(RemovalModel::kWait, static_cast<uint8_t>(age + by));
}

}  // namespace

std::vector<RemovalModel::State> RemovalModel::Initial() const {
  std::vector<State> all;
  for (int rates = 0; rates < 8; ++rates) {
    const auto rate = [&](int i) { return (rates >> i & 1) != 0 ? kFast : kSlow; };
    State state{};
    state.rate = rate(0);
    state.crashes_left = 1;
    for (int i = 0; i < kBackups; ++i) {
      state.backups[i] = {.rate = rate(i + 1), .alive = 1, .in_sync = 1};
    }
    all.push_back(state);
  }
  return all;
}

void RemovalModel::Next(const State& state, const Emit& emit) const {
  if (state.deposed) return;
  TimePasses(state, emit);
  State next = state;
  if (!state.port_failed) {
    next.port_failed = 1;
    emit("the primary's port fails", next);
  }
  for (uint8_t i = 0; i < kBackups; ++i) {
    BackupSteps(state, i, emit);
    if (state.removal != Txn::kNone || !state.backups[i].in_sync || !MayRemove(state, i)) continue;
    next = state;
    next.removal = Txn::kSent;
    next.removed = i;
    emit("the primary removes a silent backup", next);
  }
  if (state.removal == Txn::kNone) return;
  next = state;
  next.removal = Txn::kNone;
  next.removed = 0;
  next.backups[state.removed].in_sync = 0;
  const bool others = std::any_of(next.backups.begin(), next.backups.end(),
                                  [](const Backup& backup) { return backup.in_sync != 0; });
  next.alone = !others && state.port_failed && state.backups[state.removed].alive;
  // Whoever compares with what the register had before loses, and reads it again.
  for (Backup& backup : next.backups) backup.takeover = Txn::kNone;
  emit("the removal wins", next);
}

void RemovalModel::TimePasses(const State& state, const Emit& emit) const {
  State next = state;
  const auto step = [](Txn* txn) {
    if (*txn == Txn::kLate) return false;
    if (*txn == Txn::kSent) *txn = Txn::kLate;
    return true;
  };
  if (!step(&next.removal)) return;
  for (Backup& backup : next.backups) {
    if (!step(&backup.takeover)) return;
    backup.silence = Later(backup.silence, backup.rate);
    backup.unanswered = Later(backup.unanswered, state.rate);
    // A backup notices within a step that G is over. If it took longer, the primary might win, and
    // nobody would be there to serve; but nothing would be lost.
    const bool notices = backup.alive && backup.in_sync && backup.takeover == Txn::kNone;
    if (notices && backup.silence >= kGrace + kFast) return;
  }
  emit("time passes", next);
}

void RemovalModel::BackupSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Backup& backup = state.backups[i];
  if (!backup.alive) return;
  State next = state;
  Backup& changed = next.backups[i];
  const bool sends =
      !rules_.falls_silent ||
      std::any_of(state.backups.begin(), state.backups.end(),
                  [](const Backup& other) { return other.in_sync && other.unanswered < kGrace; });
  if (!state.port_failed && sends && (backup.silence > 0 || backup.unanswered > 0)) {
    changed.silence = 0;
    emit("a backup hears the primary; its answer is lost", next);
    changed.unanswered = 0;
    emit("a backup hears the primary, and answers", next);
    next = state;
  }
  if (state.crashes_left > 0) {
    --next.crashes_left;
    changed.alive = 0;
    changed.takeover = Txn::kNone;
    emit("a backup crashes", next);
    next = state;
  }
  if (!backup.in_sync) return;
  if (backup.takeover == Txn::kNone && backup.silence >= kGrace) {
    changed.takeover = Txn::kSent;
    emit("a backup sends its takeover", next);
  } else if (backup.takeover != Txn::kNone) {
    next.deposed = 1;
    emit("a takeover wins", next);
  }
}

bool RemovalModel::MayRemove(const State& state, uint8_t i) const {
  const Backup& backup = state.backups[i];
  if (backup.unanswered < kLease / 2) return false;
  const bool hears_somebody =
      std::any_of(state.backups.begin(), state.backups.end(), [&](const Backup& other) {
        return &other != &backup && other.in_sync && other.unanswered < kLease / 2;
      });
  if (hears_somebody || !rules_.waits_if_it_hears_nobody) return true;
  return backup.unanswered >= (rules_.waits_long ? kWait : kGrace);
}

const char* RemovalModel::Broken(const State& state) const {
  return state.alone ? "only a primary that nobody reaches is left in sync" : nullptr;
}

}  // namespace gannet::model::removal
