#include "tests/model/session_model.h"

#include <algorithm>
#include <cstdlib>

namespace gannet::model::session {

std::vector<SessionModel::State> SessionModel::Initial() const {
  State state{};
  state.primary.known = 1;
  state.joined_at = kNotJoined;
  state.connected = 1;
  state.fulls_left = state.ends_left = 1;
  state.breaks_left = state.failovers_left = 2;
  return {state};
}

void SessionModel::Next(const State& state, const Emit& emit) const {
  ClientSteps(state, emit);
  ServerSteps(state, emit);
  EndSession(state, emit);
  FailOver(state, emit);
}

void SessionModel::ClientSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (!state.connected) return emit("the client comes back with its token", Resume(state));
  for (uint8_t i = 0; i < kRequests; ++i) {
    if (state.was_sent[i]) continue;
    next.was_sent[i] = next.under_way[i] = 1;
    emit("a request is sent", next);
    next = state;
    break;
  }
  if (state.breaks_left > 0) {
    --next.breaks_left;
    next.connected = 0;
    next.under_way = {};
    emit("the connection breaks", next);
  }
}

// Sends again what was not answered. If the token is unknown, nobody can say what became of it.
SessionModel::State SessionModel::Resume(State state) const {
  state.connected = 1;
  const bool refused = !state.primary.known && rules_.refuses_unknown_token;
  state.primary.known = 1;  // a new session, if need be
  for (uint8_t i = 0; i < kRequests; ++i) {
    if (!state.was_sent[i] || state.told[i] != kNoAnswer) continue;
    if (refused) {
      state.told[i] = kUnknown;
    } else {
      state.under_way[i] = 1;
    }
  }
  return state;
}

void SessionModel::ServerSteps(const State& state, const Emit& emit) const {
  State next = state;
  for (uint8_t i = 0; i < kRequests; ++i) {
    const bool is_next = i == 0 || !state.under_way[0];
    if (state.under_way[i] && is_next && state.primary.known) {
      emit("the primary executes a request, or knows its answer", Execute(state, i));
    }
    const Answer answer = state.primary.answers[i];
    const bool waited = state.connected && state.was_sent[i] && state.told[i] == kNoAnswer;
    if (waited && !state.under_way[i] && answer != kNoAnswer &&
        state.answer_at[i] <= state.committed) {
      next.told[i] = answer;
      emit("a reply arrives", next);
      next = state;
    }
  }
  if (state.joined_at == kNotJoined && state.committed == state.end) {
    next.joined_at = state.end;
    emit("a member joins", next);
    next = state;
  }
  if (state.committed == state.end) return;
  const Record& record = state.log[next.committed++];
  emit("a record is committed", next);
  const bool is_put = record.kind == Kind::kChange && operations_[record.request] == kPut;
  if (!is_put || state.fulls_left == 0 || state.end == kRecordsMax) return;
  --next.fulls_left;
  const Record undo = {Kind::kUndo, record.request, rules_.undo_has_numbers};
  Append(&next, undo);
  Apply(&next.primary, undo, true);
  // The primary itself knows whose write it was.
  next.primary.answers[record.request] = kFull;
  next.answer_at[record.request] = next.end;
  emit("a record is committed, and undone as the index is full", next);
}

SessionModel::State SessionModel::Execute(State state, uint8_t request) const {
  state.under_way[request] = 0;
  Server& primary = state.primary;
  if (primary.answers[request] != kNoAnswer) return state;
  if (operations_[request] == kDelete && !primary.present) {
    const Record refusal = {Kind::kRefusal, request, 1};
    // It waits for what it tells of, and not for its own record.
    state.answer_at[request] = LastChange(state);
    if (rules_.streams_refusals) Append(&state, refusal);
    Apply(&primary, refusal, true);
    return state;
  }
  if (rules_.answers_in_change) {
    Append(&state, {Kind::kChange, request, 1});
  } else {
    Append(&state, {Kind::kChangeOnly, request, 1});
    Append(&state, {Kind::kAnswerOnly, request, 1});
  }
  Apply(&primary, {Kind::kChange, request, 1}, true);
  state.answer_at[request] = state.end;
  return state;
}

// Where the last record of a change ends.
uint8_t SessionModel::LastChange(const State& state) const {
  for (uint8_t end = state.end; end > 0; --end) {
    const Kind kind = state.log[end - 1].kind;
    if (kind != Kind::kRefusal && kind != Kind::kEnd) return end;
  }
  return 0;
}

void SessionModel::Append(State* state, const Record& record) const {
  if (state->end == kRecordsMax) std::abort();
  state->log[state->end++] = record;
}

void SessionModel::Apply(Server* server, const Record& record, bool with_answer) const {
  const uint8_t i = record.request;
  Answer answer = kNoAnswer;
  switch (record.kind) {
    case Kind::kNone:
      return;
    case Kind::kEnd:
      server->known = 0;
      server->answers = {};
      return;
    case Kind::kChange:
    case Kind::kChangeOnly:
      ++server->effects[i];
      server->present = operations_[i] != kDelete;
      if (i == 0 && server->effects[1] > 0 && operations_[i] == kDelete) server->late = 1;
      if (record.kind == Kind::kChange) answer = kOk;
      break;
    case Kind::kAnswerOnly:
      answer = kOk;
      break;
    case Kind::kRefusal:
      answer = kNotFound;
      break;
    case Kind::kUndo:
      --server->effects[i];
      server->present = 0;
      if (!server->known) return;  // a session that ended does not come back by this
      if (record.has_number) answer = kFull;
      break;
  }
  if (!with_answer) return;
  server->known = 1;
  if (answer != kNoAnswer) server->answers[i] = answer;
}

// What a member has of the stream up to `end`. A joiner has the items of what was before its stream
// began, and of the sessions what it was sent.
SessionModel::Server SessionModel::Replay(const State& state, uint8_t end, bool joiner) const {
  Server server{};
  const bool has_sessions = !joiner || rules_.sends_sessions;
  server.known = has_sessions;
  for (uint8_t k = 0; k < end; ++k) {
    Apply(&server, state.log[k], has_sessions || k >= state.joined_at);
  }
  return server;
}

// The client ends its session, or the server ends it as the client was silent.
void SessionModel::EndSession(const State& state, const Emit& emit) const {
  const bool all_told =
      std::none_of(state.told.begin(), state.told.end(), [](Answer a) { return a == kNoAnswer; });
  if (!state.primary.known || state.was_ended || state.end == kRecordsMax) return;
  const bool silent = !state.connected && state.ends_left > 0;
  if (!silent && !all_told) return;
  State next = state;
  if (silent) --next.ends_left;
  next.was_ended = 1;
  next.primary.known = 0;
  next.primary.answers = {};
  if (rules_.records_end) Append(&next, {Kind::kEnd, 0, 0});
  emit(silent ? "the primary ends a silent session" : "the client ends its session", next);
}

void SessionModel::FailOver(const State& state, const Emit& emit) const {
  if (state.failovers_left == 0) return;
  for (uint8_t end = state.committed; end <= state.end; ++end) {
    for (const bool joiner : {false, true}) {
      if (joiner && state.joined_at == kNotJoined) continue;
      State next = state;
      --next.failovers_left;
      next.primary = Replay(state, end, joiner);
      std::fill(next.log.begin() + end, next.log.end(), Record{});
      next.end = next.committed = end;
      next.answer_at = {};
      next.joined_at = kNotJoined;
      next.connected = 0;
      next.under_way = {};
      emit(joiner ? "a member that joined takes over" : "a backup takes over", next);
    }
  }
}

const char* SessionModel::Broken(const State& state) const {
  const Server& primary = state.primary;
  for (uint8_t i = 0; i < kRequests; ++i) {
    if (primary.effects[i] > 1) return "a request takes effect twice";
    const bool refused = state.told[i] == kNotFound || state.told[i] == kFull;
    if ((state.told[i] == kOk && primary.effects[i] == 0) || (refused && primary.effects[i] > 0))
      return "an answer says what is not there";
    if (state.told[i] == kUnknown && !state.was_ended)
      return "a client is told nothing, although its session did not end";
  }
  if (primary.late) return "a request takes effect after a later one of its connection";
  const bool ended = state.was_ended && !primary.known && state.committed == state.end;
  if (ended && Replay(state, state.end, false).known) return "a backup keeps a session that ended";
  return nullptr;
}

}  // namespace gannet::model::session
