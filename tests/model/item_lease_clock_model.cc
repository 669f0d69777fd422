#include "tests/model/item_lease_clock_model.h"

#include <algorithm>

namespace gannet::model::item_lease_clock {
namespace {

using State = ItemLeaseClockModel::State;

uint8_t Less(uint8_t left, int by) { return static_cast<uint8_t>(std::max(left - by, 0)); }

}  // namespace

void ItemLeaseClockModel::Next(const State& state, const Emit& emit) const {
  Time(state, emit);
  ServerSteps(state, emit);
  ClientSteps(state, emit);
}

State ItemLeaseClockModel::Passed(State state, int server, int bound, int next) {
  state.end = Less(state.end, server);
  state.waits = Less(state.waits, next);
  // A bound so far ahead, and an end that is long over, are as good as none.
  if (state.has_bound) {
    const int ahead = state.bound + bound - server;
    state.has_bound = ahead < kLease;
    state.bound = static_cast<int8_t>(state.has_bound ? ahead : 0);
  }
  if (state.has_end) {
    const int left = state.left - server;
    state.has_end = left > -kLease;
    state.left = static_cast<int8_t>(state.has_end ? left : 0);
  }
  if (state.ask == Ask::kNone) return state;
  state.ask_age = static_cast<uint8_t>(state.ask_age + bound);
  if (state.ask == Ask::kReply) state.answer_age = static_cast<uint8_t>(state.answer_age + server);
  // Such a question is given up.
  if (state.ask_age > kAskMax) {
    state.ask = Ask::kNone;
    state.ask_age = state.answer_age = 0;
  }
  return state;
}

void ItemLeaseClockModel::Time(const State& state, const Emit& emit) const {
  for (const int server : {kSlow, kFast}) {
    for (const int client : {kSlow, kFast}) {
      for (const int next : {kSlow, kFast}) {
        // The most that the server's clock goes while the client's goes by this.
        const int bound = rules_.bound_allows_rates ? client * kFast : client * kThirds;
        emit("time passes", Passed(state, server * kThirds, bound, next * kThirds));
      }
    }
  }
}

void ItemLeaseClockModel::ServerSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (state.dead) {
    if (state.next) return;
    next.next = 1;
    next.waits = rules_.wait;
    return emit("the next server begins", next);
  }
  next.end = kLease;
  emit("the server renews the end", next);
  if (!rules_.never_jumps && !state.jumped) {
    next = Passed(state, kFast * kThirds, 0, 0);
    next.jumped = 1;
    emit("the server's clock jumps ahead", next);
  }
  next = state;
  next.dead = 1;
  next.end = 0;
  emit("the server dies", next);
}

void ItemLeaseClockModel::ClientSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (!state.dead) {
    next.has_end = 1;
    next.left = static_cast<int8_t>(state.end);
    emit("the client READs the end", next);
    next = state;
  }
  switch (state.ask) {
    case Ask::kNone:
      next.ask = Ask::kRequest;
      return emit("the client asks for the time", next);
    case Ask::kRequest:
      if (state.dead) return;
      next.ask = Ask::kReply;
      return emit("the server tells its time", next);
    case Ask::kReply: {
      const int bound = (rules_.bound_from_ask ? state.ask_age : 0) - state.answer_age;
      // It keeps the better one.
      if (!state.has_bound || bound < state.bound) next.bound = static_cast<int8_t>(bound);
      next.has_bound = 1;
      next.ask = Ask::kNone;
      next.ask_age = next.answer_age = 0;
      return emit("the client has a bound", next);
    }
  }
}

const char* ItemLeaseClockModel::Broken(const State& state) const {
  const bool answers = state.has_bound && state.has_end && state.bound < state.left;
  if (!answers) return nullptr;
  if (state.left <= 0) return "an answer from a copy when the server may have written";
  if (state.next && state.waits == 0) return "an answer from a copy beside the next server";
  return nullptr;
}

}  // namespace gannet::model::item_lease_clock
