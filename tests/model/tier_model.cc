#include "tests/model/tier_model.h"

namespace gannet::model::tier {
namespace {

using State = TierModel::State;
using Key = TierModel::Key;
using Kind = TierModel::Kind;
using Get = TierModel::Get;
using Write = TierModel::Write;
using Record = TierModel::Record;
using Reader = TierModel::Reader;

bool Reads(const State& state, uint8_t segment) {
  for (const Reader& get : state.gets) {
    if (get.phase == Get::kReads && get.stub.segment == segment) return true;
  }
  return false;
}

bool LeadsTo(const Key& key, uint8_t segment) {
  return key.kind == Kind::kStub && key.segment == segment;
}

uint8_t Bit(uint8_t value) { return static_cast<uint8_t>(1 << value); }

Key ItemOf(uint8_t value, uint8_t version) {
  return {.kind = Kind::kItem, .value = value, .version = version, .segment = 0, .record = 0};
}

bool SameRecord(const Key& a, const Key& b) {
  return a.kind == Kind::kStub && b.kind == Kind::kStub && a.segment == b.segment &&
         a.record == b.record;
}

bool UnderWay(Get phase) {
  return phase != Get::kNotBegun && phase != Get::kPromotes && phase != Get::kDone;
}

// The key is `key` from now on, and its value is `truth`.
void Become(State* state, const Key& key, uint8_t truth) {
  state->key = key;
  state->items = key.kind == Kind::kItem ? 1 : 0;
  state->truth = truth;
  if (key.kind != Kind::kItem) state->promoted = {};
  for (Reader& get : state->gets) {
    if (UnderWay(get.phase)) get.seen |= Bit(truth);
  }
}

void Answer(State* state, int g, uint8_t value) {
  Reader& get = state->gets[g];
  const uint8_t wrong = (get.seen & Bit(value)) ? 0 : 1;
  get = {.phase = Get::kDone, .seen = 0, .wrong = wrong, .stub = {}, .sample = {}};
}

void LookAgain(State* state, int g) {
  Reader& get = state->gets[g];
  get = {.phase = Get::kAsks, .seen = get.seen, .wrong = 0, .stub = {}, .sample = {}};
}

}  // namespace

void TierModel::Next(const State& state, const Emit& emit) const {
  Changes(state, emit);
  Writing(state, emit);
  BecomesStub(state, emit);
  Taking(state, emit);
  Crash(state, emit);
  for (int g = 0; g < kGets; ++g) GetSteps(state, g, emit);
}

void TierModel::Changes(const State& state, const Emit& emit) const {
  State next = state;
  if (state.version < scenario_.versions_max) {
    const uint8_t version = ++next.version;
    next.promoted = {};
    Become(&next, ItemOf(version, version), version);
    emit("the key is put", next);
    next = state;
    if (state.key.kind != Kind::kNone) {
      Key touched = state.key;
      touched.version = ++next.version;
      Become(&next, touched, state.truth);
      emit("the key is touched", next);
      next = state;
    }
  }
  if (!scenario_.evicts || state.key.kind == Kind::kNone) return;
  Become(&next, {}, kAbsent);
  emit("the key is deleted or evicted", next);
}

// The thread that writes. Other keys' values go to the disk, too.
void TierModel::Writing(const State& state, const Emit& emit) const {
  State next = state;
  if (state.write == Write::kNone && !state.full) {
    next.full = 1;
    next.write = Write::kUnderWay;
    next.writing = {kOther, 0};
    emit("another key's value is being written", next);
    next = state;
    if (state.key.kind == Kind::kItem) {
      next.full = 1;
      next.write = Write::kUnderWay;
      next.writing = {state.key.value, state.key.version};
      emit("the key's value is being written", next);
      next = state;
    }
  }
  if (state.write == Write::kUnderWay) {
    next.disk[state.newest] = {kOther, 0};
    if (next.disk != state.disk) emit("half of a record is on the disk", next);
    next.write = Write::kCompleted;
    if (state.lies < scenario_.lies_max) {
      State lied = next;
      lied.disk = state.disk;
      ++lied.lies;
      emit("a write is lost", lied);
    }
    next.disk[state.newest] = state.writing;
    emit("a write completes", next);
    next = state;
  }
  if (!state.late) return;
  next.late = 0;
  next.disk[state.late_segment] = state.late_record;
  emit("a write of the former process completes", next);
}

void TierModel::BecomesStub(const State& state, const Emit& emit) const {
  const Key& key = state.key;
  State next = state;
  const bool written = state.write == Write::kCompleted ||
                       (state.write == Write::kUnderWay && !rules_.write_completes_first);
  const bool of_key = state.writing.version != 0;
  if (written && key.kind == Kind::kItem && of_key &&
      (key.version == state.writing.version || !rules_.compares_versions)) {
    Become(&next,
           {.kind = Kind::kStub,
            .value = state.writing.value,
            .version = key.version,
            .segment = state.newest,
            .record = state.writing.version},
           state.truth);
    emit("the item becomes a stub", next);
    next = state;
  }
  if (state.write == Write::kCompleted) {
    next.write = Write::kNone;
    next.writing = {};
    emit("the writing thread goes on", next);
    next = state;
  }
  if (key.kind != Kind::kItem || state.promoted.kind == Kind::kNone) return;
  Key stub = state.promoted;
  stub.version = key.version;
  Become(&next, stub, state.truth);
  emit("a promoted item becomes a stub again", next);
}

void TierModel::Taking(const State& state, const Emit& emit) const {
  if (!state.full || state.write != Write::kNone || state.takings == scenario_.takings_max) return;
  const auto oldest = static_cast<uint8_t>(1 - state.newest);
  State next = state;
  if (LeadsTo(state.key, oldest) && rules_.stubs_go_first) {
    Become(&next, {}, kAbsent);
    return emit("the stub in the oldest segment is evicted", next);
  }
  if (rules_.waits_for_reads && Reads(state, oldest)) return;
  ++next.takings;
  next.newest = oldest;
  next.full = 0;
  if (rules_.forgets_taken_records && LeadsTo(state.promoted, oldest)) next.promoted = {};
  emit("the oldest segment is taken again", next);
}

void TierModel::Crash(const State& state, const Emit& emit) const {
  if (state.crashes == scenario_.crashes_max) return;
  State next = state;
  ++next.crashes;
  next.gets = {};
  next.promoted = {};
  next.write = Write::kNone;
  next.writing = {};
  const bool stub = state.key.kind == Kind::kStub;
  next.newest = rules_.goes_on_behind_stubs && stub ? state.key.segment : 0;
  next.full = rules_.goes_on_behind_stubs && stub;
  if (state.write == Write::kUnderWay) {
    if (!rules_.waits_for_predecessor) {
      next.late = 1;
      next.late_segment = state.newest;
      next.late_record = state.writing;
    } else {
      next.disk[state.newest] = state.writing;
    }
  }
  emit("the process is killed, and another one takes over", next);
  if (!rules_.waits_for_predecessor || state.write != Write::kUnderWay) return;
  next.disk[state.newest] = {kOther, 0};
  emit("the process is killed, and half of its write is done", next);
}

void TierModel::GetSteps(const State& state, int g, const Emit& emit) const {
  State next = state;
  Reader& get = next.gets[g];
  switch (get.phase) {
    case Get::kNotBegun:
      get.phase = Get::kAsks;
      get.seen = Bit(state.truth);
      return emit("a GET begins", next);
    case Get::kAsks:
      return Look(next, g, emit);
    case Get::kReads:
      return Sample(next, g, emit);
    case Get::kHasRead:
      return EndRead(next, g, emit);
    case Get::kPromotes:
      return Promote(next, g, emit);
    case Get::kJoined:
    case Get::kDone:
      return;
  }
}

// By READs, or, if these find a stub, at the server.
void TierModel::Look(State state, int g, const Emit& emit) const {
  if (state.key.kind != Kind::kStub) {
    Answer(&state, g, state.key.kind == Kind::kItem ? state.key.value : kAbsent);
    return emit("a GET finds the item, or none", state);
  }
  if (!rules_.stub_proves_no_item) {
    State taken = state;
    Answer(&taken, g, kStubsBytes);
    emit("a GET takes a stub for an item", taken);
  }
  const Reader& other = state.gets[1 - g];
  const bool joins = (other.phase == Get::kReads || other.phase == Get::kHasRead) &&
                     (SameRecord(other.stub, state.key) || !rules_.joins_by_record);
  Reader& get = state.gets[g];
  get.stub = state.key;
  get.phase = joins ? Get::kJoined : Get::kReads;
  emit(joins ? "a GET joins a read" : "a GET reads the disk", state);
}

void TierModel::Sample(const State& state, int g, const Emit& emit) const {
  State next = state;
  Reader& get = next.gets[g];
  get.phase = Get::kHasRead;
  get.sample = state.disk[get.stub.segment];
  emit("a read completes", next);
  if (state.errors == scenario_.errors_max) return;
  ++next.errors;
  get.sample = {};
  emit("a read fails", next);
}

bool TierModel::Proves(const Reader& get) const {
  if (get.sample == Record{}) return false;  // an error
  if (!rules_.proves_records) return true;
  return get.sample.version == (rules_.by_its_own_version ? get.stub.record : get.stub.version);
}

void TierModel::EndRead(const State& state, int g, const Emit& emit) const {
  const Reader& get = state.gets[g];
  const bool same = SameRecord(state.key, get.stub);
  const bool proved = Proves(get);
  const bool again = proved ? !rules_.joins_by_record && rules_.looks_again && !same
                            : rules_.deletes_first && !same;
  State next = state;
  if (!proved && rules_.deletes_first && same) {
    if (get.sample == Record{state.key.value, state.key.record}) next.lost = 1;
    Become(&next, {}, kAbsent);
  }
  for (int i = 0; i < kGets; ++i) {
    if (i != g && state.gets[i].phase != Get::kJoined) continue;
    if (again) {
      LookAgain(&next, i);
    } else {
      Answer(&next, i, proved ? get.sample.value : kAbsent);
    }
  }
  emit(again ? "a GET looks again" : "a GET answers", next);
  if (again || !proved || !scenario_.promotes) return;
  next.gets[g].phase = Get::kPromotes;
  next.gets[g].stub = get.stub;
  next.gets[g].sample = get.sample;
  emit("a GET answers, and promotes", next);
}

void TierModel::Promote(const State& state, int g, const Emit& emit) const {
  const Reader& get = state.gets[g];
  State next = state;
  next.gets[g] = {.phase = Get::kDone, .seen = 0, .wrong = get.wrong, .stub = {}, .sample = {}};
  const Key& key = state.key;
  const bool same = SameRecord(key, get.stub);
  if (!rules_.promotes_stubs_only && key.kind == Kind::kItem && key.version == get.stub.version) {
    ++next.items;
  } else if (same || !rules_.promotes_that_stub_only) {
    const uint8_t version = same ? key.version : get.stub.version;
    Become(&next, ItemOf(get.sample.value, version), state.truth);
    next.promoted = get.stub;
  }
  emit("a promotion", next);
}

const char* TierModel::Broken(const State& state) const {
  for (const Reader& get : state.gets) {
    if (get.wrong) return "a GET answers what the key was not";
  }
  const Key& key = state.key;
  if (state.items > 1) return "two items of a key";
  if (state.lost) return "a stub is deleted, though its record was read";
  if (key.kind != Kind::kNone && key.value != state.truth) return "a value that the key has not";
  const bool there = state.disk[key.segment] == Record{key.value, key.record};
  if (key.kind == Kind::kStub && !there && state.lies == 0) return "a stub without a record";
  return nullptr;
}

}  // namespace gannet::model::tier
