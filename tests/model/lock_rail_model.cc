#include "tests/model/lock_rail_model.h"

namespace gannet::model::lock_rail {
namespace {

using State = LockRailModel::State;

constexpr uint8_t kGivenMax = 4;
constexpr uint8_t kEpoch = 16;  // the upper part of a fence
constexpr uint8_t kLateSwap = 1, kStruck = 2, kLateWrite = 3;

}  // namespace

uint8_t LockRailModel::Serving(const State& state) const {
  return state.rail == kOther && rules_.new_memory ? 1 : 0;
}

void LockRailModel::Next(const State& state, const Emit& emit) const {
  Change(state, emit);
  A(state, emit);
  B(state, emit);
  Holders(state, emit);
}

void LockRailModel::Change(const State& state, const Emit& emit) const {
  State next = state;
  if (state.rail == kServes) {
    next.rail = kDead;
    return emit("the lock rail dies", next);
  }
  if (!state.leases_over) {
    next.leases_over = 1;
    // B's lock of the new rail has another lease.
    next.holds[kA] = 0;
    if (state.rail == kDead) next.holds[kB] = 0;
    emit("the leases of its locks end", next);
  }
  if (!state.obeyed) {
    next = state;
    next.obeyed = 1;
    emit("the server has reaped the dead device", next);
  }
  if (state.rail == kDead && (state.leases_over || !rules_.waits_for_leases)) {
    next = state;
    next.rail = kOther;
    next.b_read = 0;
    Word& word = next.words[Serving(next)];
    word.owner = kNobody;
    if (rules_.new_memory) word.count = 0;
    emit("another rail serves, and all locks are lost", next);
  }
  if (state.rail == kOther && rules_.new_memory && !state.reused &&
      (state.obeyed || !rules_.keeps_old_memory)) {
    next = state;
    next.reused = 1;
    emit("the old memory has another use", next);
  }
}

// Returns the fence of the lock that has just been given.
uint8_t LockRailModel::FenceOf(const State& state, uint8_t memory) const {
  const bool is_new = state.rail == kOther && memory == Serving(state);
  return state.words[memory].count + (is_new && rules_.fences_grow ? kEpoch : 0);
}

void LockRailModel::GiveToB(State* state) const {
  state->holds[kB] = 1;
  state->fences[kB] = FenceOf(*state, Serving(*state));
  state->order[kB] = ++state->given;
}

void LockRailModel::A(const State& state, const Emit& emit) const {
  State next = state;
  const Word& word = state.words[0];
  if (state.rail == kServes && state.swap == kNoSwap && !state.holds[kA] && word.owner == kNobody &&
      state.given < kGivenMax) {
    next.swap = kPosted;
    emit("A posts a swap", next);
  }
  if (state.swap == kPosted && !state.obeyed) {
    next = state;
    const bool hits = word.owner == kNobody;  // a free word is 0, whatever was before
    next.swap = hits ? kTaken : kMissed;
    if (hits) {
      next.words[0] = {kA, static_cast<uint8_t>(word.count + 1)};
      next.swap_fence = FenceOf(next, 0);
      next.swap_order = ++next.given;
      if (state.rail == kOther && Serving(state) == 0) next.wrong = kLateSwap;
    }
    if (state.reused) next.wrong = kStruck;
    emit("A's swap is executed", next);
  }
  if (state.swap == kTaken || state.swap == kMissed) {
    next = state;
    const bool in_time = !state.leases_over || !rules_.lease_from_post;
    if (state.swap == kTaken && in_time) {
      next.holds[kA] = 1;
      next.fences[kA] = state.swap_fence;
      next.order[kA] = state.swap_order;
    }
    next.swap = kNoSwap;
    emit("A sees what its swap did", next);
  }
  if (state.holds[kA] && state.rail == kServes) {
    next = state;
    next.holds[kA] = 0;
    next.words[0].owner = kNobody;
    emit("A releases the lock", next);
  }
}

void LockRailModel::B(const State& state, const Emit& emit) const {
  State next = state;
  const uint8_t at = Serving(state);
  const Word& word = state.words[at];
  if (state.rail == kDead) return;  // nobody serves locks
  if (state.holds[kB]) {
    next.holds[kB] = 0;
    next.words[at].owner = kNobody;
    return emit("B releases the lock", next);
  }
  if (state.b_read) {
    next.b_read = 0;
    next.words[at] = {kB, static_cast<uint8_t>(state.b_count + 1)};
    GiveToB(&next);
    return emit("the server writes the word for B", next);
  }
  if (word.owner != kNobody || state.given >= kGivenMax) return;
  if (!rules_.one_device) {
    next.b_read = 1;
    next.b_count = word.count;
    return emit("the server reads the word for B", next);
  }
  next.words[at] = {kB, static_cast<uint8_t>(word.count + 1)};
  GiveToB(&next);
  emit("the server swaps the word for B", next);
}

// A write under a lock is refused if the store has seen a newer fence.
void LockRailModel::Holders(const State& state, const Emit& emit) {
  for (const uint8_t who : {kA, kB}) {
    const bool changes =
        state.fences[who] != state.written || state.order[who] != state.written_order;
    if (state.order[who] == 0 || !changes || state.fences[who] < state.written) continue;
    State next = state;
    if (state.order[who] < state.written_order) next.wrong = kLateWrite;
    next.written = state.fences[who];
    next.written_order = state.order[who];
    emit("a write under a lock arrives", next);
  }
}

const char* LockRailModel::Broken(const State& state) const {
  constexpr const char* kWhat[] = {nullptr, "a late swap takes a lock of the new rail",
                                   "a late swap changes memory of another use",
                                   "a write takes effect after one of a later lock"};
  if (state.holds[kA] && state.holds[kB]) return "two clients have the lock";
  return kWhat[state.wrong];
}

}  // namespace gannet::model::lock_rail
