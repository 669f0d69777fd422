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

bool Push(RailResendModel::Queue* queue, uint8_t copy) {
  if (queue->size == RailResendModel::kQueueMax) return false;
  queue->requests[queue->size++] = copy;
  return true;
}

uint8_t CopyOf(const State& state, uint8_t request) {
  return state.given_up[request] ? request | RailResendModel::kWithoutEffect : request;
}

}  // namespace

std::vector<State> RailResendModel::Initial() const {
  State state{};
  state.up = {1, 1};
  state.sent = {kNowhere, kNowhere};
  state.deaths_left = state.returns_left = times_.deaths;
  state.gives_up_left = times_.gives_up;
  state.try_agains_left = times_.try_agains;
  return {state};
}

void RailResendModel::Next(const State& state, const Emit& emit) const {
  ClientSteps(state, emit);
  RailSteps(state, emit);
  ServerSteps(state, emit);
}

// The client sends a request when those before it were sent or answered.
void RailResendModel::ClientSteps(const State& state, const Emit& emit) const {
  for (uint8_t request = 0; request < kRequests; ++request) {
    const bool is_over = state.given_up[request] && !rules_.tells;
    if (state.sent[request] != kNowhere || state.told[request] != kNoAnswer || is_over) continue;
    for (uint8_t rail = 0; rail < kRails; ++rail) {
      if (!state.up[rail]) continue;
      State next = state;
      next.sent[request] = rail;
      if (Push(&next.queues[rail], CopyOf(state, request)))
        emit("the client sends a request", next);
    }
    break;
  }
  for (uint8_t request = 0; request < kRequests; ++request) GiveUp(state, request, emit);
  for (uint8_t rail = 0; rail < kRails; ++rail) {
    for (uint8_t request = 0; request < kRequests; ++request) {
      const Answer reply = state.replies[rail][request];
      if (reply == kNoAnswer) continue;
      State next = state;
      next.replies[rail][request] = kNoAnswer;
      if (next.told[request] == kNoAnswer) next.told[request] = reply;
      next.sent[request] = kNowhere;
      emit("the client gets an answer", next);
    }
  }
}

// It tells so at once, if it can: the rail that has the request may be dead, and nobody knows yet.
void RailResendModel::GiveUp(const State& state, uint8_t request, const Emit& emit) const {
  const uint8_t sent = state.sent[request];
  if (state.gives_up_left == 0 || sent == kNowhere || state.given_up[request]) return;
  State next = state;
  next.given_up[request] = 1;
  --next.gives_up_left;
  emit("the client gives a request up", next);
  for (uint8_t rail = 0; rail < kRails && rules_.tells; ++rail) {
    if (rail == sent || !state.up[rail]) continue;
    State told = next;
    if (Push(&told.queues[rail], CopyOf(told, request)))
      emit("the client gives a request up, and tells so by another rail", told);
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
  return rules_.in_order && request > 0 && !state.begun[request - 1];
}

void RailResendModel::Perform(State* state, uint8_t rail, uint8_t request) const {
  State& next = *state;
  // A compare-and-swap finds what it compares only while it has not taken effect.
  const bool takes_effect = operations_[request] != kCompareSwap || next.effects[request] == 0;
  if (takes_effect && next.effects[request] < 2) ++next.effects[request];
  for (uint8_t later = request + 1; later < kRequests; ++later) {
    if (takes_effect && next.effects[later] > 0) next.late = 1;
  }
  next.answers[request] = takes_effect ? kOk : kRefused;
  next.executed[rail][request] = 1;
}

void RailResendModel::Execute(const State& state, uint8_t rail, uint8_t copy,
                              const Emit& emit) const {
  const uint8_t request = copy & ~kWithoutEffect;
  State next = state;
  next.begun[request] = 1;
  const auto answer = [&](Answer reply) {
    if (next.up[rail]) next.replies[rail][request] = reply;
  };
  if (WasExecuted(state, rail, request)) {
    if (!rules_.remembers_answer && operations_[request] == kCompareSwap)
      next.answers[request] = kRefused;  // what the comparison says now
    answer(next.answers[request]);
    return emit("the server answers as before", next);
  }
  if (copy != request) {
    if (rules_.remembers_given_up) next.answers[request] = kNothing;
    answer(kNothing);
    return emit("the server learns that a request was given up", next);
  }
  if (state.try_agains_left > 0) {
    State refuses = next;
    --refuses.try_agains_left;
    if (rules_.remembers_try_again) refuses.answers[request] = kTryAgain;
    if (refuses.up[rail]) refuses.replies[rail][request] = kTryAgain;
    emit("the server does nothing now", refuses);
  }
  Perform(&next, rail, request);
  answer(next.answers[request]);
  emit("the server executes a request", next);
}

void RailResendModel::Look(const State& state, uint8_t rail, uint8_t copy, const Emit& emit) const {
  const uint8_t request = copy & ~kWithoutEffect;
  if (!MustWait(state, request)) return Execute(state, rail, copy, emit);
  State next = state;
  for (uint8_t other = 0; other < kRails && !rules_.keeps_each_copy; ++other) {
    next.aside[other][request] = {};
  }
  next.aside[rail][request][copy != request] = 1;
  emit("the server sets a request aside", next);
}

void RailResendModel::ServerSteps(const State& state, const Emit& emit) const {
  for (uint8_t rail = 0; rail < kRails; ++rail) {
    if (state.queues[rail].size == 0) continue;
    State next = state;
    const uint8_t copy = Pop(&next.queues[rail]);
    // So does all behind it.
    if (!rules_.sets_aside && MustWait(state, copy & ~kWithoutEffect)) continue;
    Look(next, rail, copy, emit);
  }
  for (uint8_t rail = 0; rail < kRails; ++rail) {
    for (uint8_t request = 0; request < kRequests; ++request) {
      for (uint8_t without = 0; without < 2; ++without) {
        if (!state.aside[rail][request][without] || MustWait(state, request)) continue;
        State next = state;
        next.aside[rail][request][without] = 0;
        Execute(next, rail, without ? request | kWithoutEffect : request, emit);
      }
    }
  }
}

const char* RailResendModel::Broken(const State& state) const {
  if (state.late) return "a request takes effect after a later one";
  for (uint8_t request = 0; request < kRequests; ++request) {
    const Answer told = state.told[request];
    if (state.effects[request] > 1) return "a request takes effect twice";
    if ((told == kRefused || told == kTryAgain) && state.effects[request] > 0) {
      return "the client is told that nothing was done, and a request took effect";
    }
    if (told == kOk && state.effects[request] == 0) {
      return "the client is told of an effect that is not there";
    }
  }
  return nullptr;
}

// At rest with both rails dead for good nobody can answer.
const char* RailResendModel::BrokenAtRest(const State& state) const {
  bool all = true;
  for (uint8_t request = 0; request < kRequests; ++request)
    all &= state.told[request] != kNoAnswer || state.given_up[request];
  const bool reached = state.up[0] || state.up[1];
  return all || !reached ? nullptr : "requests wait for each other";
}

}  // namespace gannet::model::rail_resend
