#include "tests/model/waiting_model.h"

#include <algorithm>

namespace gannet::model::waiting {

std::vector<WaitingModel::State> WaitingModel::Initial() const {
  State empty{};
  empty.evictions_left = 1;
  State expiring = empty;
  expiring.log[0] = kBrief;
  return {empty, expiring};
}

bool WaitingModel::Present(const State& state, uint8_t position) {
  switch (state.log[position]) {
    case kAdd:
    case kPut:
    case kReplace:
      return true;
    case kBrief:
      return !state.expired;
    default:
      return false;
  }
}

void WaitingModel::Next(const State& state, const Emit& emit) const {
  if (state.off) return;
  for (size_t i = 0; i < kOperations; ++i) {
    if (state.operations[i].phase == Phase::kWaits) Answer(state, i, emit);
    // The operations are alike, so they begin in their order.
    const bool next = i == 0 || state.operations[i - 1].phase != Phase::kIdle;
    if (state.operations[i].phase != Phase::kIdle || !next) continue;
    for (const Record record : {kAdd, kPut, kBrief, kReplace, kDelete}) {
      Decide(state, i, record, emit);
    }
  }
  if (!state.expired) {
    State next = state;
    next.expired = 1;
    emit("what expires has expired", next);
  }
  DiskSteps(state, emit);
  Publish(state, emit);
  Evict(state, emit);
  Look(state, emit);
}

void WaitingModel::Decide(const State& state, size_t operation, Record record,
                          const Emit& emit) const {
  const uint8_t by = rules_.decides_by_waiting ? state.log_end : state.memory;
  const bool present = Present(state, by);
  const bool needs_item = record == kDelete || record == kReplace;
  const bool refused = (record == kAdd && present) || (needs_item && !present);
  // It is heard of when the writes that it undid are answered.
  const bool quiet = state.log[by] == kUndo;
  State next = state;
  if (record != kPut && record != kBrief && present != Present(state, state.log_end))
    next.wrong = kDecision;
  Operation& it = next.operations[operation];
  it.phase = Phase::kWaits;
  if (refused) {
    it.position = rules_.refusals_wait && !quiet ? by : 0;
    // Whoever is refused knows of that write.
    if (!rules_.refusals_wait && !quiet) next.answered = std::max(next.answered, by);
    return emit("a write is refused", next);
  }
  next.log[++next.log_end] = record;
  it.position = next.log_end;
  if (record == kReplace && state.log[by] == kBrief) {
    next.counts |= static_cast<uint8_t>(1 << next.log_end);
  }
  if (!rules_.out_of_place && Present(state, state.memory)) next.torn = 1;
  emit("a write is recorded", next);
}

void WaitingModel::Answer(const State& state, size_t operation, const Emit& emit) const {
  const uint8_t position = state.operations[operation].position;
  if (position > (rules_.answers_after_publish ? state.published : state.synced)) return;
  State next = state;
  next.operations[operation] = {Phase::kOver, 0};
  next.answered = std::max(next.answered, position);
  emit("an answer", next);
}

void WaitingModel::DiskSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (state.synced < state.log_end) {
    next.synced = state.log_end;
    emit("sync", next);
  }
  for (uint8_t end = state.synced; end <= state.log_end; ++end) {
    next = state;
    next.off = 1;
    if (end < state.answered) next.wrong = kLost;
    if (end < state.seen) next.wrong = kUnseen;
    emit("the power is cut", next);
  }
}

void WaitingModel::Publish(const State& state, const Emit& emit) const {
  if (state.published == (rules_.publishes_after_sync ? state.synced : state.log_end)) return;
  State next = state;
  ++next.published;
  const auto is = [&](uint8_t positions) { return (positions >> next.published & 1) != 0; };
  if (is(state.undone)) return emit("what was undone is passed over", next);
  if (is(state.counts) && state.expired) {
    if (rules_.undoes_past_expiry) return Undo(next, emit);
    if (state.looked_late) next.wrong = kRevived;
  }
  if (state.log[next.published] == kEvict && !rules_.evictions_wait) {
    return emit("what happened when it was recorded is passed over", next);
  }
  if (next.published < state.memory) next.wrong = kBack;
  next.memory = next.published;
  next.torn = 0;
  emit("a write is published", next);
}

// With the last one that is published, all that waits behind it. Its answers wait for the record of
// that, and then the clients send their requests again.
void WaitingModel::Undo(State next, const Emit& emit) const {
  const uint8_t first = next.published;
  next.log[++next.log_end] = kUndo;
  for (uint8_t position = first; position < next.log_end; ++position) {
    const bool undone = position == first || rules_.undoes_what_is_behind;
    if (!undone && next.log[position] == kReplace) next.wrong = kBehind;
    if (!undone) continue;
    next.undone |= static_cast<uint8_t>(1 << position);
    for (Operation& it : next.operations) {
      if (it.phase == Phase::kWaits && it.position == position) it.position = next.log_end;
    }
  }
  emit("writes are undone", next);
}

void WaitingModel::Evict(const State& state, const Emit& emit) const {
  if (state.evictions_left == 0 || !Present(state, state.memory)) return;
  State next = state;
  --next.evictions_left;
  next.log[++next.log_end] = kEvict;
  if (!rules_.evictions_wait) next.memory = next.log_end;
  emit("the key is evicted", next);
}

void WaitingModel::Look(const State& state, const Emit& emit) {
  State next = state;
  if (state.torn) next.wrong = kUnreadable;
  if (state.memory < state.answered) next.wrong = kStale;
  next.looked_late |= state.expired;
  next.seen = std::max(next.seen, state.memory);
  emit("somebody looks", next);
}

const char* WaitingModel::Broken(const State& state) const {
  switch (state.wrong) {
    case kLost:
      return "a write that was answered, or told of, is lost";
    case kUnseen:
      return "a write that was seen is lost";
    case kDecision:
      return "a decision that is wrong by the writes before it";
    case kStale:
      return "who looks does not see what an answer told";
    case kUnreadable:
      return "the key cannot be read while a write waits";
    case kBack:
      return "the memory goes back to a write from before the last record";
    case kRevived:
      return "a write counts on an item after somebody found it expired";
    case kBehind:
      return "a write counts on one that was undone";
    default:
      return nullptr;
  }
}

}  // namespace gannet::model::waiting
