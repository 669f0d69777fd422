#include "tests/model/rail_resend_model.h"

#include <algorithm>

namespace gannet::model::rail_resend {
namespace {

using State = RailResendModel::State;

uint8_t Pop(RailResendModel::Queue* queue) {
  const uint8_t first = queue->requests[0];
  std::copy(queue->requests.begin() + 1, queue->requests.end(), queue->requests.begin());
  queue->requests.back() = 0;
  --queue->size;
  return first;
}

}  // namespace

std::vector<State> RailResendModel::Initial() const {
  State state{};
  state.up = {1, 1};
  state.sent = {kNowhere, kNowhere};
  state.deaths_left = state.returns_left = deaths_;
  return {state};
}

void RailResendModel::Next(const State& state, const Emit& emit) const {
  ClientSteps(state, emit);
  RailSteps(state, emit);
  ServerSteps(state, emit);
}

// The client sends a request when those before it were sent or answered.
void RailResendModel::ClientSteps(const State& state, const Emit& emit) {
  for (uint8_t request = 0; request < kRequests; ++request) {
    if (state.sent[request] != kNowhere || state.told[request] != kNoAnswer) continue;
    for (uint8_t rail = 0; rail < kRails; ++rail) {
      if (!state.up[rail] || state.queues[rail].size == kQueueMax) continue;
      State next = state;
      next.sent[request] = rail;
      Queue& queue = next.queues[rail];
      queue.requests[queue.size++] = request;
      emit("the client sends a request", next);
    }
    break;
  }
  for (uint8_t rail = 0; rail < kRails; ++rail) {
    for (uint8_t request = 0; request < kRequests; ++request) {
      if (!state.replies[rail][request]) continue;
      State next = state;
      next.replies[rail][request] = 0;
      if (next.told[request] == kNoAnswer) next.told[request] = state.answers[request];
      next.sent[request] = kNowhere;
      emit("the client gets an answer", next);
    }
  }
}

void RailResendModel::RailSteps(const State& state, const Emit& emit) {
  for (uint8_t rail = 0; rail < kRails; ++rail) {
    State next = state;
    if (!state.up[rail] && state.returns_left > 0) {
      next.up[rail] = 1;
      next.executed[rail] = {};  // a new connection
      --next.returns_left;
      emit("a rail comes back", next);
    }
    if (!state.up[rail] || state.deaths_left == 0) continue;
    next = state;
    next.up[rail] = 0;
    --next.deaths_left;
    next.replies[rail] = {};
    for (uint8_t& sent : next.sent) {
      if (sent == rail) sent = kNowhere;
    }
    emit("a rail dies, and the server has what it carried", next);
    next.queues[rail] = {};
    emit("a rail dies with what it carried", next);
  }
}

bool RailResendModel::WasExecuted(const State& state, uint8_t rail, uint8_t request) const {
  if (!rules_.numbers) return false;
  return rules_.of_session ? state.answers[request] != kNoAnswer
                           : state.executed[rail][request] != 0;
}

bool RailResendModel::MustWait(const State& state, uint8_t request) const {
  return rules_.in_order && request > 0 && state.answers[request - 1] == kNoAnswer;
}

void RailResendModel::Execute(State* state, uint8_t rail, uint8_t request) const {
  State& next = *state;
  if (!WasExecuted(next, rail, request)) {
    // A compare-and-swap finds what it compares only while it has not taken effect.
    const bool takes_effect = operations_[request] != kCompareSwap || next.effects[request] == 0;
    if (takes_effect && next.effects[request] < 2) ++next.effects[request];
    for (uint8_t later = request + 1; later < kRequests; ++later) {
      if (takes_effect && next.effects[later] > 0) next.late = 1;
    }
    next.answers[request] = takes_effect ? kOk : kRefused;
    next.executed[rail][request] = 1;
  } else if (!rules_.remembers_answer && operations_[request] == kCompareSwap) {
    next.answers[request] = kRefused;  // what the comparison says now
  }
  if (next.up[rail]) next.replies[rail][request] = 1;
}

void RailResendModel::Look(State* state, uint8_t rail, uint8_t request) const {
  if (MustWait(*state, request)) {
    for (uint8_t other = 0; other < kRails && !rules_.keeps_each_copy; ++other) {
      state->aside[other][request] = 0;
    }
    state->aside[rail][request] = 1;
  } else {
    Execute(state, rail, request);
  }
}

void RailResendModel::ServerSteps(const State& state, const Emit& emit) const {
  for (uint8_t rail = 0; rail < kRails; ++rail) {
    if (state.queues[rail].size == 0) continue;
    State next = state;
    const uint8_t request = Pop(&next.queues[rail]);
    if (!rules_.sets_aside && MustWait(state, request)) continue;  // so does all behind it
    Look(&next, rail, request);
    emit("the server takes a request from a rail", next);
  }
  for (uint8_t rail = 0; rail < kRails; ++rail) {
    for (uint8_t request = 0; request < kRequests; ++request) {
      if (!state.aside[rail][request] || MustWait(state, request)) continue;
      State next = state;
      next.aside[rail][request] = 0;
      Execute(&next, rail, request);
      emit("the server executes what it had set aside", next);
    }
  }
}

const char* RailResendModel::Broken(const State& state) const {
  if (state.late) return "a request takes effect after a later one";
  for (uint8_t request = 0; request < kRequests; ++request) {
    if (state.effects[request] > 1) return "a request takes effect twice";
    if (state.told[request] == kRefused && state.effects[request] > 0) {
      return "the client is told that a request was refused, which took effect";
    }
    if (state.told[request] == kOk && state.effects[request] == 0) {
      return "the client is told of an effect that is not there";
    }
  }
  return nullptr;
}

// At rest with both rails dead for good nobody can answer.
const char* RailResendModel::BrokenAtRest(const State& state) const {
  const bool all = std::ranges::all_of(state.told, [](Answer told) { return told != kNoAnswer; });
  const bool reached = state.up[0] || state.up[1];
  return all || !reached ? nullptr : "requests wait for each other";
}

}  // namespace gannet::model::rail_resend
