#include "tests/model/copies_model.h"

#include <algorithm>

namespace gannet::model {
namespace {

using State = CopiesModel::State;
using Record = CopiesModel::Record;
using Backup = CopiesModel::Backup;
using Removal = CopiesModel::Removal;

constexpr uint8_t kRing = 1;  // records
constexpr uint8_t kTroubles = 3;

uint8_t Bit(uint8_t position) { return static_cast<uint8_t>(1 << (position - 1)); }
Record At(const State& state, uint8_t position) { return state.log[position - 1u]; }

bool Lives(const State& state) {
  return state.backup != Backup::kDead && state.backup != Backup::kDown;
}
// By what the primary knows.
bool InSync(const State& state) {
  return state.backup == Backup::kInSync || state.backup == Backup::kDead;
}
bool Counted(const State& state) { return InSync(state) || state.backup == Backup::kCounted; }
bool ByItself(Removal removal) { return removal == Removal::kAsked || removal == Removal::kLeft; }
bool Crowded(const State& state) { return state.in_ring < state.end; }

// A joiner is just not counted any more.
void Lose(State* state) {
  state->silent = 0;
  if (state->backup == Backup::kInSync) {
    state->backup = Backup::kDead;
    return;
  }
  state->backup = Backup::kDown;
  state->begin = state->copied = state->freed = 0;
}

// The backup's link holds what it did not free, and the primary what it did not publish.
bool HasRoom(const State& state) {
  uint8_t free = state.backup == Backup::kDown ? state.in_ring : state.freed;
  for (uint8_t p = state.published + 1; p <= state.in_ring; ++p) {
    if (At(state, p) != Record::kUpdate) continue;
    free = std::min<uint8_t>(free, p - 1);
    break;
  }
  return state.in_ring - free < kRing;
}

}  // namespace

std::vector<State> CopiesModel::Initial() const {
  State state{};
  state.writes_left = kWrites;
  state.troubles_left = kTroubles;
  return {state};
}

bool CopiesModel::Settled(const State& state) const {
  return state.backup == Backup::kInSync && state.removal == Removal::kNone && state.silent == 0 &&
         state.stopped == 0 && state.disk_behind == 0 && state.published == state.end;
}

bool CopiesModel::HasCopies(const State& state) const {
  const bool sent = state.removal == Removal::kSent || state.removal == Removal::kWon;
  return InSync(state) && !(rules_.counts_what_may_win && sent);
}

void CopiesModel::Next(const State& state, const Emit& emit) const {
  Writes(state, emit);
  Stream(state, emit);
  Commit(state, emit);
  Publish(state, emit);
  Members(state, emit);
  Leaves(state, emit);
  Joins(state, emit);
  Others(state, emit);
}

void CopiesModel::Writes(const State& state, const Emit& emit) const {
  const bool takes = state.stopped == 0 && !Crowded(state) && HasCopies(state);
  if (!takes || state.disk_behind != 0 || state.writes_left == 0) return;
  for (const Record record : {Record::kUpdate, Record::kCounts}) {
    if (record == Record::kCounts && state.expired != 0) continue;
    State next = state;
    --next.writes_left;
    next.log[next.end++] = record;
    emit(record == Record::kUpdate ? "an update is recorded" : "a write that counts on an item",
         next);
  }
}

void CopiesModel::Stream(const State& state, const Emit& emit) const {
  State next = state;
  if (state.in_ring < state.end && HasRoom(state)) {
    ++next.in_ring;
    emit("a record comes into the ring", next);
  }
  if (!Lives(state) || state.removal == Removal::kAsked) return;
  next = state;
  if (state.copied < state.in_ring) {
    next.copied = state.in_ring;
    emit("WRITEs complete", next);
  }
  // A joiner is told what is published, since it walks through that.
  const uint8_t told = state.backup == Backup::kInSync ? state.committed : state.published;
  next = state;
  next.freed = std::max(state.freed, std::min(state.copied, told));
  if (next.freed != state.freed) emit("the backup applies", next);
}

void CopiesModel::Commit(const State& state, const Emit& emit) const {
  if (rules_.leaves_without_lease && ByItself(state.removal)) return;
  State next = state;
  next.committed = Counted(state) ? std::min(state.in_ring, state.copied) : state.in_ring;
  if (next.committed <= state.committed) return;
  const bool two =
      InSync(state) && state.removal != Removal::kWon && state.removal != Removal::kLeft;
  for (uint8_t p = state.committed + 1; p <= next.committed; ++p) {
    if (!two) next.lacking |= Bit(p);
    if (rules_.doubts && !HasCopies(state)) next.doubted |= Bit(p);
  }
  emit("committed", next);
}

void CopiesModel::Publish(const State& state, const Emit& emit) const {
  if (state.published == state.committed) return;
  const uint8_t first = state.published + 1;
  const bool undone = (state.undone & Bit(first)) != 0;
  const bool lacks = (state.lacking & Bit(first)) != 0;
  if (!rules_.publishes_without_copies && lacks && !HasCopies(state)) return;
  if (At(state, first) == Record::kCounts && state.expired != 0 && !undone) {
    return Undo(state, emit);
  }
  State next = state;
  next.published = first;
  // What nobody asks for any more is the same in all states.
  next.log[first - 1u] = Record::kNone;
  for (uint8_t* const bits : {&next.undone, &next.lacking, &next.doubted}) {
    *bits &= static_cast<uint8_t>(~Bit(first));
  }
  const bool write = At(state, first) != Record::kUndo && !undone;
  if (write && lacks && (state.doubted & Bit(first)) == 0) next.wrong = kFewCopies;
  emit("published, and answered", next);
}

// All that counts on the item. Otherwise nothing changes, and it is tried again.
void CopiesModel::Undo(const State& state, const Emit& emit) const {
  const bool takes = state.stopped == 0 && state.disk_behind == 0 &&
                     (rules_.undoes_without_copies || HasCopies(state)) &&
                     (rules_.undoes_without_room || !Crowded(state));
  State next = state;
  if (!takes) {
    if (rules_.answers_with_deletion) return;
    if (++next.loose > 1) next.wrong = kGrows;
    return emit("answers are recorded without their deletion", next);
  }
  for (uint8_t p = state.published + 1; p <= state.end; ++p) {
    if (At(state, p) == Record::kCounts) next.undone |= Bit(p);
  }
  next.loose = 0;
  next.log[next.end++] = Record::kUndo;
  emit("writes are undone", next);
}

void CopiesModel::Members(const State& state, const Emit& emit) const {
  State next = state;
  if (Lives(state) && state.troubles_left > 0) {
    --next.troubles_left;
    Lose(&next);
    emit("the backup dies", next);
  }
  next = state;
  if (state.backup == Backup::kInSync && state.silent == 0 && state.troubles_left > 0) {
    --next.troubles_left;
    next.silent = 1;
    emit("the backup is silent", next);
  }
  next = state;
  if (state.silent != 0 && state.removal != Removal::kWon) {
    next.silent = 0;
    emit("the backup is heard again", next);
  }
  const bool wanted = state.backup == Backup::kDead || state.silent != 0;
  next = state;
  switch (state.removal) {
    case Removal::kNone:
      if (!wanted) return;
      next.removal = Removal::kSent;
      return emit("a removal is sent", next);
    case Removal::kSent: {
      next.removal = Removal::kWon;
      emit("the register removes the backup", next);
      next.removal = Removal::kNone;
      return emit("the removal is lost", next);
    }
    case Removal::kAsked:
      return;
    case Removal::kWon:
    case Removal::kLeft:
      next.removal = Removal::kNone;
      next.backup = Backup::kDown;
      next.copied = next.freed = next.silent = 0;
      return emit("the primary knows that it is alone", next);
  }
}

// Of one that has asked, the link is fenced. If it does not leave, it is removed as if it were
// dead.
void CopiesModel::Leaves(const State& state, const Emit& emit) const {
  State next = state;
  if (state.removal == Removal::kAsked) {
    next.removal = Removal::kLeft;
    emit("the backup has left", next);
    next = state;
    next.removal = Removal::kNone;
    if (Lives(state)) Lose(&next);
    return emit("the backup has not left", next);
  }
  const bool may_leave = state.backup == Backup::kInSync && state.silent == 0 &&
                         state.removal == Removal::kNone && state.troubles_left > 0;
  if (!may_leave) return;
  --next.troubles_left;
  next.removal = rules_.leaves_without_lease ? Removal::kAsked : Removal::kLeft;
  emit("the backup leaves", next);
}

void CopiesModel::Joins(const State& state, const Emit& emit) const {
  State next = state;
  switch (state.backup) {
    case Backup::kDown:
      next.backup = Backup::kJoins;
      next.begin = next.copied = next.freed = state.in_ring;
      emit("a joiner's stream begins", next);
      break;
    case Backup::kJoins:
      if (state.published < state.begin) break;
      next.backup = Backup::kCounted;
      next.begin = 0;
      emit("the joiner has walked, and is counted", next);
      break;
    case Backup::kCounted:
      if (state.copied < state.committed) break;
      next.backup = Backup::kInSync;
      emit("the joiner is in sync", next);
      break;
    case Backup::kInSync:
    case Backup::kDead:
      break;
  }
  // It leaves no room for a second.
  if (!Lives(state) || !Crowded(state) || HasRoom(state) || state.freed == state.in_ring) return;
  next = state;
  Lose(&next);
  emit("the backup is too slow", next);
}

void CopiesModel::Others(const State& state, const Emit& emit) const {
  State next = state;
  if (state.expired == 0) {
    next.expired = 1;
    emit("the item expires", next);
  }
  next = state;
  if (state.stopped != 0) {
    next.stopped = 0;
    emit("the hand-over fails", next);
  } else if (state.backup == Backup::kInSync && state.troubles_left > 0) {
    --next.troubles_left;
    next.stopped = 1;
    emit("the primary stops for a hand-over", next);
  }
  next = state;
  if (state.disk_behind != 0) {
    if (!rules_.disk_waits_for_nobody && state.published < state.committed) return;
    next.disk_behind = 0;
    emit("the disk has caught up", next);
  } else if (state.troubles_left > 0) {
    --next.troubles_left;
    next.disk_behind = 1;
    emit("the disk is behind", next);
  }
}

const char* CopiesModel::Broken(const State& state) const {
  switch (state.wrong) {
    case kFewCopies:
      return "acknowledged, and fewer members in sync had it than the group wants";
    case kGrows:
      return "the stream grows with each try that is refused";
    default:
      return nullptr;
  }
}

}  // namespace gannet::model
