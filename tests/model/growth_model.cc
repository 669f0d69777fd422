#include "tests/model/growth_model.h"

#include <algorithm>
#include <cstdlib>

namespace gannet::model::growth {
namespace {

using State = GrowthModel::State;
using Words = std::array<uint8_t, kGrowthWords>;

// A bucket's second word: version, and the flag.
constexpr uint8_t kVersionMask = 0x0f;
constexpr uint8_t kFlag = 0x10;
// Two contents of a bucket have one checksum only if all their words are the same.
uint8_t ChecksumOf(uint8_t slot, uint8_t meta) { return static_cast<uint8_t>(meta << 2 | slot); }
bool Whole(const Words& words, int index) {
  return words[GrowthChecksum(index)] ==
         ChecksumOf(words[GrowthSlot(index)], words[GrowthMeta(index)]);
}
// A live commit word is its value's checksum; 0 is dead.
bool ItemWhole(const Words& words, int block) {
  return words[GrowthCommit(block)] != 0 && words[GrowthCommit(block)] == words[GrowthValue(block)];
}

void Plan(State* state, GrowthWord word, uint8_t value, uint8_t truth = GrowthModel::kSameTruth) {
  if (state->plan_size == GrowthModel::kStoresMax) std::abort();
  state->plan[state->plan_size++] = {word, value, truth};
}
// A word as it will be after all that is planned.
uint8_t Planned(const State& state, GrowthWord word) {
  uint8_t value = state.memory[word];
  for (int i = 0; i < state.plan_size; ++i) {
    if (state.plan[i].word == word) value = state.plan[i].value;
  }
  return value;
}

bool Covers(GrowthModel::Phase phase, uint8_t block, GrowthWord word) {
  const bool of_old = word < GrowthSlot(1);
  const bool of_new = !of_old && word < GrowthCommit(0);
  switch (phase) {
    case GrowthModel::Phase::kOld:
      return of_old;
    case GrowthModel::Phase::kNew:
      return of_new;
    case GrowthModel::Phase::kBoth:
      return of_old || of_new;
    case GrowthModel::Phase::kItem:
      return word == GrowthCommit(block) || word == GrowthValue(block);
    default:
      return false;
  }
}

void Finish(State* state, GrowthModel::Verdict verdict) {
  if (verdict == GrowthModel::Verdict::kMiss && (state->seen & 1) == 0) {
    verdict = GrowthModel::Verdict::kFalseMiss;
  }
  *state = {};
  state->phase = GrowthModel::Phase::kDone;
  state->verdict = verdict;
}

}  // namespace

std::vector<State> GrowthModel::Initial() const {
  State state{};
  state.next_value = 1;
  state.operations_left = operations_max_;
  if (k_present_) {
    state.memory[GrowthValue(0)] = state.memory[GrowthCommit(0)] = state.truth = state.next_value++;
    state.memory[GrowthSlot(0)] = state.block = 1;
  }
  for (int i = 0; i < kGrowthIndexes; ++i) {
    state.memory[GrowthChecksum(i)] =
        ChecksumOf(state.memory[GrowthSlot(i)], state.memory[GrowthMeta(i)]);
  }
  return {state};
}

void GrowthModel::Next(const State& state, const Emit& emit) const {
  if (state.phase == Phase::kDone) return;
  if (state.plan_size > 0) {
    StoreNext(state, emit);
  } else {
    StartStep(state, emit);
  }
  if (state.phase == Phase::kIdle) return BeginLookup(state, emit);
  emit("READ completes", Advance(state));
}

void GrowthModel::StoreNext(const State& state, const Emit& emit) const {
  State next = state;
  const Store store = state.plan[0];
  std::copy(state.plan.begin() + 1, state.plan.end(), next.plan.begin());
  next.plan.back() = {};
  --next.plan_size;
  next.memory[store.word] = store.value;
  if (store.truth != kSameTruth) {
    next.truth = store.truth;
    if (state.phase != Phase::kIdle) next.seen |= 1 << store.truth;
  }
  emit("store", next);
  const bool sampled = (state.sampled >> store.word & 1) != 0;
  if (sampled || !Covers(state.phase, state.item, store.word)) return;
  if (state.memory[store.word] == store.value) return;
  next.sampled |= static_cast<uint16_t>(1 << store.word);
  next.copy[store.word] = state.memory[store.word];
  emit("store, the READ samples the word just before", next);
}

void GrowthModel::StartStep(const State& state, const Emit& emit) const {
  if (state.started == 0) {
    State next = state;
    next.started = 1;
    emit("growth begins", next);
  } else if (state.migrated == 0) {
    State next = state;
    Migrate(&next);
    emit("migrate the home", next);
  }
  if (state.started != 0 && state.switched == 0 &&
      (state.migrated != 0 || !rules_.all_before_switch)) {
    State next = state;
    next.switched = 1;
    emit("lookups begin at the new index", next);
  }
  if (MayFree(state)) {
    State next = state;
    next.freed = 1;
    // What may come to lie there, in the worst case: an empty bucket.
    Plan(&next, GrowthSlot(0), 0);
    const uint8_t meta = static_cast<uint8_t>(state.memory[GrowthMeta(0)] + 1) & kVersionMask;
    Plan(&next, GrowthMeta(0), meta);
    Plan(&next, GrowthChecksum(0), ChecksumOf(0, meta));
    emit("the old index's memory is used for something else", next);
  }
  if (state.operations_left > 0) StartWrites(state, emit);
}

bool GrowthModel::MayFree(const State& state) const {
  if (state.switched == 0 || state.migrated == 0 || state.freed != 0) return false;
  const bool reads_old = state.phase != Phase::kIdle && state.knows != Knows::kNewOnly;
  return !reads_old || !rules_.free_after_acknowledged;
}

void GrowthModel::StartWrites(const State& state, const Emit& emit) const {
  const auto begin = [&] {
    State next = state;
    --next.operations_left;
    if (next.started != 0 && next.migrated == 0 && rules_.migrate_before_write) Migrate(&next);
    return next;
  };
  if (state.truth == 0) {
    State next = begin();
    next.block = 1;
    const uint8_t value = next.next_value++;
    Plan(&next, GrowthValue(0), value);
    PublishSlot(&next, 1);
    Plan(&next, GrowthCommit(0), value, value);
    return emit("insert K", next);
  }
  State gone = begin();
  Plan(&gone, GrowthCommit(gone.block - 1), 0, 0);
  gone.block = 0;
  PublishSlot(&gone, 0);
  emit("delete K", gone);

  State next = begin();
  const int from = next.block - 1;
  const int to = 1 - from;
  const uint8_t value = next.next_value++;
  Plan(&next, GrowthValue(to), value);
  Plan(&next, GrowthCommit(from), 0);
  Plan(&next, GrowthCommit(to), value, value);
  next.block = static_cast<uint8_t>(to + 1);
  PublishSlot(&next, next.block);
  emit("replace K out of place", next);
}

void GrowthModel::Migrate(State* state) const {
  const uint8_t slot = state->memory[GrowthSlot(0)];
  state->migrated = 1;
  if (!rules_.copy_before_flag) Publish(state, 0, slot, true);
  if (slot != 0) Publish(state, 1, slot, false);
  if (rules_.copy_before_flag) Publish(state, 0, slot, true);
  if (!rules_.old_slots_stay && slot != 0) Plan(state, GrowthSlot(0), 0);
}

void GrowthModel::PublishSlot(State* state, uint8_t slot) const {
  const bool growing = state->started != 0;
  const bool in_new =
      state->migrated != 0 ? rules_.write_to_new : growing && !rules_.migrate_before_write;
  Publish(state, in_new ? 1 : 0, slot, !in_new && state->migrated != 0);
}

void GrowthModel::Publish(State* state, int index, uint8_t slot, bool flag) const {
  const uint8_t version =
      static_cast<uint8_t>(Planned(*state, GrowthMeta(index)) + 1) & kVersionMask;
  const uint8_t meta = version | (flag ? kFlag : 0);
  if (Planned(*state, GrowthSlot(index)) != slot) Plan(state, GrowthSlot(index), slot);
  Plan(state, GrowthMeta(index), meta);
  Plan(state, GrowthChecksum(index), ChecksumOf(slot, meta));
}

void GrowthModel::BeginLookup(const State& state, const Emit& emit) const {
  const auto begin = [&](Knows knows, Phase phase, const char* label) {
    State next = state;
    next.seen = static_cast<uint8_t>(1 << state.truth);
    next.knows = knows;
    next.phase = phase;
    emit(label, next);
  };
  if (state.freed == 0 || !rules_.free_after_acknowledged) {
    begin(Knows::kOldOnly, Phase::kOld, "lookup begins, knows the old index");
    if (state.started != 0) {
      begin(Knows::kBoth, rules_.read_new_after_flag ? Phase::kOld : Phase::kBoth,
            "lookup begins, knows both");
    }
  }
  if (state.switched != 0) begin(Knows::kNewOnly, Phase::kNew, "lookup begins at the new index");
}

State GrowthModel::Advance(State state) const {
  Words copy;
  for (int word = 0; word < kGrowthWords; ++word) {
    copy[word] = (state.sampled >> word & 1) != 0 ? state.copy[word] : state.memory[word];
  }
  state.copy = {};
  state.sampled = 0;
  switch (state.phase) {
    case Phase::kOld:
    case Phase::kBoth:
      AfterOld(&state, copy);
      break;
    case Phase::kNew:
      AfterNew(&state, copy);
      break;
    case Phase::kItem: {
      const int block = state.item;
      if (!ItemWhole(copy, block)) {
        Finish(&state, Verdict::kRetry);
      } else {
        const bool was = (state.seen >> copy[GrowthValue(block)] & 1) != 0;
        Finish(&state, was ? Verdict::kHit : Verdict::kWrongHit);
      }
      break;
    }
    default:
      break;
  }
  return state;
}

void GrowthModel::AfterOld(State* state, const Words& copy) const {
  const bool flag = (copy[GrowthMeta(0)] & kFlag) != 0 && rules_.flag_looked_at;
  if (flag) {
    if (state->knows == Knows::kOldOnly) return Finish(state, Verdict::kRetry);
    if (state->phase == Phase::kBoth) return AfterNew(state, copy);
    state->phase = Phase::kNew;
    return;
  }
  if (copy[GrowthSlot(0)] != 0) {
    state->item = static_cast<uint8_t>(copy[GrowthSlot(0)] - 1);
    state->phase = Phase::kItem;
    return;
  }
  Finish(state, Whole(copy, 0) || !rules_.bucket_checksum ? Verdict::kMiss : Verdict::kRetry);
}

void GrowthModel::AfterNew(State* state, const Words& copy) const {
  if (copy[GrowthSlot(1)] != 0) {
    state->item = static_cast<uint8_t>(copy[GrowthSlot(1)] - 1);
    state->phase = Phase::kItem;
    return;
  }
  Finish(state, Whole(copy, 1) || !rules_.bucket_checksum ? Verdict::kMiss : Verdict::kRetry);
}

const char* GrowthModel::Broken(const State& state) const {
  if (state.verdict == Verdict::kFalseMiss) return "a miss, but the key was there all the time";
  if (state.verdict == Verdict::kWrongHit) return "a value that the key did not have";
  return nullptr;
}

}  // namespace gannet::model::growth
