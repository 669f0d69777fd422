#include "tests/model/waiting_model.h"

#include <algorithm>

namespace gannet::model {

std::vector<WaitingModel::State> WaitingModel::Initial() const {
  State state{};
  state.evictions_left = 1;
  return {state};
}

void WaitingModel::Next(const State& state, const Emit& emit) const {
  if (state.off) return;
  for (size_t i = 0; i < kOperations; ++i) {
    if (state.operations[i].phase == Phase::kWaits) Answer(state, i, emit);
    // The operations are alike, so they begin in their order.
    const bool next = i == 0 || state.operations[i - 1].phase != Phase::kIdle;
    if (state.operations[i].phase != Phase::kIdle || !next) continue;
    for (const Record record : {kAdd, kPut, kDelete}) Decide(state, i, record, emit);
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
  const bool refused = (record == kAdd && present) || (record == kDelete && !present);
  State next = state;
  if (record != kPut && present != Present(state, state.log_end)) next.wrong = kDecision;
  Operation& it = next.operations[operation];
  it.phase = Phase::kWaits;
  if (refused) {
    // Of an eviction nobody needs to hear again.
    it.position = rules_.refusals_wait && state.log[by] != kEvict ? by : 0;
    // Whoever is refused knows of that write.
    if (!rules_.refusals_wait && state.log[by] != kEvict)
      next.answered = std::max(next.answered, by);
    return emit("a write is refused", next);
  }
  next.log[++next.log_end] = record;
  it.position = next.log_end;
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
  if (state.log[next.published] != kEvict) {  // that happened when it was recorded
    if (next.published < state.memory) next.wrong = kBack;
    next.memory = next.published;
    next.torn = 0;
  }
  emit("a write is published", next);
}

void WaitingModel::Evict(const State& state, const Emit& emit) const {
  if (state.evictions_left == 0 || !Present(state, state.memory)) return;
  if (rules_.spares_waiting_keys && state.published < state.log_end) return;
  State next = state;
  --next.evictions_left;
  next.log[++next.log_end] = kEvict;
  next.memory = next.log_end;
  emit("the key is evicted", next);
}

void WaitingModel::Look(const State& state, const Emit& emit) {
  State next = state;
  if (state.torn) next.wrong = kUnreadable;
  if (state.memory < state.answered) next.wrong = kStale;
  if (state.log[state.memory] != kEvict) next.seen = std::max(next.seen, state.memory);
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
    default:
      return nullptr;
  }
}

}  // namespace gannet::model
