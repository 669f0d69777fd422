#include "softverbs/tests/model/late_write_model.h"

#include <algorithm>

namespace softverbs::model::late_write {
namespace {

constexpr uint8_t kEnd = 6;       // of time
constexpr uint8_t kLifetime = 2;  // how old a tick may be
constexpr uint8_t kPatience = 1;  // how long the requester waits for the answer

// Clears what nobody looks at any more, so that equal states count once.
LateWriteModel::State Tidy(LateWriteModel::State state, const LateWriteRules& rules) {
  using Stage = LateWriteModel::Stage;
  using Place = LateWriteModel::Place;
  for (LateWriteModel::Connection& each : state.connections) {
    if (each.stage != Stage::kWaits) each.posted_at = 0;
    if (each.write == Place::kGone) each.stamp = each.arrived_at = 0;
    if (rules.age_from_tick) each.arrived_at = 0;
    if (each.stage > Stage::kWaits && rules.stops_before_report) each.tick_under_way = 0;
    if (each.stage == Stage::kReported && rules.tick_of_own_connection) each.tick_taken_at = 0;
  }
  return state;
}

}  // namespace

void LateWriteModel::Next(const State& state, const Emit& emit_any) const {
  const Emit emit = [&](const char* label, const State& to) { emit_any(label, Tidy(to, rules_)); };
  State next = state;
  if (state.now < kEnd) {
    ++next.now;
    emit("time passes", next);
  }
  for (size_t c = 0; c <= state.current; ++c) {
    RequesterSteps(state, c, emit);
    NetworkSteps(state, c, emit);
    TargetSteps(state, c, emit);
  }
  if (state.process == 0) {
    next = state;
    ++next.process;
    emit("the target dies, and another process takes its place", next);
  }
}

void LateWriteModel::RequesterSteps(const State& state, size_t c, const Emit& emit) const {
  State next = state;
  Connection& mine = next.connections[c];
  const bool sends =
      rules_.stops_before_report ? mine.stage == Stage::kWaits : mine.stage != Stage::kIdle;
  if (mine.write == Place::kRing && sends && mine.tick != 0) {
    mine.stamp = mine.tick - 1;
    mine.write = Place::kNetwork;
    emit("the requester sends", next);
    mine = state.connections[c];
  }
  if (mine.stage == Stage::kIdle) {
    mine.stage = Stage::kWaits;
    mine.write = Place::kRing;
    mine.posted_at = state.now;
    return emit("the requester posts a WRITE", next);
  }
  if (mine.stage == Stage::kWaits && state.now - mine.posted_at >= kPatience) {
    mine.stage = Stage::kStopped;
    return emit("the requester gives up", next);
  }
  const bool quiet =
      mine.tick == 0 || state.now - mine.tick_taken_at >= kLifetime || !rules_.waits_for_last_tick;
  if (mine.stage == Stage::kStopped && quiet) {
    mine.stage = Stage::kReported;
    return emit("the requester reports the error", next);
  }
  if (mine.stage == Stage::kReported && c == state.current && c + 1 < kConnections) {
    ++next.current;
    next.connections[c + 1].meant = state.process;
    emit("the requester makes a new connection", next);
  }
}

void LateWriteModel::NetworkSteps(const State& state, size_t c, const Emit& emit) const {
  State next = state;
  Connection& carried = next.connections[c];
  if (carried.write == Place::kNetwork) {
    carried.write = Place::kBuffer;
    carried.arrived_at = state.now;
    emit("the WRITE arrives", next);
    carried = state.connections[c];
  }
  // Ticks are of use only to a requester that still sends.
  const bool stopped = carried.stage > Stage::kWaits && rules_.stops_before_report;
  if (carried.tick_under_way != 0 && !stopped) {
    carried.tick = carried.tick_under_way;
    carried.tick_taken_at = state.now;
    carried.tick_under_way = 0;
    emit("a tick arrives", next);
  }
}

bool LateWriteModel::TooOld(const State& state, size_t c) const {
  if (!rules_.target_looks_at_age) return false;
  const Connection& from = state.connections[c];
  uint8_t since = rules_.age_from_tick ? from.stamp : from.arrived_at;
  if (!rules_.tick_of_own_connection) {
    for (const Connection& any : state.connections) {
      since = std::max<uint8_t>(since, any.tick == 0 ? 0 : any.tick - 1);
    }
  }
  return state.now - since >= kLifetime;
}

void LateWriteModel::TargetSteps(const State& state, size_t c, const Emit& emit) const {
  State next = state;
  Connection& from = next.connections[c];
  if (from.tick_under_way == 0 && from.write <= Place::kRing && from.meant == state.process) {
    from.tick_under_way = state.now + 1;
    emit("the target sends a tick", next);
    from = state.connections[c];
  }
  if (from.write != Place::kBuffer) return;
  from.write = Place::kGone;
  const bool foreign = from.meant != state.process;
  if ((foreign && rules_.refuses_older_connection) || TooOld(state, c)) {
    return emit("the target refuses the WRITE", next);
  }
  next.late = from.stage == Stage::kReported;
  next.misled = foreign;
  emit("the target executes the WRITE", next);
}

const char* LateWriteModel::Broken(const State& state) const {
  if (state.late != 0) return "a WRITE was executed after its error was reported";
  return state.misled != 0 ? "a process executed a WRITE that was sent to its predecessor"
                           : nullptr;
}

}  // namespace softverbs::model::late_write
