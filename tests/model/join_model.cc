#include "tests/model/join_model.h"

#include <algorithm>

namespace gannet::model::join {
namespace {

using State = JoinModel::State;

// Puts `value` into a free block, and frees the slot's former one.
void Place(State* state, uint8_t* slot, uint8_t value) {
  const auto free = std::find(state->blocks.begin(), state->blocks.end(), JoinModel::kNothing);
  *free = value;
  if (*slot != JoinModel::kNowhere) state->blocks[*slot] = JoinModel::kNothing;
  *slot = static_cast<uint8_t>(free - state->blocks.begin());
  ++state->window_version;
}

void Remove(State* state, uint8_t* slot) {
  if (*slot == JoinModel::kNowhere) return;
  state->blocks[*slot] = JoinModel::kNothing;
  *slot = JoinModel::kNowhere;
  ++state->window_version;
}

uint8_t ContentOf(const State& state, uint8_t slot) {
  return slot == JoinModel::kNowhere ? JoinModel::kNothing : state.blocks[slot];
}

}  // namespace

std::vector<State> JoinModel::Initial() const {
  State state{};
  state.begin = kNowhere;
  state.slot_k = state.slot_x = kNowhere;
  state.moves_left = 1;
  if (k_present_) Place(&state, &state.slot_k, kFirst);
  state.window_version = 0;
  return {state};
}

void JoinModel::Next(const State& state, const Emit& emit) const {
  if (state.in_sync) return;
  PrimarySteps(state, emit);
  StreamSteps(state, emit);
  WalkSteps(state, emit);
  const bool walked = state.walk == Walk::kOver || !rules_.ends_walk;
  const bool received = state.received >= state.published || !rules_.has_committed;
  if (state.begin == kNowhere || !walked || !received) return;
  State next = state;
  next.in_sync = 1;
  next.wrong = !HasAll(state);
  emit("the joiner is in sync", next);
}

void JoinModel::PrimarySteps(const State& state, const Emit& emit) const {
  Decide(state, emit);
  State next = state;
  if (state.published < state.decided) {
    const uint8_t value = kLater + next.published;
    switch (state.log[next.published++]) {
      case kPut:
      case kPutExpiring:
      case kPartsEnd:
        Place(&next, &next.slot_k, value);
        break;
      case kDelete:
        Remove(&next, &next.slot_k);
        break;
      case kPutX:
        Place(&next, &next.slot_x, kX);
        break;
      default:
        break;
    }
    emit("the primary publishes a record", next);
    next = state;
  }
  if (state.moves_left > 0 && state.slot_k != kNowhere) {
    --next.moves_left;
    Place(&next, &next.slot_k, state.blocks[state.slot_k]);
    emit("the primary moves K to another block", next);
    next = state;
  }
  if (!state.expired) {
    next.expired = 1;
    return emit("time passes", next);
  }
  if (Expires(state, ContentOf(state, state.slot_k))) {
    Remove(&next, &next.slot_k);
    emit("the primary sweeps K", next);
  }
}

void JoinModel::Decide(const State& state, const Emit& emit) const {
  if (state.decided == records_) return;
  const auto log_end = state.log.begin() + state.decided;
  const auto parts = std::count(state.log.begin(), log_end, kPart);
  const auto ends = std::count(state.log.begin(), log_end, kPartsEnd);
  for (const Record record : {kPut, kPutExpiring, kDelete, kPart, kPartsEnd, kPutX}) {
    if (record == kPart && parts > ends) continue;  // one at a time
    if (record == kPartsEnd && parts == ends) continue;
    if (record == kPutX && std::count(state.log.begin(), log_end, kPutX) > 0) continue;
    if (record == kPutExpiring && state.expired) continue;
    State next = state;
    next.log[next.decided++] = record;
    emit("the primary records a write", next);
  }
}

void JoinModel::StreamSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (state.begin == kNowhere) {
    const bool may = state.walk == Walk::kNotBegun || !rules_.opens_first;
    if (!may) return;
    next.begin = next.received = next.applied = state.decided;
    const auto log_end = state.log.begin() + state.decided;
    const auto parts = std::count(state.log.begin(), log_end, kPart);
    const auto ends = std::count(state.log.begin(), log_end, kPartsEnd);
    next.has_part = parts > ends && rules_.sends_parts;
    return emit("the stream is opened", next);
  }
  if (state.received < state.decided) {
    ++next.received;
    emit("a record reaches the joiner", next);
    next = state;
  }
  if (state.applied < std::min(state.received, state.published)) {
    ApplyNext(&next);
    emit("the joiner applies a record", next);
    next = state;
  }
  if (state.expired && Expires(state, state.k) && state.applied >= state.published) {
    Sweep(&next);
    emit("the joiner sweeps K", next);
  }
}

void JoinModel::ApplyNext(State* state) const {
  const uint8_t position = state->applied++;
  switch (state->log[position]) {
    case kPart:
      state->has_part = 1;
      return;
    case kPutX:
      state->x = 1;
      return;
    case kDelete:
      state->k = kNothing;
      if (rules_.keeps_deletions) state->k_is_gone = 1;
      return;
    case kPartsEnd:
      if (!state->has_part) return;  // there is nothing to install
      state->has_part = 0;
      break;
    default:
      break;
  }
  state->k = kLater + position;
  state->k_is_gone = 0;
}

void JoinModel::Sweep(State* state) const {
  state->k = kNothing;
  if (rules_.keeps_sweeps) state->k_is_gone = 1;
}

bool JoinModel::Expires(const State& state, uint8_t value) const {
  return value >= kLater && state.log[value - kLater] == kPutExpiring;
}

void JoinModel::WalkSteps(const State& state, const Emit& emit) const {
  State next = state;
  switch (state.walk) {
    case Walk::kNotBegun: {
      const bool open = state.begin != kNowhere;
      if (!open && rules_.opens_first) return;
      if (open && state.published < state.begin && rules_.walks_after_publish) return;
      next.walk = Walk::kWindow;
      next.walk_k = state.slot_k;
      next.walk_x = state.slot_x;
      next.walk_version = state.window_version;
      return emit("the walk READs the window", next);
    }
    case Walk::kWindow:
      next.walk = Walk::kItemK;
      next.found_k = ContentOf(state, state.walk_k);
      return emit("the walk READs the item of K's slot", next);
    case Walk::kItemK:
      next.walk = Walk::kItemX;
      next.found_x = ContentOf(state, state.walk_x);
      return emit("the walk READs the item of X's slot", next);
    case Walk::kItemX:
      next.walk = Walk::kChecked;
      if (rules_.reads_window_again && state.walk_version != state.window_version) {
        next.walk = Walk::kNotBegun;
        next.found_k = next.found_x = kNothing;
      }
      next.walk_k = next.walk_x = next.walk_version = 0;
      return emit("the walk READs the window again", next);
    case Walk::kChecked:
      if (state.begin == kNowhere) return;
      next.walk = Walk::kOver;
      Insert(&next);
      return emit("the walk inserts what it found", next);
    case Walk::kOver:
      return;
  }
}

// An item is of the key that it has, whichever slot led to it.
void JoinModel::Insert(State* state) const {
  for (const uint8_t found : {state->found_k, state->found_x}) {
    if (found == kNothing) continue;
    if (found == kX) {
      state->x = 1;
    } else if ((state->k == kNothing || !rules_.keeps_newer) && !state->k_is_gone) {
      state->k = found;
    }
  }
  state->found_k = state->found_x = kNothing;
}

// Whether the joiner, once it has applied what is committed and reached it, has what the primary
// has.
bool JoinModel::HasAll(State state) const {
  while (state.applied < std::min(state.received, state.published)) ApplyNext(&state);
  uint8_t there = ContentOf(state, state.slot_k);
  if (state.expired && Expires(state, there)) there = kNothing;
  if (state.expired && Expires(state, state.k)) state.k = kNothing;
  return state.k == there && state.x == (state.slot_x == kNowhere ? 0 : 1);
}

const char* JoinModel::Broken(const State& state) const {
  return state.wrong ? "a member in sync does not have what the primary has" : nullptr;
}

}  // namespace gannet::model::join
