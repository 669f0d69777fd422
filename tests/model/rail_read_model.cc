#include "tests/model/rail_read_model.h"

#include <algorithm>
#include <cstdlib>

namespace gannet::model::rail_read {
namespace {

using Model = RailReadModel;
using State = Model::State;

uint8_t IdOf(const State& state, uint8_t connection) {
  return connection == Model::kJoined ? state.joined_id : 0;
}

void Complete(State* state, uint8_t connection, bool flushed) {
  Model::Queue& queue = state->queues[connection];
  if (queue.size == Model::kQueueMax) std::abort();
  queue.completions[queue.size++] = {IdOf(*state, connection), flushed};
}

Model::Completion Pop(Model::Queue* queue) {
  auto& all = queue->completions;
  const Model::Completion first = all[0];
  std::copy(all.begin() + 1, all.end(), all.begin());
  all.back() = {};
  --queue->size;
  return first;
}

// Returns whether the client has taken all that the present connection completed.
bool IsReaped(const State& state, uint8_t connection) {
  const Model::Queue& queue = state.queues[connection];
  const auto* end = queue.completions.begin() + queue.size;
  return state.flights[connection] == Model::kNothing &&
         std::none_of(queue.completions.begin(), end, [&](const Model::Completion& each) {
           return each.id == IdOf(state, connection);
         });
}

}  // namespace

std::vector<State> RailReadModel::Initial() const {
  State state{};
  state.calls_left = 2;
  state.breaks_left = 2;
  state.returns_left = 1;
  return {state};
}

void RailReadModel::Next(const State& state, const Emit& emit) const {
  Client(state, emit);
  Joined(state, emit);
  Flights(state, emit);
  for (const uint8_t connection : {kFirst, kJoined}) Take(state, connection, emit);
}

void RailReadModel::Post(const State& state, uint8_t on, const Emit& emit) {
  if (state.flights[on] != kNothing || (on == kJoined && state.joined != kReady)) return;
  State next = state;
  next.call = kReading;
  next.on = on;
  next.flights[on] = kPosted;
  emit(on == kFirst ? "a READ is posted on the first connection"
                    : "a READ is posted on the connection that joined",
       next);
}

void RailReadModel::Client(const State& state, const Emit& emit) const {
  if (state.value == 0) {
    State next = state;
    next.value = 1;
    emit("the value changes", next);
  }
  if (state.call == kIdle && state.calls_left > 0) {
    State next = state;
    --next.calls_left;
    next.floor = state.value;
    Post(next, kFirst, emit);
    Post(next, kJoined, emit);
  }
  if (state.call == kToPostAgain) {
    if (rules_.reads_move) Post(state, kFirst, emit);
    Post(state, kJoined, emit);
  }
}

void RailReadModel::Joined(const State& state, const Emit& emit) const {
  State next = state;
  const bool waits = state.call == kReading && state.on == kJoined;
  switch (state.joined) {
    case kReady:
      if (state.breaks_left == 0) return;
      --next.breaks_left;
      next.joined = kDraining;
      if (waits && !rules_.reaps_first) next.call = kToPostAgain;
      return emit("the connection that joined breaks", next);
    case kDraining:
      if (state.flights[kJoined] != kNothing) {
        next.flights[kJoined] = kNothing;
        Complete(&next, kJoined, true);
        emit("its queue pair is in the error state", next);
      } else if (IsReaped(state, kJoined)) {
        next.joined = kDown;
        emit("it is reaped", next);
      }
      next = state;
      next.joined = kDown;
      if (!rules_.destroy_ends) next.stray = state.flights[kJoined];
      next.flights[kJoined] = kNothing;
      if (waits) next.call = kToPostAgain;
      return emit("its drain is given up", next);
    case kDown:
      if (state.returns_left == 0) return;
      --next.returns_left;
      next.joined = kReady;
      if (rules_.new_ids) ++next.joined_id;
      return emit("it is made anew", next);
  }
}

void RailReadModel::Flights(const State& state, const Emit& emit) {
  const Flight sampled = state.value ? kHasNew : kHasOld;
  for (const uint8_t connection : {kFirst, kJoined}) {
    State next = state;
    Flight& flight = next.flights[connection];
    if (flight == kPosted) {
      flight = sampled;
      emit("a READ is executed", next);
    } else if (flight != kNothing) {
      next.buffer = flight == kHasNew;
      flight = kNothing;
      Complete(&next, connection, false);
      emit("its answer lands", next);
    }
  }
  State next = state;
  if (state.stray == kPosted) {
    next.stray = sampled;
    emit("the READ of a destroyed queue pair is executed", next);
  } else if (state.stray != kNothing) {
    next.buffer = state.stray == kHasNew;
    next.stray = kNothing;
    emit("the answer of a destroyed queue pair lands", next);
  }
}

void RailReadModel::Take(const State& state, uint8_t connection, const Emit& emit) {
  if (state.queues[connection].size == 0) return;
  State next = state;
  const Completion completion = Pop(&next.queues[connection]);
  const bool known =
      completion.id == IdOf(state, connection) && (connection == kFirst || state.joined != kDown);
  if (known && state.call == kReading && state.on == connection) {
    next.call = completion.flushed ? kToPostAgain : kIdle;
    if (!completion.flushed && state.buffer < state.floor) next.stale = 1;
  }
  emit("the client takes a completion", next);
}

const char* RailReadModel::Broken(const State& state) const {
  return state.stale ? "a GET answers a value older than the call" : nullptr;
}

const char* RailReadModel::BrokenAtRest(const State& state) const {
  return state.call == kIdle && state.calls_left == 0 ? nullptr : "a GET is never answered";
}

}  // namespace gannet::model::rail_read
