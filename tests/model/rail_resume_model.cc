#include "tests/model/rail_resume_model.h"

#include <algorithm>
#include <cstdlib>

namespace gannet::model::rail_resume {
namespace {

using Model = RailResumeModel;
using State = Model::State;

void Push(Model::Queue* queue, uint8_t request) {
  if (queue->size == Model::kQueueMax) std::abort();
  queue->requests[queue->size++] = request;
}

uint8_t Pop(Model::Queue* queue) {
  const uint8_t first = queue->requests[0];
  std::copy(queue->requests.begin() + 1, queue->requests.end(), queue->requests.begin());
  queue->requests.back() = 0;
  --queue->size;
  return first;
}

}  // namespace

std::vector<State> RailResumeModel::Initial() const {
  State state{};
  state.connected = 1;
  state.breaks_left = 2;
  return {state};
}

void RailResumeModel::Next(const State& state, const Emit& emit) const {
  if (state.connected) {
    Client(state, emit);
    Break(state, emit);
  } else {
    Resume(state, emit);
  }
  for (uint8_t rail = 0; rail < kRails; ++rail) Server(state, rail, emit);
}

void RailResumeModel::Client(const State& state, const Emit& emit) const {
  for (uint8_t request = 0; request < kRequests; ++request) {
    const Call call = state.calls[request];
    if (call != kUnsent && call != kToSendAgain) continue;
    State next = state;
    next.calls[request] = kWaits;
    Push(&next.wires[state.rail], request);
    emit("the client sends a request", next);
    if (rules_.sends_in_order) break;
  }
  for (uint8_t request = 0; request < kRequests; ++request) {
    if (!state.replies[state.rail][request]) continue;
    State next = state;
    next.replies[state.rail][request] = 0;
    if (next.calls[request] == kWaits) next.calls[request] = kTold;
    emit("the client gets an answer", next);
  }
}

void RailResumeModel::Break(const State& state, const Emit& emit) {
  if (state.breaks_left == 0) return;
  State next = state;
  --next.breaks_left;
  next.connected = 0;
  next.replies[state.rail] = {};
  emit("the connection breaks, and the server may receive what it carries", next);
  next.wires[state.rail] = {};
  emit("the connection breaks with what it carries", next);
}

// Each choice of what is given up. It is the same for a connection over the rail that broke, so
// only the other one is looked at: there the old one's queues are not in the new one's way.
void RailResumeModel::Resume(const State& state, const Emit& emit) const {
  State resumed = state;
  if (rules_.closes_old) resumed.wires[state.rail] = {};
  if (rules_.drops_old) resumed.received[state.rail] = {};
  resumed.rail = static_cast<uint8_t>(1 - state.rail);
  resumed.connected = 1;
  resumed.executed[resumed.rail] = {};
  resumed.replies[resumed.rail] = {};
  for (uint8_t given_up = 0; given_up < 1 << kRequests; ++given_up) {
    State next = resumed;
    bool is_choice = true;
    for (uint8_t request = 0; request < kRequests; ++request) {
      const bool gives_up = (given_up >> request & 1) != 0;
      if (next.calls[request] == kWaits || next.calls[request] == kToSendAgain) {
        next.calls[request] = gives_up ? kGivenUp : kToSendAgain;
      } else if (gives_up) {
        is_choice = false;
      }
    }
    if (is_choice) emit("the session resumes over the other rail", next);
  }
}

void RailResumeModel::Server(const State& state, uint8_t rail, const Emit& emit) const {
  if (state.wires[rail].size > 0) {
    State next = state;
    Push(&next.received[rail], Pop(&next.wires[rail]));
    emit("the server's device receives a request", next);
  }
  if (state.received[rail].size > 0) {
    State next = state;
    Execute(&next, rail, Pop(&next.received[rail]));
    emit("the server takes a request", next);
  }
}

void RailResumeModel::Execute(State* state, uint8_t rail, uint8_t request) const {
  const bool was_executed =
      rules_.of_session ? state->effects[request] > 0 : state->executed[rail][request] != 0;
  if (!was_executed || !rules_.numbers) {
    if (state->effects[request] < 2) ++state->effects[request];
    for (uint8_t later = request + 1; later < kRequests; ++later) {
      if (state->effects[later] > 0) state->late = 1;
    }
    state->executed[rail][request] = 1;
  }
  if (state->connected && rail == state->rail) state->replies[rail][request] = 1;
}

const char* RailResumeModel::Broken(const State& state) const {
  if (state.late) return "a request takes effect after a later one";
  for (uint8_t request = 0; request < kRequests; ++request) {
    if (state.effects[request] > 1) return "a request takes effect twice";
    if (state.calls[request] == kTold && state.effects[request] == 0) {
      return "the client is told of an effect that is not there";
    }
  }
  return nullptr;
}

const char* RailResumeModel::BrokenAtRest(const State& state) const {
  const bool over =
      std::ranges::all_of(state.calls, [](Call call) { return call == kTold || call == kGivenUp; });
  return over ? nullptr : "a request is never answered";
}

}  // namespace gannet::model::rail_resume
