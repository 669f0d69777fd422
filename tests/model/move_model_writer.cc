// The client that writes.
#include <algorithm>

#include "tests/model/move_model.h"

namespace gannet::model::move {

void MoveModel::WriterSteps(const State& state, const Emit& emit) const {
  if (state.answered == (1 << scenario_.requests) - 1) return;
  for (uint8_t r = state.writer.revision + 1; r <= state.revision; ++r) {
    emit("the writer learns of the map", WriterLearns(state, r));
  }
  for (uint8_t i = 0; i < scenario_.requests; ++i) {
    if ((state.answered >> i & 1) == 0) RequestSteps(state, i, emit);
  }
  BreakSteps(state, emit);
}

void MoveModel::RequestSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Sent& sent = state.writer.requests[i];
  // Of two that are on the way to one group, or back from it, this one is behind the other.
  const uint8_t ahead = 1 - i;
  const Sent& other = state.writer.requests[ahead];
  const bool behind = other.bound == sent.bound && state.writer.overtaken == ahead;
  const bool other_arrives = behind && other.phase <= Request::kUnderWay;
  switch (sent.phase) {
    case Request::kIdle:
      if (MaySend(state, i)) emit("a request is sent", SendAnew(state, i));
      return;
    case Request::kLost: {
      if (behind && other.phase == Request::kLost) return;
      State next = state;
      next.writer.requests[i].phase = Request::kUnderWay;
      const Map& map = state.maps[state.writer.revision];
      if (!rules_.asks_giver_first) next.writer.requests[i].bound = map.owner;
      return emit("a request is sent again", next);
    }
    case Request::kUnderWay:
      if (!other_arrives && !(behind && other.phase == Request::kLost)) {
        emit("a request arrives", Execute(state, i));
      }
      return;
    case Request::kRefused:
      if (behind && other.phase == Request::kRefused) return;
      return emit("the writer is told that the partition is not there", Refused(state, i));
    case Request::kExecuted:
      if ((state.groups[sent.bound].committed.answers >> i & 1) == 0) return;
      return emit("a request is answered", Answered(state, i));
  }
}

// The client's connection to a group breaks.
void MoveModel::BreakSteps(const State& state, const Emit& emit) const {
  if (state.writer.breaks_left == 0) return;
  for (uint8_t g = 0; g < kGroups; ++g) {
    const bool waits = std::ranges::any_of(state.writer.requests, [g](const Sent& sent) {
      return sent.bound == g && sent.phase != Request::kIdle && sent.phase != Request::kLost;
    });
    if (!waits) continue;
    State next = state;
    --next.writer.breaks_left;
    LoseRequests(&next, g);
    emit("the writer's connection breaks", next);
  }
}

bool MoveModel::MaySend(const State& state, uint8_t i) const {
  const Writer& writer = state.writer;
  if (state.maps[writer.revision].closed != 0) return false;
  if (i == 0 || (state.answered & 1) != 0) return true;
  const bool sent = writer.requests[0].phase != Request::kIdle;
  if (!rules_.holds_refused && writer.requests[1].refused) return true;
  return scenario_.pipelined && sent && !writer.held;
}

MoveModel::State MoveModel::WriterLearns(State state, uint8_t revision) const {
  Writer& writer = state.writer;
  const bool changed = !Same(state.maps[writer.revision], state.maps[revision]);
  const bool sent = (state.answered & 1) == 0 && writer.requests[0].phase != Request::kIdle;
  if (changed && sent && scenario_.pipelined && rules_.holds_unsent) writer.held = 1;
  writer.revision = revision;
  return state;
}

MoveModel::State MoveModel::SendAnew(State state, uint8_t i) const {
  Writer& writer = state.writer;
  Sent& sent = writer.requests[i];
  const Map& map = state.maps[writer.revision];
  const bool alone = i == 0 || (state.answered & 1) != 0;
  sent.bound = map.owner;
  sent.phase = Request::kUnderWay;
  sent.told = sent.refused && (alone || !rules_.first_says_told);
  if (rules_.compares_numbers) sent.number = map.changed;
  const bool other_waits = writer.requests[1].phase != Request::kIdle;
  writer.overtaken = i == 0 && other_waits;
  return state;
}

MoveModel::State MoveModel::Refused(State state, uint8_t i) const {
  Writer& writer = state.writer;
  writer.requests[i] = {.bound = kNobody, .refused = scenario_.pipelined};
  if (i == 0 && scenario_.pipelined) writer.held = 1;
  if (i == 1) writer.overtaken = 0;
  return state;
}

MoveModel::State MoveModel::Answered(State state, uint8_t i) const {
  Writer& writer = state.writer;
  const Copy& committed = state.groups[writer.requests[i].bound].committed;
  state.answered |= 1 << i;
  state.version_max = std::max(state.version_max, committed.item.version);
  writer.requests[i] = {.bound = kNobody};
  writer.overtaken = 0;
  if (i == 0) writer.held = 0;
  return state;
}

// What is lost behind a request that was refused was not executed, as the group that refused it
// refuses what follows. A next primary does not know of that.
void MoveModel::LoseRequests(State* state, uint8_t g) const {
  Writer& writer = state->writer;
  for (Sent& sent : writer.requests) {
    if (sent.bound == g && sent.phase != Request::kIdle) sent.phase = Request::kLost;
  }
  Sent& second = writer.requests[1];
  const bool behind_refused = (state->answered & 1) == 0 && writer.requests[0].refused;
  if (second.phase != Request::kLost || !behind_refused || !rules_.holds_lost) return;
  second = {.bound = kNobody};
  writer.overtaken = 0;
}

MoveModel::State MoveModel::Execute(State state, uint8_t i) const {
  Sent& sent = state.writer.requests[i];
  Group& group = state.groups[sent.bound];
  Copy& now = group.now;
  const uint8_t bit = 1 << i;
  const bool serves = Serves(state, sent.bound);
  sent.phase = Request::kExecuted;
  if ((now.answers & bit) != 0 && (serves || rules_.answers_before_refusals)) return state;
  const bool other_change =
      rules_.compares_numbers && sent.number != KnownTo(state, sent.bound).changed;
  const bool behind = group.refuses && !sent.told;
  if (!serves || other_change || behind) {
    sent.phase = Request::kRefused;
    group.refuses = scenario_.pipelined && rules_.refuses_behind;
    return state;
  }
  group.refuses = 0;
  now.item.present = scenario_.operations[i] == MoveScenario::kIncrement;
  now.item.version = ++now.counter;
  ++now.item.effects[i];
  now.answers |= bit;
  if (now.item.version <= state.version_max) state.wrong = kVersionBack;
  if (i == 0 && now.item.effects[1] > 0) state.wrong = kOvertaken;
  return state;
}

}  // namespace gannet::model::move
