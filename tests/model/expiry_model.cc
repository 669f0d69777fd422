#include "tests/model/expiry_model.h"

#include <algorithm>

namespace gannet::model::expiry {

std::vector<ExpiryModel::State> ExpiryModel::Initial() const {
  State state{};
  state.content = kExpiring;
  state.polled_at = kNoPoll;
  state.gets_left = 2;
  state.put_left = 1;
  state.fail_overs_left = 1;
  state.hand_overs_left = 2;
  state.slews_left = 1;
  return {state};
}

ExpiryModel::Content ExpiryModel::Now(const State& state) {
  return state.content == kExpiring && state.expired ? kAbsent : state.content;
}

void ExpiryModel::Take(const char* label, State next, const Emit& emit) {
  // While the primary has stopped, nobody judges by its clock.
  if (!next.stopped && next.clock >= kExpiry) next.expired = 1;
  const auto bit = static_cast<uint8_t>(1 << Now(next));
  if (next.reader != Reader::kIdle) next.may |= bit;
  if (next.add == 1) next.add_may |= bit;
  emit(label, next);
}

void ExpiryModel::Answer(const char* label, State next, Content answer, const Emit& emit) {
  next.wrong |= (next.may >> answer & 1) == 0;
  next.reader = Reader::kIdle;
  next.bound = next.may = 0;
  next.sample = kAbsent;
  Take(label, next, emit);
}

void ExpiryModel::Next(const State& state, const Emit& emit) const {
  State next = state;
  if (state.clock < kClockMax) {
    ++next.clock;
    Take("time passes", next, emit);
  }
  ReaderSteps(state, emit);
  if (state.add == 0) {
    next = state;
    next.add = 1;
    Take("add is sent", next, emit);
  }
  if (!state.stopped) ServerSteps(state, emit);
  Slew(state, emit);
  FailOver(state, emit);
  HandOver(state, emit);
}

// While it is slewed, the clock goes on a little slower: that is time in which it does not pass, as
// there always is.
void ExpiryModel::Slew(const State& state, const Emit& emit) const {
  if (rules_.slewed || state.slews_left == 0 || state.clock == 0) return;
  State next = state;
  --next.slews_left;
  --next.clock;
  Take("the clock is set back", next, emit);
}

void ExpiryModel::Succeed(const char* label, State next, int clock, const Emit& emit) {
  next.jump = static_cast<uint8_t>(std::max(0, clock - next.clock));
  next.clock = static_cast<uint8_t>(clock);
  next.polled_at = kNoPoll;
  if (next.reader != Reader::kIdle) ++next.gets_left;
  next.reader = Reader::kIdle;
  next.bound = next.may = 0;
  next.sample = kAbsent;
  --next.fail_overs_left;
  next.stopped = next.answered = next.last = next.told = 0;
  Take(label, next, emit);
}

void ExpiryModel::FailOver(const State& state, const Emit& emit) const {
  if (state.fail_overs_left == 0) return;
  const uint8_t behind = rules_.clock_goes_on || state.clock == 0 ? 0 : 1;
  for (int clock = state.clock - behind; clock <= kClockMax; ++clock) {
    Succeed("another member takes over", state, clock, emit);
  }
}

// Who was not told the last of the clock adds what the clock may have gone on since, as who takes
// over does.
void ExpiryModel::HandOver(const State& state, const Emit& emit) const {
  if (state.fail_overs_left == 0) return;
  State next = state;
  if (!state.stopped && state.hand_overs_left > 0) {
    --next.hand_overs_left;
    next.stopped = 1;
    next.polled_at = kNoPoll;
    Take("the primary stops for a hand-over", next, emit);
  }
  next = state;
  next.told = state.clock;
  next.last = state.stopped || !rules_.stops_first;
  next.answered = state.stopped;
  Take("a beacon", next, emit);
  if (!state.stopped) return;
  next = state;
  next.stopped = next.answered = 0;
  Take("the hand-over fails, and the primary goes on", next, emit);
  if (rules_.told_again && !state.answered) return;
  const bool knows = state.last || !rules_.last_is_told;
  for (int clock = knows ? state.told : state.clock; clock <= kClockMax; ++clock) {
    Succeed("the successor is named", state, clock, emit);
  }
}

uint8_t ExpiryModel::LowerMax(const State& state) const {
  if (!rules_.bound_is_lower) return kClockMax;
  const int wrong = rules_.slewed_slowly ? 0 : 1;
  return static_cast<uint8_t>(std::min<int>(state.clock + wrong, kClockMax));
}

void ExpiryModel::ReaderSteps(const State& state, const Emit& emit) const {
  State next = state;
  switch (state.reader) {
    case Reader::kIdle:
      if (state.gets_left == 0) return;
      --next.gets_left;
      next.reader = Reader::kBegun;
      for (uint8_t bound = 0; bound <= LowerMax(state); ++bound) {
        next.bound = bound;
        Take("GET begins", next, emit);
      }
      return;
    case Reader::kBegun:
      next.reader = Reader::kSampled;
      next.sample = state.content;
      return Take("GET reads", next, emit);
    case Reader::kSampled:
      if (!state.stopped) Decide(state, emit);  // it has no lease
      return;
    case Reader::kAsking:
      return;
  }
}

void ExpiryModel::Decide(const State& state, const Emit& emit) const {
  if (state.sample != kExpiring) return Answer("GET believes", state, state.sample, emit);
  const uint8_t jump = rules_.new_bounds ? 0 : state.jump;
  for (uint8_t upper = state.clock - jump; upper <= kClockMax; ++upper) {
    if (upper < kExpiry || !rules_.alive_by_upper) Answer("GET hits", state, kExpiring, emit);
  }
  for (uint8_t late = 0; late <= state.clock; ++late) {
    const uint8_t bound = rules_.bound_from_begin ? state.bound : late;
    if (bound >= kExpiry) Answer("GET misses", state, kAbsent, emit);
  }
  State next = state;
  next.reader = Reader::kAsking;
  Take("GET asks", next, emit);
}

void ExpiryModel::ServerSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (state.polled_at == kNoPoll) {
    next.polled_at = state.clock;
    return Take("Poll begins", next, emit);
  }
  next.polled_at = kNoPoll;
  Take("Poll ends", next, emit);
  const uint8_t time = rules_.server_looks_again ? state.clock : state.polled_at;
  const bool expired = state.content == kExpiring && time >= kExpiry;
  const Content found = expired ? kAbsent : state.content;
  next = state;
  next.content = found;  // an expired item is removed
  if (state.reader == Reader::kAsking) Answer("server answers GET", next, found, emit);
  if (state.add == 1) {
    next.wrong |= found == kAbsent ? Now(state) != kAbsent : (state.add_may >> found & 1) == 0;
    if (found == kAbsent) next.content = kOther;
    next.add = 2;
    next.add_may = 0;
    Take("server answers add", next, emit);
  }
  if (state.put_left > 0) {
    next = state;
    next.content = kOther;
    --next.put_left;
    Take("server puts", next, emit);
  }
}

const char* ExpiryModel::Broken(const State& state) const {
  return state.wrong ? "an answer that the key did not have during the operation" : nullptr;
}

}  // namespace gannet::model::expiry
