#include "tests/model/lookup_model.h"

#include "tests/model/lookup_reader.h"
#include "tests/model/lookup_writer.h"
#include "tests/model/plan.h"

namespace gannet::model::lookup {
namespace {

LookupModel::State Do(const LookupModel::State& state, int i) {
  return PerformStore<LookupModel>(state, i, state.phase != LookupModel::Phase::kIdle);
}

bool HasRoom(const LookupModel::State& state, int bucket) {
  return Writer::FreeSlot(state, bucket) >= 0;
}

template <class Use>
void ForFreeBlocks(const LookupModel::State& state, const Use& use) {
  for (int block = 0; block < kBlocks; ++block) {
    if (Writer::BlockFree(state, block)) use(block);
  }
}

}  // namespace

std::vector<LookupModel::State> LookupModel::Initial() const {
  State state{};
  state.next_value = 1;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    state.memory[ChecksumWord(bucket)] = BucketContent(state.memory, bucket);
  }
  const auto insert = [&](Key key, Bucket bucket, int block) {
    state = Writer(rules_, state).Insert(key, bucket, block);
    while (state.plan_size > 0) state = Do(state, 0);
  };
  if (scenario_.k_present) insert(kKeyK, scenario_.k, 0);
  if (scenario_.x_present) insert(kKeyX, scenario_.x, 1);
  state.operations_left = scenario_.operations_max;
  return {state};
}

void LookupModel::Next(const State& state, const Emit& emit) const {
  if (state.phase == Phase::kDone) return;
  if (state.plan_size > 0) {
    StoreNext(state, emit);
  } else if (state.operations_left > 0) {
    StartOperation(state, emit);
  }
  emit(state.phase == Phase::kIdle ? "lookup begins" : "READ completes",
       Reader(rules_, state).Advance());
}

void LookupModel::StoreNext(const State& state, const Emit& emit) const {
  for (int i = 0; i < state.plan_size && state.plan[i].group == state.plan[0].group; ++i) {
    const Word word = state.plan[i].word;
    State next = Do(state, i);
    emit("store", next);
    if (state.memory[word] == next.memory[word] || !Reader::MaySample(state, word)) {
      continue;
    }
    next.sampled |= 1u << word;
    next.copy[word] = state.memory[word];
    emit("store, the READ samples the word just before", next);
  }
}

void LookupModel::StartOperation(const State& state, const Emit& emit) const {
  for (const Key key : {kKeyK, kKeyX}) {
    if (!state.places[key].present) {
      StartInsert(state, key, emit);
    } else {
      StartWrite(state, key, emit);
      StartMove(state, key, emit);
    }
  }
}

void LookupModel::StartInsert(const State& state, Key key, const Emit& emit) const {
  if (!Allowed(key == kKeyK ? kInsertK : kInsertX)) return;
  for (const Bucket bucket : {kHome, kNext, kStash, kElsewhere}) {
    if ((key == kKeyK && bucket == kElsewhere) || !HasRoom(state, bucket)) continue;
    ForFreeBlocks(state, [&](int block) {
      emit(key == kKeyK ? "insert K" : "insert X",
           Writer(rules_, state).Insert(key, bucket, block));
    });
  }
}

void LookupModel::StartWrite(const State& state, Key key, const Emit& emit) const {
  const bool k = key == kKeyK;
  if (Allowed(k ? kDeleteK : kDeleteX)) {
    emit(k ? "delete K" : "delete X", Writer(rules_, state).Delete(key));
  }
  if (k && Allowed(kReplaceKInPlace)) {
    emit("replace K in place", Writer(rules_, state).ReplaceInPlace(key));
  }
  ForFreeBlocks(state, [&](int block) {
    if (Allowed(k ? kReplaceKOutOfPlace : kReplaceXOutOfPlace)) {
      emit(k ? "replace K out of place" : "replace X out of place",
           Writer(rules_, state).ReplaceOutOfPlace(key, block));
    }
    if (!rules_.free_after_publication && k && !state.places[kKeyX].present) {
      emit("replace K out of place, freeing early",
           Writer(rules_, state).ReplaceOutOfPlaceFreeingEarly(block));
    }
  });
}

void LookupModel::StartMove(const State& state, Key key, const Emit& emit) const {
  const bool k = key == kKeyK;
  const uint8_t from = state.places[key].bucket;
  if (from == kElsewhere) return;
  const bool stash_moves = Allowed(k ? kMoveKStash : kMoveXStash);
  if (from == kStash) {
    for (const Bucket to : {kHome, kNext}) {
      if (!stash_moves || !HasRoom(state, to)) continue;
      emit(k ? "move K from the stash" : "move X from the stash",
           Writer(rules_, state).MoveFromStash(key, to));
    }
    return;
  }
  if (stash_moves && HasRoom(state, kStash)) {
    emit(k ? "move K to the stash" : "move X to the stash", Writer(rules_, state).MoveToStash(key));
  }
  if (Allowed(k ? kMoveK : kMoveX) && HasRoom(state, from == kHome ? kNext : kHome)) {
    emit(k ? "move K in the window" : "move X in the window",
         Writer(rules_, state).MoveInWindow(key));
  }
}

const char* LookupModel::Broken(const State& state) const {
  if (state.verdict == Verdict::kFalseMiss) return "a miss, but the key was there all the time";
  if (state.verdict == Verdict::kWrongHit) return "a value that the key did not have";
  return nullptr;
}

}  // namespace gannet::model::lookup
