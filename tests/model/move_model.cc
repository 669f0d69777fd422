#include "tests/model/move_model.h"

#include <algorithm>
#include <cstdlib>

namespace gannet::model::move {
namespace {

uint8_t MaskOf(const MoveModel::Item& item) {
  uint8_t mask = 0;
  for (int i = 0; i < MoveModel::kRequestsMax; ++i) {
    if (item.effects[i] > 0) mask |= 1 << i;
  }
  return mask;
}

}  // namespace

std::vector<MoveModel::State> MoveModel::Initial() const {
  State state{};
  state.revision = 1;
  Copy first = {.item = {.present = 1, .version = 2, .effects = {}}, .counter = 2, .answers = 0};
  state.groups[0].now = state.groups[0].committed = first;
  for (int g = 0; g < kGroups; ++g) {
    state.groups[g].knows = 1;
    state.groups[g].fail_overs_left = scenario_.fail_overs[g];
  }
  state.writer.revision = 1;
  state.writer.requests.fill({.bound = kNobody});
  state.writer.breaks_left = scenario_.breaks;
  state.reader = {.revision = 1,
                  .leases = {},
                  .place = kNobody,
                  .reading = kNobody,
                  .seen = 0,
                  .floor = 0,
                  .left = scenario_.reads};
  state.version_max = 2;
  state.closes_left = scenario_.closes;
  state.aborts_left = scenario_.aborts;
  state.others_left = scenario_.others;
  return {state};
}

void MoveModel::Next(const State& state, const Emit& emit) const {
  MapSteps(state, emit);
  for (uint8_t g = 0; g < kGroups; ++g) {
    const Group& group = state.groups[g];
    for (uint8_t r = group.knows + 1; r <= state.revision; ++r) {
      State next = state;
      next.groups[g].knows = r;
      emit("a primary learns of the map", next);
    }
    const Map& map = KnownTo(state, g);
    if (map.owner == g && map.closed != 0 && group.ended != map.closed) {
      State next = state;
      next.groups[g].ended = map.closed;
      next.groups[g].last = group.now.counter;
      emit("the giver's last request is over", next);
    }
    State next = state;
    next.groups[g].committed = group.now;
    if (group.committed != group.now) emit("a primary commits", next);
    if (group.fail_overs_left > 0) FailOver(state, g, emit);
  }
  ReceiverSteps(state, emit);
  WriterSteps(state, emit);
  ReaderSteps(state, emit);
}

void MoveModel::ChangeNothing(State* state) {
  if (state->revision + 1 == kRevisionsMax) std::abort();
  state->maps[state->revision + 1] = state->maps[state->revision];
  ++state->revision;
}

void MoveModel::Change(State* state, uint8_t owner, bool closed) {
  ChangeNothing(state);
  const uint8_t revision = state->revision;
  state->maps[revision] = {
      .owner = owner, .closed = closed ? revision : uint8_t{0}, .changed = revision};
}

void MoveModel::MapSteps(const State& state, const Emit& emit) const {
  const Map map = state.maps[state.revision];
  if (state.aborts_left > 0 && map.closed != 0) {
    State next = state;
    --next.aborts_left;
    Change(&next, map.owner, /*closed=*/false);
    emit("the move is given up: the partition is open again", next);
  }
  if (state.others_left > 0 && map.closed != 0) {
    State next = state;
    --next.others_left;
    ChangeNothing(&next);
    emit("another partition moves", next);
  }
}

// The next primary has what was committed, or all. Leases of the former one are over by then.
void MoveModel::FailOver(const State& state, uint8_t g, const Emit& emit) const {
  const bool receives = state.maps[state.revision].owner != g;
  for (const bool all : {false, true}) {
    State next = state;
    Group& group = next.groups[g];
    const bool has_last = all || group.committed.counter >= group.last;
    const uint8_t deposed = has_last || !rules_.committed_first ? group.ended : uint8_t{0};
    group.ended = group.last = group.refuses = 0;
    --group.fail_overs_left;
    ++group.epoch;
    (all ? group.committed : group.now) = all ? group.now : group.committed;
    group.knows = rules_.reads_map_at_takeover ? state.revision : 1;
    next.reader.leases[g] = 0;
    if (next.reader.reading == g) next.reader.reading = kNobody;
    LoseRequests(&next, g);
    if (receives) {
      next.join = {};
    } else if (next.join.link != Link::kNone) {
      next.join.link = Link::kToDeposed;
      next.join.deposed = deposed;
    }
    emit(
        all ? "a backup that has all takes over" : "a backup that has what is committed takes over",
        next);
  }
}

bool MoveModel::Serves(const State& state, uint8_t g) const {
  const Map& map = KnownTo(state, g);
  if (map.owner == g) return map.closed == 0 || !rules_.giver_refuses;
  const Join& join = state.join;
  const bool receives = state.maps[state.revision].owner != g;
  return receives && ((!rules_.receiver_waits_for_map && join.ended != 0) ||
                      (!rules_.waits_for_result && join.sent != 0));
}

// A primary grants leases to clients that know of each loss of its group that it knows of itself.
bool MoveModel::Grants(const State& state, uint8_t g) const {
  if (!rules_.leases_by_revision) return true;
  uint8_t least = 0;
  for (uint8_t r = 1; r <= state.groups[g].knows; ++r) {
    if (state.maps[r].owner == g && state.maps[r].closed == r) least = r;
  }
  return state.reader.revision >= least;
}

// A client may not have heard of maps in between, in which the partition had another owner.
bool MoveModel::Same(const Map& a, const Map& b) const {
  if (rules_.compares_changed) return a.changed == b.changed;
  return a.owner == b.owner && a.closed == b.closed;
}

MoveModel::State MoveModel::ReaderLearns(State state, uint8_t revision) const {
  Reader& reader = state.reader;
  const bool changed = !Same(state.maps[reader.revision], state.maps[revision]);
  reader.revision = revision;
  if (changed && rules_.drops_reads) reader.reading = kNobody;
  if (changed && rules_.drops_places) reader.place = kNobody;
  return state;
}

void MoveModel::ReaderSteps(const State& state, const Emit& emit) const {
  const Reader& reader = state.reader;
  for (uint8_t g = 0; g < kGroups; ++g) {
    State next = state;
    const bool has = reader.leases[g] != 0;
    next.reader.leases[g] = has ? 0 : reader.revision;
    if (has) emit("a lease is over", next);
    if (!has && reader.left > 0 && Grants(state, g)) emit("the reader gets a lease", next);
  }
  if (reader.left == 0) return;
  for (uint8_t r = reader.revision + 1; r <= state.revision; ++r) {
    emit("the reader learns of the map", ReaderLearns(state, r));
  }
  State next = state;
  const Map& map = state.maps[reader.revision];
  const bool remembers = reader.place != kNobody;
  if (reader.reading == kNobody && (remembers || map.closed == 0)) {
    next.reader.reading = remembers ? reader.place : map.owner;
    next.reader.seen = MaskOf(state.groups[next.reader.reading].committed.item);
    next.reader.floor = state.answered;
    emit("the reader READs", next);
    return;
  }
  if (reader.reading == kNobody || reader.leases[reader.reading] == 0) return;
  if ((reader.floor & ~reader.seen) != 0) next.wrong = kOutOfDate;
  --next.reader.left;
  next.reader.place = reader.reading;
  next.reader.reading = kNobody;
  next.reader.seen = next.reader.floor = 0;
  emit("the reader polls its READ under a lease", next);
}

const char* MoveModel::Broken(const State& state) const {
  if (state.wrong == kOutOfDate) return "a READ that is out of date is believed";
  if (state.wrong == kVersionBack) return "a version is not above an earlier one of its key";
  if (state.wrong == kOvertaken) return "two writes change places";
  if (Serves(state, 0) && Serves(state, 1)) return "a key is in two places";
  for (const Group& group : state.groups) {
    for (const uint8_t effects : group.now.item.effects) {
      if (effects > 1) return "a request takes effect twice";
    }
  }
  const Group& owner = state.groups[state.maps[state.revision].owner];
  if ((state.answered & ~MaskOf(owner.committed.item)) != 0) return "an answered write is lost";
  return nullptr;
}

const char* MoveModel::BrokenAtRest(const State& state) const {
  if (state.answered != (1 << scenario_.requests) - 1) return "a key is in no place";
  return nullptr;
}

}  // namespace gannet::model::move
