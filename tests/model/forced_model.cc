#include "tests/model/forced_model.h"

#include <algorithm>
#include <tuple>

namespace gannet::model::forced {
namespace {

using State = ForcedModel::State;
using Backup = ForcedModel::Backup;

bool Has(uint8_t mask, int b) { return (mask >> b & 1) != 0; }
uint8_t Bit(int b) { return static_cast<uint8_t>(1 << b); }

}  // namespace

std::vector<State> ForcedModel::Initial() const {
  State state{.primary = 1, .epoch = 1, .in_sync = static_cast<uint8_t>(Bit(kBackups) - 1)};
  state.backups.fill({.alive = 1, .linked = 1, .epoch = 1, .in_sync = 1});
  return {state};
}

void ForcedModel::Next(const State& state, const Emit& emit) const {
  if (state.broken) return;
  PrimarySteps(state, emit);
  for (int b = 0; b < kBackups; ++b) BackupSteps(state, b, emit);
  State next = state;
  if (!state.lost) {
    next.lost = 1;
    emit("etcd loses its data", next);
  }
  next = state;
  if (!state.primary && !state.lost && state.epoch == 1) {
    next.epoch = 2;
    emit("another member takes over, and dies", next);
  }
  Force(state, emit);
}

// Its lease stands and falls with the links of all that it counts.
void ForcedModel::PrimarySteps(const State& state, const Emit& emit) {
  if (!state.primary) return;
  State next = state;
  next.primary = 0;
  emit("the primary dies", next);
  next = state;
  if (!state.written) {
    next.written = 1;
    emit("the primary records the write", next);
  }
  bool everywhere = state.written;
  for (int b = 0; b < kBackups; ++b) {
    const Backup& backup = state.backups[b];
    if (!Has(state.in_sync, b)) continue;
    everywhere = everywhere && backup.alive && backup.linked && backup.came;
    next = state;
    next.in_sync &= static_cast<uint8_t>(~Bit(b));
    if (!state.lost && !(backup.alive && backup.linked)) emit("a backup is taken out", next);
  }
  next = state;
  if (everywhere && !state.acknowledged) {
    next.acknowledged = 1;
    emit("the write is acknowledged", next);
  }
}

uint8_t ForcedModel::WhatItSays(const Backup& backup) const {
  // What the former primary brought says nothing in the next epoch.
  return rules_.says_what_came && backup.epoch == 1 ? backup.came : backup.applied;
}

void ForcedModel::BackupSteps(const State& state, int b, const Emit& emit) const {
  const Backup& backup = state.backups[b];
  if (!backup.alive) return;
  State next = state;
  Backup& mine = next.backups[b];
  if (!state.died) {
    mine.alive = 0;
    next.died = 1;
    emit("a backup dies", next);
  }
  next = state;
  if (state.primary && backup.linked) {
    mine.linked = 0;
    emit("a link breaks", next);
    next = state;
    mine.came = 1;
    if (state.written && !backup.came) emit("the write comes", next);
    next = state;
    mine.applied = 1;
    if (state.acknowledged && backup.came && !backup.applied) emit("it is applied", next);
  }
  next = state;
  mine.epoch = state.epoch;
  mine.in_sync = Has(state.in_sync, b);
  if (!state.lost && (mine.epoch != backup.epoch || mine.in_sync != backup.in_sync)) {
    emit("a backup learns the register", next);
  }
  next = state;
  mine.noted = 1;
  mine.says = WhatItSays(backup);
  const bool differs = rules_.says_it_again && mine.says != backup.says;
  if (state.lost && (!backup.noted || differs)) emit("a backup says what it has", next);
}

void ForcedModel::Force(const State& state, const Emit& emit) const {
  if (state.primary || !state.lost) return;
  const auto rank = [this](const Backup& backup) {
    const bool in_sync = backup.in_sync || !rules_.out_is_worse;
    return std::tuple(backup.alive && in_sync, backup.alive, backup.epoch, backup.says);
  };
  auto best = rank(state.backups[0]);
  bool one_is_in_sync = false;
  for (int b = 0; b < kBackups; ++b) {
    const Backup& backup = state.backups[b];
    const bool is_said =
        backup.noted && (!rules_.says_it_again || backup.says == WhatItSays(backup));
    if (backup.alive && !is_said) return;
    best = std::max(best, rank(backup));
    one_is_in_sync = one_is_in_sync || (backup.alive && Has(state.in_sync, b));
  }
  for (const Backup& backup : state.backups) {
    if (!backup.alive || rank(backup) != best) continue;
    State next = state;
    next.broken = one_is_in_sync && state.acknowledged && !backup.came;
    emit("an operator forces a backup", next);
  }
}

const char* ForcedModel::Broken(const State& state) const {
  return state.broken ? "who is forced lacks what was acknowledged" : nullptr;
}

}  // namespace gannet::model::forced
