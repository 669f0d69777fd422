#include "tests/model/large_model.h"

#include "tests/model/plan.h"

namespace gannet::model::large {
namespace {

constexpr uint16_t kLive = 1 << 15;
constexpr uint8_t kValueWords = 1 << LargeModel::kValueFirst | 1 << LargeModel::kValueLast;
constexpr uint8_t kCommitWord = 1 << LargeModel::kCommit;

uint8_t WordOf(uint8_t block, uint8_t item_word) {
  return block * LargeModel::kItemWords + item_word;
}
uint8_t VersionOf(uint16_t commit) { return commit >> 6 & 0x3f; }

LargeModel::State Do(const LargeModel::State& state, int i) {
  return PerformStore<LargeModel>(state, i, state.phase != LargeModel::Phase::kIdle);
}

void EndGet(LargeModel::State* state) {
  state->phase = LargeModel::Phase::kIdle;
  state->reading = LargeModel::kNowhere;
  state->sampled = 0;
  state->copy = {};
  state->value = {};
  state->first_commit = 0;
  state->seen = 0;
}

}  // namespace

std::vector<LargeModel::State> LargeModel::Initial() const {
  State state{};
  state.next_version = state.next_placing = 1;
  state.block_of = {kNowhere, kNowhere};
  state.reading = state.remembered_block = kNowhere;
  state.operations_left = 1;
  state = Put(state, kKeyK, 0);
  while (state.plan_size > 0) state = Do(state, 0);
  state.operations_left = operations_;
  state.gets_left = gets_;
  return {state};
}

void LargeModel::Next(const State& state, const Emit& emit) const {
  if (state.plan_size > 0) {
    StoreNext(state, emit);
  } else if (state.operations_left > 0) {
    StartOperation(state, emit);
  }
  if (state.phase != Phase::kIdle) return emit("READ completes", CompleteRead(state));
  if (state.gets_left > 0) StartGets(state, emit);
}

void LargeModel::StoreNext(const State& state, const Emit& emit) const {
  for (int i = 0; i < state.plan_size && state.plan[i].group == state.plan[0].group; ++i) {
    const uint8_t word = state.plan[i].word;
    const uint8_t bit = 1 << word % kItemWords;
    State next = Do(state, i);
    emit("store", next);
    const bool covered = state.reading == word / kItemWords && (Covered(state) & bit) != 0 &&
                         (state.sampled & bit) == 0;
    if (!covered || state.memory[word] == next.memory[word]) continue;
    next.sampled |= bit;
    next.copy[word % kItemWords] = state.memory[word];
    emit("store, the READ samples the word just before", next);
  }
}

void LargeModel::StartOperation(const State& state, const Emit& emit) const {
  for (const Key key : {kKeyK, kKeyX}) {
    const bool k = key == kKeyK;
    const bool present = state.block_of[key] != kNowhere;
    if (present) emit(k ? "delete K" : "delete X", Delete(state, key));
    if (present) emit("replace where it is, dead first", PutOverDead(state, key));
    if (present && !rules_.out_of_place) emit("replace in place", PutInPlace(state, key));
    for (uint8_t block = 0; block < kBlocks; ++block) {
      if (block == state.block_of[kKeyK] || block == state.block_of[kKeyX]) continue;
      emit(k ? "put K" : "put X", Put(state, key, block));
      // To a reader of K, a move of X looks like a replacement of X.
      if (k && present) emit("move K", Move(state, key, block));
    }
  }
}

void LargeModel::StartGets(const State& state, const Emit& emit) const {
  for (uint8_t block = 0; block < kBlocks; ++block) {
    if ((state.known >> block & 1) == 0) continue;
    State next = state;
    next.reading = block;
    next.seen = 1 << state.truth;
    --next.gets_left;
    next.phase = rules_.first_header ? Phase::kHeader : Phase::kValue;
    emit("GET posts its first READ", next);
    next.phase = Phase::kHead;
    emit("Exists READs the head", next);
    if (block == state.remembered_block) {
      next.phase = Phase::kKnownHead;
      next.first_commit = state.remembered;
      emit("Exists of a remembered item READs its commit word", next);
      next.first_commit = 0;
    }
    if (!rules_.first_header || block != state.remembered_block) continue;
    next.phase = Phase::kValue;
    next.first_commit = state.remembered;
    emit("GET of a remembered item READs its value", next);
  }
}

void LargeModel::Place(State* state, Key key, uint8_t block, uint8_t version, bool kill_old) const {
  const uint8_t placing = rules_.commit_names_placing ? state->next_placing++ : 0;
  const uint16_t commit = kLive | key << 12 | version << 6 | placing;
  const uint16_t truth = key == kKeyK ? version : kSameTruth;
  const uint8_t old = state->block_of[key];
  // The weaker rule: a block that was freed dies only together with its next content.
  AddStore<LargeModel>(state, rules_.dead_before_reuse ? 0 : 1, WordOf(block, kCommit), 0);
  AddStore<LargeModel>(state, 1, WordOf(block, kValueFirst), version);
  AddStore<LargeModel>(state, 1, WordOf(block, kValueLast), version);
  if (kill_old && rules_.old_dead_before_new_live)
    AddStore<LargeModel>(state, 2, WordOf(old, kCommit), 0);
  AddStore<LargeModel>(state, rules_.content_before_live ? 3 : 1, WordOf(block, kCommit), commit,
                       truth);
  if (kill_old && !rules_.old_dead_before_new_live)
    AddStore<LargeModel>(state, 4, WordOf(old, kCommit), 0);
  state->block_of[key] = block;
  if (key == kKeyK) state->known |= 1 << block;
  --state->operations_left;
}

LargeModel::State LargeModel::Put(State state, Key key, uint8_t block) const {
  Place(&state, key, block, state.next_version++, state.block_of[key] != kNowhere);
  return state;
}

// As the server does if the heap has no other block.
LargeModel::State LargeModel::PutOverDead(State state, Key key) const {
  Place(&state, key, state.block_of[key], state.next_version++, /*kill_old=*/false);
  return state;
}

// The weaker rule: the value is overwritten under the old commit word.
LargeModel::State LargeModel::PutInPlace(State state, Key key) const {
  const uint8_t version = state.next_version++;
  const uint8_t block = state.block_of[key];
  const uint16_t commit = kLive | key << 12 | version << 6 | state.next_placing++;
  AddStore<LargeModel>(&state, 0, WordOf(block, kValueFirst), version);
  AddStore<LargeModel>(&state, 0, WordOf(block, kValueLast), version);
  AddStore<LargeModel>(&state, 1, WordOf(block, kCommit), commit,
                       key == kKeyK ? version : kSameTruth);
  --state.operations_left;
  return state;
}

LargeModel::State LargeModel::Move(State state, Key key, uint8_t block) const {
  const uint8_t version = VersionOf(state.memory[WordOf(state.block_of[key], kCommit)]);
  Place(&state, key, block, version, true);
  return state;
}

LargeModel::State LargeModel::Delete(State state, Key key) const {
  const uint8_t block = state.block_of[key];
  const uint16_t commit = rules_.dead_before_reuse ? 0 : state.memory[WordOf(block, kCommit)];
  AddStore<LargeModel>(&state, 0, WordOf(block, kCommit), commit, key == kKeyK ? 0 : kSameTruth);
  state.block_of[key] = kNowhere;
  --state.operations_left;
  return state;
}

uint8_t LargeModel::Covered(const State& state) const {
  switch (state.phase) {
    case Phase::kIdle:
      return 0;
    case Phase::kHeader:
    case Phase::kConfirm:
    case Phase::kHead:
    case Phase::kKnownHead:
      return kCommitWord;
    case Phase::kValue:
      break;
  }
  // The weaker rules: a commit word comes in any order with the value.
  const bool commit_too = !rules_.first_header || !rules_.second_after_value;
  return kValueWords | (commit_too ? kCommitWord : 0);
}

LargeModel::State LargeModel::CompleteRead(State state) const {
  std::array<uint16_t, kItemWords> item;
  for (uint8_t i = 0; i < kItemWords; ++i) {
    item[i] = (state.sampled >> i & 1) ? state.copy[i] : state.memory[WordOf(state.reading, i)];
  }
  state.sampled = 0;
  state.copy = {};
  switch (state.phase) {
    case Phase::kHeader:
      state.first_commit = item[kCommit];
      state.phase = Phase::kValue;
      if (!IsLiveK(state.first_commit)) EndGet(&state);
      return state;
    case Phase::kValue:
      state.value = {item[kValueFirst], item[kValueLast]};
      if (!rules_.first_header) state.first_commit = item[kCommit];
      if (!IsLiveK(state.first_commit)) {
        EndGet(&state);
        return state;
      }
      if (!rules_.second_header) return Answer(state);
      state.phase = Phase::kConfirm;
      if (rules_.second_after_value) return state;
      [[fallthrough]];
    case Phase::kConfirm:
      if (item[kCommit] == state.first_commit) return Answer(state);
      EndGet(&state);
      return state;
    case Phase::kHead:
    case Phase::kKnownHead:
      if (ProvesHead(state, item[kCommit])) {
        if (state.phase == Phase::kHead) state.first_commit = item[kCommit];
        return AnswerVersion(state);
      }
      [[fallthrough]];
    case Phase::kIdle:
      EndGet(&state);
      return state;
  }
  return state;
}

LargeModel::State LargeModel::Answer(State state) const {
  if (state.value[0] != state.value[1]) {
    state.broken = Breach::kTornValue;
  } else if (state.value[0] != VersionOf(state.first_commit)) {
    state.broken = Breach::kWrongValue;
  }
  return AnswerVersion(state);
}

bool LargeModel::ProvesHead(const State& state, uint16_t commit) const {
  const bool proves = rules_.head_names_key ? IsLiveK(commit) : (commit & kLive) != 0;
  if (state.phase == Phase::kHead || !rules_.same_head) return proves;
  return commit == state.first_commit;
}

LargeModel::State LargeModel::AnswerVersion(State state) const {
  const uint8_t version = VersionOf(state.first_commit);
  if (state.broken != Breach::kNothing) {
    // The value was wrong already.
  } else if ((state.seen >> version & 1) == 0) {
    state.broken = Breach::kWrongValue;
  } else if (version < state.last_version) {
    state.broken = Breach::kVersionWentBack;
  }
  state.last_version = version;
  state.remembered = state.first_commit;
  state.remembered_block = state.reading;
  EndGet(&state);
  return state;
}

bool LargeModel::IsLiveK(uint16_t commit) const {
  return (commit & kLive) != 0 && (commit >> 12 & 7) == kKeyK;
}

const char* LargeModel::Broken(const State& state) const {
  switch (state.broken) {
    case Breach::kWrongValue:
      return "a value that the key did not have during the GET";
    case Breach::kTornValue:
      return "half of one value and half of another";
    case Breach::kVersionWentBack:
      return "a version older than the reader's last";
    case Breach::kNothing:
      break;
  }
  return nullptr;
}

}  // namespace gannet::model::large
