#include "tests/model/moved_lock_model.h"

namespace gannet::model::moved_lock {
namespace {

using State = MovedLockModel::State;
using Request = MovedLockModel::Request;

bool GiverServes(uint8_t map) { return map == 0 || map == MovedLockModel::kBack; }

// Whether somebody else has the lock now.
bool OthersHaveIt(const State& state) { return state.others && state.map == MovedLockModel::kAway; }

// From which map on the giver's leases hold: the one that closed its partition last.
uint8_t LeasesFrom(uint8_t map) { return map == 0 ? 0 : MovedLockModel::kClosed; }

}  // namespace

void MovedLockModel::Next(const State& state, const Emit& emit) const {
  Move(state, emit);
  Leases(state, emit);
  Ask(state, emit);
  Serve(state, emit);
  Hear(state, emit);
}

// The other group has no lease of this client, which waits for nothing there.
void MovedLockModel::Move(const State& state, const Emit& emit) const {
  State next = state;
  if (state.map < kBack) {
    // The giver has ended the partition by the map that closed it, and no older lease is left.
    const bool older_lease = state.lease && state.client_map < kClosed;
    const bool given = state.map != kClosed || (state.giver_map >= kClosed &&
                                                (!older_lease || !rules_.leases_are_waited_out));
    if (given) {
      ++next.map;
      emit("the map changes", next);
    }
  }
  if (state.map == kAway && state.word && !state.others) {
    next = state;
    next.others = 1;
    emit("another client has the lock at the receiver", next);
  }
  if (state.giver_map < state.map) {
    next = state;
    next.giver_map = state.map;
    emit("the giver learns of the map", next);
  }
  if (state.noted_map < state.giver_map) {
    next = state;
    if (state.word && !state.noted) {
      next.noted = 1;
      next.word_map = state.noted_map;
    }
    next.noted_map = state.giver_map;
    emit("the giver's worker notes the locks", next);
  }
  if (state.client_map < state.map) {
    next = state;
    next.client_map = state.map;
    emit("the client learns of the map", next);
  }
}

void MovedLockModel::Leases(const State& state, const Emit& emit) {
  State next = state;
  if (state.lease) {
    next.lease = 0;
    emit("the client's lease ends", next);
  } else if (state.client_map >= LeasesFrom(state.giver_map)) {
    next.lease = 1;
    emit("the giver tells of a lease", next);
  }
}

void MovedLockModel::Ask(const State& state, const Emit& emit) const {
  if (state.request != Request::kNone) return;
  State next = state;
  next.sent_map = state.client_map;
  next.answered = next.ok = next.swapped = 0;
  if (!state.held) {
    // While nobody serves the key, or another group does, nothing goes to the giver.
    if (!GiverServes(state.client_map)) return;
    next.request = Request::kTake;
    return emit("asks for the lock", next);
  }
  next.request = Request::kRelease;
  emit("asks to release it", next);
  if (!Counts(state)) return;
  next.request = Request::kWrite;
  emit("asks for a write under it", next);
  if (takes_ == Takes::kBySwap) return;
  next.request = Request::kExtend;
  emit("asks for more time", next);
}

bool MovedLockModel::Stayed(const State& state) const {
  const uint8_t otherwise = rules_.by_noted_map ? state.noted_map : state.giver_map;
  return GiverServes(state.giver_map) &&
         state.giver_map == (state.noted ? state.word_map : otherwise);
}

// An unlock is not refused: the lock's word is of the server. Its own compare-and-swap of the word
// takes a while, as the client's does.
void MovedLockModel::Serve(const State& state, const Emit& emit) const {
  if (state.request == Request::kNone || state.answered) return;
  const bool serves = GiverServes(state.giver_map);
  const bool by_swap = takes_ == Takes::kBySwap;
  State next = state;
  next.answered = 1;
  switch (state.request) {
    case Request::kNone:
      return;
    case Request::kTake:
      if (!state.swapped) {
        if (!by_swap && !serves) return emit("the giver refuses the lock", next);
        next.answered = by_swap;
        next.swapped = 1;
        next.ok = !state.word;
        if (!next.ok) return emit("the lock is held", next);
        next.word = 1;
        next.noted = next.others = 0;
        return emit("the word is swapped", next);
      }
      if (state.ok && !serves && rules_.refuses_if_closed) next.ok = next.word = 0;
      if (next.ok && OthersHaveIt(state)) next.wrong = 4;
      return emit("the giver answers who asked for the lock", next);
    case Request::kExtend:
      next.ok = serves && state.word;
      return emit("the giver is asked for more time", next);
    case Request::kRelease:
      next.ok = state.word && (by_swap || Stayed(state) || !rules_.unlock_compares);
      next.word = 0;
      return emit("the giver is asked to release it", next);
    case Request::kWrite:
      next.ok = serves && state.word && (Stayed(state) || !rules_.write_compares);
      if (next.ok && state.others) next.wrong = 3;
      return emit("the giver is asked for a write", next);
  }
}

bool MovedLockModel::Counts(const State& state) const {
  const uint8_t map = rules_.by_newest_map ? state.client_map : state.sent_map;
  return !rules_.client_compares || map == state.held_map;
}

void MovedLockModel::Hear(const State& state, const Emit& emit) const {
  if (!state.answered) return;
  const bool by_swap = takes_ == Takes::kBySwap;
  const bool believed = !by_swap || state.lease || !rules_.swap_needs_lease;
  State next = state;
  next.answered = 0;
  next.request = Request::kNone;
  switch (state.request) {
    case Request::kNone:
      return;
    case Request::kTake:
      // A call that is taking a lock when the partition moves ends as Unavailable.
      next.held = state.ok && believed && state.client_map == state.sent_map;
      next.held_map = state.sent_map;
      if (next.held && by_swap && OthersHaveIt(state)) next.wrong = 4;
      if (state.ok && !next.held) next.word = 0;
      return emit("the lock is taken, or not", next);
    case Request::kExtend:
      if (!state.ok || !Counts(state)) {
        next.held = 0;
        return emit("the lock was lost", next);
      }
      if (rules_.extension_needs_lease && !state.lease) {
        next.request = Request::kExtend;
        return emit("asks for more time again", next);
      }
      if (state.others) next.wrong = 1;
      return emit("the lock is extended", next);
    case Request::kRelease:
      if (state.ok && believed && Counts(state) && state.others) next.wrong = 2;
      next.held = 0;
      return emit("the lock is released, or was lost", next);
    case Request::kWrite:
      if (!state.ok) next.held = 0;
      return emit("the write is made, or not", next);
  }
}

const char* MovedLockModel::Broken(const State& state) const {
  constexpr const char* kWhat[] = {nullptr, "a lock is extended that another client had meanwhile",
                                   "a lock is released as held that another client had meanwhile",
                                   "a write is made under a lock that another client had meanwhile",
                                   "a lock is taken that another client has"};
  return kWhat[state.wrong];
}

}  // namespace gannet::model::moved_lock
