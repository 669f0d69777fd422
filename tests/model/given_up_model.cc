#include "tests/model/given_up_model.h"

#include <algorithm>
#include <cstdlib>

namespace gannet::model::given_up {
namespace {

using State = GivenUpModel::State;

// Numbers below this are over once `number` was admitted.
uint8_t FloorAt(uint8_t number) {
  return number < GivenUpModel::kCredits ? 1 : number - GivenUpModel::kCredits + 1;
}

GivenUpModel::Record& RecordOf(State* state, uint8_t number) {
  return state->records[number % GivenUpModel::kCredits];
}

}  // namespace

std::vector<GivenUpModel::State> GivenUpModel::Initial() const {
  State state{};
  state.connected = 1;
  state.breaks_left = 3;
  return {state};
}

void GivenUpModel::Next(const State& state, const Emit& emit) const {
  if (state.dropped) return;
  if (state.connected) {
    ClientSends(state, emit);
  } else {
    ClientComesBack(state, emit);
  }
  ServerSteps(state, emit);
}

void GivenUpModel::Send(State* state, uint8_t number, bool again) {
  for (Message& message : state->under_way) {
    if (message.number != 0) continue;
    message = {number, again};
    return;
  }
  std::abort();  // it has no more credits than there is room
}

void GivenUpModel::ClientSends(const State& state, const Emit& emit) const {
  State next = state;
  if (state.breaks_left > 0) {
    --next.breaks_left;
    next.connected = 0;
    next.under_way = {};
    next.tells_off = {};
    next.again = {};
    for (uint8_t i = 0; i < state.held_size; ++i) next.held[i].lost = 1;
    emit("the connection breaks", next);
    next = state;
  }
  for (uint8_t i = 1; i <= kRequests; ++i) {
    if (state.again[i] == Again::kToSend) {
      next.again[i] = Again::kSent;
      Send(&next, i, true);
      emit("the client sends a request again that was put off", next);
      next = state;
    }
    if (rules_.first_alone && state.again[i] != Again::kNo) return;
  }
  for (uint8_t i = 1; i <= kRequests; ++i) {
    if (state.client[i] != Client::kUnsent) continue;
    if (i > kCredits && state.client[i - kCredits] == Client::kWaits) return;
    next.client[i] = Client::kWaits;
    Send(&next, i, false);
    return emit("a request is sent", next);
  }
}

void GivenUpModel::ClientComesBack(const State& state, const Emit& emit) const {
  State next = state;
  next.connected = 1;
  for (uint8_t i = 1; i <= kRequests; ++i) {
    if (state.client[i] == Client::kWaits) Send(&next, i, false);
  }
  emit("the client comes back, and sends again what it waits for", next);
  for (uint8_t i = 1; i <= kRequests; ++i) {
    if (state.client[i] != Client::kWaits) continue;
    next = state;
    next.client[i] = Client::kGivenUp;
    emit("the client gives up a request", next);
  }
}

void GivenUpModel::ServerSteps(const State& state, const Emit& emit) const {
  if (state.under_way[0].number != 0) emit("the primary takes a request", Arrive(state));
  if (state.held_size > 0) emit("a write is committed", Commit(state));
  for (uint8_t i = 1; i <= kRequests; ++i) {
    if (!state.tells_off[i]) continue;
    State next = state;
    TellOff(&next, i);
    return emit("the client is told that a request is put off", next);
  }
}

GivenUpModel::State GivenUpModel::Arrive(State state) const {
  const Message message = state.under_way[0];
  std::rotate(state.under_way.begin(), state.under_way.begin() + 1, state.under_way.end());
  state.under_way.back() = {};
  const uint8_t number = message.number;
  switch (Admit(&state, message)) {
    case Admission::kDropped:
      state.dropped = 1;
      return state;
    case Admission::kPutOff:
      state.tells_off[number] = 1;
      if (rules_.in_order && (state.put_off == 0 || number < state.put_off)) state.put_off = number;
      return state;
    case Admission::kReplay:
      Tell(&state, number, RecordOf(&state, number).answer_of);
      return state;
    case Admission::kRedirected:
      std::ranges::find(state.held, number, &Held::number)->lost = 0;
      return state;
    case Admission::kExecute:
      break;
  }
  state.put_off = 0;
  ++state.effects[number];
  if (number < state.last) state.late = 1;
  state.last = std::max(state.last, number);
  state.held[state.held_size++] = {number, 0, 0};
  return state;
}

GivenUpModel::Admission GivenUpModel::Admit(State* state, Message message) const {
  const uint8_t number = message.number;
  Record& record = RecordOf(state, number);
  if (record.number == number && record.progress == Progress::kInProgress)
    return Admission::kRedirected;
  if (record.number == number && record.progress == Progress::kAnswered) return Admission::kReplay;
  if (number < FloorAt(state->highest)) return Admission::kDropped;
  if (state->put_off != 0 && number >= state->put_off && !message.sent_again)
    return Admission::kPutOff;
  if (number > state->highest) {
    const Admission given_up = GiveUpInTheWayOf(state, number);
    if (given_up != Admission::kExecute) return given_up;
    state->highest = number;
  }
  record = {number, Progress::kInProgress, 0};
  return Admission::kExecute;
}

// Gives up what is in progress and leaves the window with this number. kExecute: nothing is left.
GivenUpModel::Admission GivenUpModel::GiveUpInTheWayOf(State* state, uint8_t number) const {
  const auto is_in_the_way = [&](const Record& record) {
    return record.progress == Progress::kInProgress && record.number < FloorAt(number);
  };
  const auto in_the_way = std::ranges::count_if(state->records, is_in_the_way);
  if (in_the_way == 0) return Admission::kExecute;
  if (!rules_.gives_up) return Admission::kDropped;
  const auto before = std::ranges::count_if(state->held, &Held::given_up);
  if (rules_.bounded && before + in_the_way > kGivenUpPerCredit * kCredits) {
    return rules_.puts_off ? Admission::kPutOff : Admission::kDropped;
  }
  for (Held& held : state->held) {
    Record& record = RecordOf(state, held.number);
    const bool is_its = held.number != 0 && record.number == held.number && !held.given_up;
    if (!is_its || (rules_.only_in_the_way && !is_in_the_way(record))) continue;
    held.given_up = 1;
    record = {};
  }
  return Admission::kExecute;
}

// The oldest reply that is held may leave.
GivenUpModel::State GivenUpModel::Commit(State state) const {
  const Held first = state.held[0];
  std::rotate(state.held.begin(), state.held.begin() + 1, state.held.end());
  state.held.back() = {};
  --state.held_size;
  if (first.given_up && rules_.records_no_answer) return state;
  Record& record = RecordOf(&state, first.number);
  record.progress = Progress::kAnswered;
  record.answer_of = first.number;
  // A reply to a connection that is gone reaches nobody. The client asks for it again.
  if (!first.lost && !first.given_up) Tell(&state, first.number, first.number);
  return state;
}

void GivenUpModel::TellOff(State* state, uint8_t number) {
  state->tells_off[number] = 0;
  state->again[number] = Again::kToSend;
}

// A connection's replies arrive in their order.
void GivenUpModel::Tell(State* state, uint8_t number, uint8_t answer_of) {
  for (uint8_t i = 1; i <= kRequests; ++i) {
    if (state->tells_off[i]) TellOff(state, i);
  }
  state->client[number] = Client::kTold;
  state->again[number] = Again::kNo;
  if (answer_of != number) state->mistaken = 1;
}

const char* GivenUpModel::Broken(const State& state) const {
  for (const uint8_t effects : state.effects) {
    if (effects > 1) return "a request takes effect twice";
  }
  for (uint8_t i = 1; i <= kRequests; ++i) {
    if (state.client[i] == Client::kTold && state.effects[i] == 0)
      return "an answer says what is not there";
  }
  if (state.late) return "a request takes effect after a later one";
  if (state.mistaken) return "a request gets another one's answer";
  if (state.held_size > (1 + kGivenUpPerCredit) * kCredits) return "more waits than the bound";
  if (state.dropped) return "a client that keeps to its credits is dropped";
  return nullptr;
}

// The client waits for nothing, and nothing of it waits here.
bool GivenUpModel::Settled(const State& state) const {
  for (uint8_t i = 1; i <= kRequests; ++i) {
    if (state.client[i] == Client::kUnsent || state.client[i] == Client::kWaits) return false;
  }
  return state.held_size == 0;
}

}  // namespace gannet::model::given_up
