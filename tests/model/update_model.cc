#include "tests/model/update_model.h"

#include <algorithm>

#include "tests/model/plan.h"

namespace gannet::model::update {
namespace {

constexpr uint16_t kLive = 1 << 15;

uint16_t CommitOf(uint16_t key_word, uint16_t first, uint16_t last) {
  return kLive | key_word << 12 | first << 6 | last;
}
uint8_t WordOf(uint8_t block, uint8_t item_word) {
  return block * UpdateModel::kItemWords + item_word;
}

UpdateModel::State Do(const UpdateModel::State& state, int i) {
  return PerformStore<UpdateModel>(state, i, state.reading != UpdateModel::kNowhere);
}

}  // namespace

std::vector<UpdateModel::State> UpdateModel::Initial() const {
  State state{};
  state.next_version = 1;
  state.block_of = {kNowhere, kNowhere};
  state.reading = kNowhere;
  state.operations_left = 1;
  state = Insert(state, kKeyK, 0);
  while (state.plan_size > 0) state = Do(state, 0);
  state.operations_left = operations_;
  state.gets_left = gets_;
  return {state};
}

void UpdateModel::Next(const State& state, const Emit& emit) const {
  if (state.plan_size > 0) {
    StoreNext(state, emit);
  } else if (state.operations_left > 0) {
    StartOperation(state, emit);
  }
  if (state.reading != kNowhere) return emit("READ completes", Complete(state));
  for (uint8_t block = 0; block < kBlocks && state.gets_left > 0; ++block) {
    if ((state.known >> block & 1) == 0) continue;
    State next = state;
    next.reading = block;
    next.seen = 1 << state.truth;
    --next.gets_left;
    emit("GET posts a READ", next);
  }
}

void UpdateModel::StoreNext(const State& state, const Emit& emit) const {
  for (int i = 0; i < state.plan_size && state.plan[i].group == state.plan[0].group; ++i) {
    const uint8_t word = state.plan[i].word;
    const uint8_t item_word = word % kItemWords;
    State next = Do(state, i);
    emit("store", next);
    const bool covered = state.reading == word / kItemWords && !(state.sampled >> item_word & 1);
    if (!covered || state.memory[word] == next.memory[word]) continue;
    next.sampled |= 1 << item_word;
    next.copy[item_word] = state.memory[word];
    emit("store, the READ samples the word just before", next);
  }
}

void UpdateModel::StartOperation(const State& state, const Emit& emit) const {
  for (const Key key : {kKeyK, kKeyX}) {
    const bool k = key == kKeyK;
    const bool present = state.block_of[key] != kNowhere;
    if (present) {
      emit(k ? "delete K" : "delete X", Delete(state, key));
      emit(k ? "replace K in place" : "replace X in place", ReplaceInPlace(state, key));
    }
    for (uint8_t block = 0; block < kBlocks; ++block) {
      if (block == state.block_of[kKeyK] || block == state.block_of[kKeyX]) continue;
      if (present) {
        emit(k ? "replace K out of place" : "replace X out of place",
             ReplaceOutOfPlace(state, key, block));
        // To a reader of K, a move of X looks like a replacement of X.
        if (k) emit("move K", Move(state, key, block));
      } else {
        emit(k ? "insert K" : "insert X", Insert(state, key, block));
      }
    }
  }
}

UpdateModel::State UpdateModel::Insert(State state, Key key, uint8_t block) const {
  const uint8_t version = state.next_version++;
  WriteContent(&state, key, block, 0, version);
  SetLive(&state, key, block, 1, version);
  state.block_of[key] = block;
  if (key == kKeyK) state.known |= 1 << block;
  AcknowledgeFirst(&state);
  --state.operations_left;
  return state;
}

UpdateModel::State UpdateModel::ReplaceInPlace(State state, Key key) const {
  const uint8_t block = state.block_of[key];
  const uint8_t version = state.next_version++;
  WriteContent(&state, key, block, 0, version);
  // The weaker rule: the stores to the commit word and to the content happen in any order.
  SetLive(&state, key, block, rules_.content_before_commit ? 1 : 0, version);
  AcknowledgeFirst(&state);
  --state.operations_left;
  return state;
}

UpdateModel::State UpdateModel::ReplaceOutOfPlace(State state, Key key, uint8_t block) const {
  const uint8_t version = state.next_version++;
  WriteContent(&state, key, block, 0, version);
  const bool dead_first = rules_.old_dead_before_new_live;
  if (dead_first) SetDead(&state, state.block_of[key], 1, kSameTruth);
  SetLive(&state, key, block, 2, version);
  if (!dead_first) SetDead(&state, state.block_of[key], 3, kSameTruth);
  state.block_of[key] = block;
  if (key == kKeyK) state.known |= 1 << block;
  AcknowledgeFirst(&state);
  --state.operations_left;
  return state;
}

UpdateModel::State UpdateModel::Move(State state, Key key, uint8_t block) const {
  const uint8_t from = state.block_of[key];
  const auto version = static_cast<uint8_t>(state.memory[WordOf(from, kValueFirst)]);
  WriteContent(&state, key, block, 0, version);
  const bool dead_first = rules_.old_dead_before_new_live;
  if (rules_.mark_dead_on_move && dead_first) SetDead(&state, from, 1, kSameTruth);
  SetLive(&state, key, block, 2, version);
  if (rules_.mark_dead_on_move && !dead_first) SetDead(&state, from, 3, kSameTruth);
  state.block_of[key] = block;
  if (key == kKeyK) state.known |= 1 << block;
  --state.operations_left;
  return state;
}

UpdateModel::State UpdateModel::Delete(State state, Key key) const {
  const uint16_t truth = key == kKeyK ? 0 : kSameTruth;
  if (rules_.mark_dead_on_delete) {
    SetDead(&state, state.block_of[key], 0, truth);
  } else {
    // The block stays as it is. A word outside it changes, which stands for the slot.
    AddStore<UpdateModel>(&state, 0, WordOf(state.block_of[key], kKey),
                          state.memory[WordOf(state.block_of[key], kKey)], truth);
  }
  state.block_of[key] = kNowhere;
  --state.operations_left;
  return state;
}

void UpdateModel::WriteContent(State* state, Key key, uint8_t block, uint8_t group,
                               uint8_t version) const {
  AddStore<UpdateModel>(state, group, WordOf(block, kKey), key + 1);
  AddStore<UpdateModel>(state, group, WordOf(block, kValueFirst), version);
  AddStore<UpdateModel>(state, group, WordOf(block, kValueLast), version);
  if (!rules_.state_in_commit_word) {
    AddStore<UpdateModel>(state, group, WordOf(block, kCommit),
                          CommitOf(key + 1, version, version));
  }
}

void UpdateModel::SetLive(State* state, Key key, uint8_t block, uint8_t group,
                          uint8_t version) const {
  const uint16_t truth = key == kKeyK ? version : kSameTruth;
  if (rules_.state_in_commit_word) {
    AddStore<UpdateModel>(state, group, WordOf(block, kCommit), CommitOf(key + 1, version, version),
                          truth);
  } else {
    AddStore<UpdateModel>(state, group, WordOf(block, kLiveState), 1, truth);
  }
}

void UpdateModel::SetDead(State* state, uint8_t block, uint8_t group, uint16_t truth) const {
  AddStore<UpdateModel>(
      state, group, WordOf(block, rules_.state_in_commit_word ? kCommit : kLiveState), 0, truth);
}

// The weaker variant: the write counts as done from its first store on.
void UpdateModel::AcknowledgeFirst(State* state) const {
  if (rules_.acknowledge_last) return;
  for (int i = 1; i < state->plan_size; ++i) {
    if (state->plan[i].truth != kSameTruth) std::swap(state->plan[0].truth, state->plan[i].truth);
  }
}

UpdateModel::State UpdateModel::Complete(State state) const {
  std::array<uint16_t, kItemWords> item;
  for (uint8_t i = 0; i < kItemWords; ++i) {
    item[i] = (state.sampled >> i & 1) ? state.copy[i] : state.memory[WordOf(state.reading, i)];
  }
  if (Proves(item)) {
    const uint16_t version = item[kValueFirst];
    if (version != item[kValueLast]) {
      state.broken = Breach::kTornValue;
    } else if ((state.seen >> version & 1) == 0) {
      state.broken = Breach::kWrongValue;
    } else if (version < state.last_version) {
      state.broken = Breach::kVersionWentBack;
    }
    state.last_version = static_cast<uint8_t>(version);
  }
  state.reading = kNowhere;
  state.sampled = 0;
  state.copy = {};
  state.seen = 0;
  return state;
}

bool UpdateModel::Proves(const std::array<uint16_t, kItemWords>& item) const {
  const bool live =
      rules_.state_in_commit_word ? (item[kCommit] & kLive) != 0 : item[kLiveState] == 1;
  const bool whole = !rules_.item_checksum ||
                     item[kCommit] == CommitOf(item[kKey], item[kValueFirst], item[kValueLast]);
  return live && whole && item[kKey] == kKeyK + 1;
}

int UpdateModel::LiveItemsOfK(const State& state) const {
  int live = 0;
  for (uint8_t block = 0; block < kBlocks; ++block) {
    std::array<uint16_t, kItemWords> item;
    std::copy_n(state.memory.begin() + WordOf(block, 0), kItemWords, item.begin());
    live += Proves(item);
  }
  return live;
}

const char* UpdateModel::Broken(const State& state) const {
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
  if (!rules_.count_live_items) return nullptr;
  if (LiveItemsOfK(state) > 1) return "two live items of one key";
  if (state.plan_size == 0 && LiveItemsOfK(state) != (state.truth != 0)) {
    return "a key at rest without exactly one live item";
  }
  return nullptr;
}

const char* UpdateModel::BrokenAtRest(const State&) const { return nullptr; }

}  // namespace gannet::model::update
