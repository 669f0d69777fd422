#include "tests/model/rail_memory_model.h"

namespace gannet::model::rail_memory {
namespace {

using State = RailMemoryModel::State;

constexpr uint8_t kStale = 1, kStruck = 2, kHollow = 3;

}  // namespace

std::vector<State> RailMemoryModel::Initial() const {
  State state{};
  state.up = 1;
  state.calls_left = 2;
  state.values_left = 2;
  return {state};
}

void RailMemoryModel::Next(const State& state, const Emit& emit) const {
  Rail(state, emit);
  Get(state, emit);
  LateAnswer(state, emit);
  Value(state, emit);
  Notices(state, emit);
}

void RailMemoryModel::Rail(const State& state, const Emit& emit) {
  State next = state;
  if (state.up) {
    next.up = 0;
    return emit("the first rail dies", next);
  }
  if (!state.client_reaped) {
    next.client_reaped = 1;
    next.answer = kNone;
    emit("the client reaps its end", next);
  }
  if (!state.owner_reaped) {
    next = state;
    next.owner_reaped = 1;
    if (next.bytes == kOnItsWay) next.bytes = kNotPosted;
    emit("the owner of the place reaps its end", next);
  }
}

void RailMemoryModel::Get(const State& state, const Emit& emit) const {
  State next = state;
  if (state.value == 0) {
    next.value = 1;
    emit("the value changes", next);
    next = state;
  }
  const bool buffer_is_ours = state.answer == kNone || state.client_reaped || !rules_.client_reaps;
  switch (state.call) {
    case kIdle:
      if (state.calls_left == 0) return;
      --next.calls_left;
      next.floor = state.value;
      if (state.up) {
        next.call = kOnFirst;
        next.answer = kUnderWay;
        emit("a GET is posted on the first rail", next);
      } else if (buffer_is_ours) {
        next.call = kOnSecond;
        emit("a GET is posted on the second rail", next);
      }
      return;
    case kOnFirst:
      if (state.up || !buffer_is_ours) return;
      next.call = kOnSecond;
      return emit("its READ is posted again on the second rail", next);
    case kOnSecond:
      next.buffer = state.value;
      next.call = kLanded;
      return emit("the READ on the second rail completes", next);
    case kLanded:
      if (state.buffer < state.floor) next.wrong = kStale;
      next.call = kIdle;
      return emit("the GET answers", next);
  }
}

void RailMemoryModel::LateAnswer(const State& state, const Emit& emit) {
  State next = state;
  if (state.answer == kUnderWay) {
    next.answer = state.value ? kHasNew : kHasOld;
    emit("the READ on the first rail is executed", next);
  }
  if (state.answer != kHasOld && state.answer != kHasNew) return;
  next = state;
  next.buffer = state.answer == kHasNew;
  next.answer = kNone;
  if (state.up && state.call == kOnFirst) next.call = kLanded;
  emit("the answer of the READ on the first rail lands", next);
}

void RailMemoryModel::Value(const State& state, const Emit& emit) const {
  State next = state;
  if (state.place == kFree && state.values_left > 0 && state.up) {
    --next.values_left;
    next.place = kReserved;
    next.bytes = kOnItsWay;
    next.bytes_known = 0;
    next.notice = kNotSent;
    emit("a value has a place, and its bytes are posted on the first rail", next);
  }
  if (state.bytes == kOnItsWay) {
    next = state;
    next.bytes = kThere;
    if (state.place != kReserved) next.wrong = kStruck;
    emit("the bytes hit their place", next);
  }
  if (state.bytes == kThere && state.up && !state.bytes_known) {
    next = state;
    next.bytes_known = 1;
    emit("the bytes are known to be there", next);
  }
  const bool gives_up = state.place == kReserved && state.notice != kByOther && !state.up;
  if (gives_up && (state.owner_reaped || !rules_.owner_reaps)) {
    next = state;
    next.place = kFree;
    next.notice = kNotSent;
    emit("the call begins anew elsewhere, and the place is free", next);
  }
  if (state.place == kFree && !state.up) {
    next = state;
    next.place = kOthers;
    emit("another value has the place", next);
  }
}

void RailMemoryModel::Notices(const State& state, const Emit& emit) const {
  State next = state;
  if (state.place != kReserved) return;
  if (state.notice == kNotSent) {
    if (state.up) {
      next.notice = kBehindBytes;
      emit("the notice is sent behind the bytes", next);
    }
    if (state.bytes_known || !rules_.notice_on_rail) {
      next = state;
      next.notice = kByOther;
      emit("the notice is sent by the second rail", next);
    }
    return;
  }
  // A rail keeps the order of what is posted on it.
  if (state.notice == kBehindBytes && state.bytes != kThere) return;
  if (state.bytes != kThere) next.wrong = kHollow;
  next.place = kTaken;
  emit("the value is taken", next);
}

const char* RailMemoryModel::Broken(const State& state) const {
  constexpr const char* kWhat[] = {nullptr, "a GET answers a value older than the call",
                                   "bytes hit a place that has another owner",
                                   "a value is taken without its bytes"};
  return kWhat[state.wrong];
}

}  // namespace gannet::model::rail_memory
