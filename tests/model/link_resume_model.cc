#include "tests/model/link_resume_model.h"

#include <algorithm>
#include <bit>

namespace gannet::model::link_resume {
namespace {

using Model = LinkResumeModel;
using State = Model::State;

constexpr uint8_t Bit(uint8_t record) { return static_cast<uint8_t>(1 << record); }

// A queue pair keeps the order.
uint8_t First(uint8_t records) { return static_cast<uint8_t>(std::countr_zero(records)); }

}  // namespace

std::vector<State> LinkResumeModel::Initial() const { return {State{.follows = 1, .answered = 1}}; }

void LinkResumeModel::Next(const State& state, const Emit& emit) const {
  Primary(state, emit);
  for (uint8_t link = 0; link < kLinks; ++link) Device(state, link, emit);
  Backup(state, emit);
}

void LinkResumeModel::Primary(const State& state, const Emit& emit) const {
  if (state.appended < kRecords && state.appended - state.told < kPlaces) {
    State next = state;
    ++next.appended;
    emit("the primary appends a record", next);
  }
  if (state.shipped < state.appended && (state.answered || !rules_.answered_first)) {
    State next = state;
    next.wires[state.link] |= Bit(next.shipped++);
    emit("the primary WRITEs a record", next);
  }
  for (uint8_t link = 0; link < kLinks; ++link) {
    if (state.acks[link] == 0) continue;
    State next = state;
    next.acks[link] &= static_cast<uint8_t>(state.acks[link] - 1);
    if (link == state.link) {
      next.completed = static_cast<uint8_t>(First(state.acks[link]) + 1);
    } else if (!rules_.drops_acks && next.completed < next.shipped) {
      ++next.completed;  // it takes it for its oldest WRITE
    }
    next.committed = std::max(next.committed, next.completed);
    emit("the primary polls a completion", next);
  }
}

void LinkResumeModel::Device(const State& state, uint8_t link, const Emit& emit) const {
  if (state.wires[link] == 0) return;
  const uint8_t record = First(state.wires[link]);
  State next = state;
  next.wires[link] &= static_cast<uint8_t>(state.wires[link] - 1);
  next.rings[RingOf(link)][record % kPlaces] = static_cast<uint8_t>(record + 1);
  const bool fenced = link < state.link || state.left;
  if (fenced) emit("a dead device WRITEs late", next);
  if (fenced && (rules_.fenced_first || link < state.link)) return;
  next.acks[link] |= Bit(record);
  emit("a WRITE lands", next);
}

void LinkResumeModel::Backup(const State& state, const Emit& emit) const {
  if (state.left) {
    State next = state;
    next.left = next.follows = next.answered = 0;
    ++next.link;
    next.keeps_to = state.appended;
    next.told = state.taken;
    next.completed = rules_.from_taken ? state.taken : std::max(state.taken, state.completed);
    next.shipped = next.completed;
    return emit("the link goes on over another rail", next);
  }
  if (!state.follows) {
    State next = state;
    next.follows = 1;
    if (!rules_.keeps_rest) next.kept = 0;
    emit("the backup takes the welcome", next);
  }
  if (state.follows && state.taken < state.committed && IsInRing(state, state.taken)) {
    State next = state;
    next.rings[RingOf(state.link)][state.taken % kPlaces] = 0;
    ++next.taken;
    bool has_all = true;
    for (uint8_t r = next.taken; r < next.keeps_to; ++r) has_all = has_all && IsInRing(next, r);
    if (has_all) next.kept = 0;
    emit("the backup takes a record", next);
  }
  if (state.follows && (state.told < state.taken || !state.answered)) {
    State next = state;
    next.answered = 1;
    next.told = state.taken;
    emit("the backup answers a beacon", next);
  }
  if (state.link + 1 < kLinks) {
    State next = state;
    next.left = 1;
    for (uint8_t r = state.taken; state.follows && r < kRecords && IsInRing(state, r); ++r) {
      next.kept |= Bit(r);
    }
    emit("the backup fences the link and reads its ring", next);
  }
}

const char* LinkResumeModel::Broken(const State& state) const {
  for (uint8_t r = state.taken; r < state.committed; ++r) {
    const bool in_ring = state.follows && !state.left && IsInRing(state, r);
    if (!in_ring && (state.kept & Bit(r)) == 0) return "a committed record is lost";
  }
  return nullptr;
}

const char* LinkResumeModel::BrokenAtRest(const State& state) const {
  return state.taken == kRecords ? nullptr : "the stream stops";
}

}  // namespace gannet::model::link_resume
