#include "tests/model/moved_expiry_model.h"

#include <algorithm>
#include <utility>

namespace gannet::model::moved_expiry {
namespace {

constexpr std::pair<uint8_t, uint8_t> kClocks[] = {{2, 2}, {3, 2}, {2, 3}, {6, 2}, {2, 6}};
// Enough that the receiver's clock loses more than what rounding leaves.
constexpr uint8_t kGiverAlone = 3;
constexpr uint8_t kHellos = 2;   // those of a link
constexpr uint8_t kLivesMs = 2;  // from a touch on
// What a difference of two clocks that are cut to milliseconds, less one, may lack.
constexpr int kRounding = 3;

uint8_t Shown(uint8_t clock) { return clock / 2; }

}  // namespace

std::vector<MovedExpiryModel::State> MovedExpiryModel::Initial() const {
  std::vector<State> states;
  for (const auto& [giver, receiver] : kClocks) {
    State state{};
    state.giver = giver;
    state.receiver = receiver;
    state.giver_alone = kGiverAlone;
    state.receiver_alone = 1;
    state.fail_overs_left = state.touches_left = 1;
    state.hellos_left = kHellos;
    state.expiry = static_cast<uint8_t>(Shown(giver) + kLivesMs);
    states.push_back(state);
  }
  return states;
}

void MovedExpiryModel::Next(const State& state, const Emit& emit) const {
  if (state.giver < kClockMax && state.receiver < kClockMax) Time(state, emit);
  Read(state, emit);
  if (state.step < Step::kEnded) {
    GiverSteps(state, emit);
    FailOver(state, emit);
  }
  ReceiverSteps(state, emit);
}

void MovedExpiryModel::Time(const State& state, const Emit& emit) {
  const auto trip = static_cast<uint8_t>(state.step == Step::kHello ? 1 : 0);
  const auto since = static_cast<uint8_t>(state.step >= Step::kWelcome ? 1 : 0);
  const auto may_fail_over =
      static_cast<uint8_t>(state.fail_overs_left > 0 && state.step < Step::kEnded);
  State next = state;
  ++next.giver;
  ++next.receiver;
  next.unseen = may_fail_over;
  next.trip += trip;
  emit("time passes", next);
  if (state.giver_alone > 0) {
    next = state;
    ++next.giver;
    next.unseen = may_fail_over;
    --next.giver_alone;
    next.lost += since;
    emit("the giver's clock goes on", next);
  }
  if (state.receiver_alone > 0) {
    next = state;
    ++next.receiver;
    --next.receiver_alone;
    next.trip += trip;
    next.gained += since;
    emit("the receiver's clock goes on", next);
  }
}

// By the group that serves the key, if one does.
void MovedExpiryModel::Read(const State& state, const Emit& emit) {
  if (state.step == Step::kEnded) return;
  const bool moved = state.step == Step::kOwned;
  const bool alive =
      moved ? state.own_expiry > Shown(state.receiver) : state.expiry > Shown(state.giver);
  State next = state;
  if (!moved) next.unseen = 0;
  if (alive && state.seen_dead) next.wrong = 1;
  if (!alive) next.seen_dead = 1;
  const int due = 2 * state.expiry;
  if (moved && alive && state.giver >= due + state.lost) next.wrong = 2;
  if (moved && !alive && state.giver < due - state.trip - kRounding - state.gained) next.wrong = 3;
  emit(alive ? "the item is there" : "the item has expired", next);
}

void MovedExpiryModel::GiverSteps(const State& state, const Emit& emit) {
  State next = state;
  if (state.touches_left > 0 && state.expiry > Shown(state.giver)) {
    --next.touches_left;
    next.unseen = 0;
    next.expiry = static_cast<uint8_t>(Shown(state.giver) + kLivesMs);
    next.has = 0;
    emit("the item is touched", next);
  }
}

void MovedExpiryModel::FailOver(const State& state, const Emit& emit) const {
  if (state.fail_overs_left == 0) return;
  const int behind = rules_.goes_on ? state.unseen : 2;
  for (int jump = -behind; jump <= 2; ++jump) {
    if (state.giver + jump > kClockMax) break;
    State next = state;
    --next.fail_overs_left;
    next.giver = static_cast<uint8_t>(state.giver + jump);
    next.unseen = 0;
    next.step = Step::kIdle;
    next.hellos_left = kHellos;
    next.has = next.own_expiry = next.told = next.told_behind = 0;
    if (rules_.begins_anew) next.has_difference = 0;
    emit("the giver gets another primary", next);
  }
}

void MovedExpiryModel::ReceiverSteps(const State& state, const Emit& emit) const {
  State next = state;
  switch (state.step) {
    case Step::kIdle:
    case Step::kHello:
      if (state.step == Step::kIdle || MayAskAgain(state)) {
        --next.hellos_left;
        next.step = Step::kHello;
        next.asked = Shown(state.receiver);
        if (state.step == Step::kIdle) next.trip = 0;
        emit("hello", next);
      }
      if (state.step == Step::kIdle) return;
      next = state;
      next.step = Step::kWelcome;
      next.answer = Shown(state.giver);
      next.unseen = 0;
      next.lost = next.gained = 0;
      return emit("welcome", next);
    case Step::kWelcome:
      if (MayAskAgain(state)) {
        --next.hellos_left;
        next.asked = Shown(state.receiver);
        emit("hello, again", next);
      }
      return Welcomed(state, emit);
    case Step::kCopies:
      Take(state, emit);
      next.told = Shown(state.giver);
      next.unseen = 0;
      emit("a beacon", next);
      next = state;
      next.step = Step::kEnded;
      next.unseen = 0;
      return emit("the giver ends", next);
    case Step::kEnded:
      Take(state, emit);
      next.told = Shown(state.giver);
      next.told_behind = 1;
      emit("a beacon behind the end", next);
      if (!MayOwn(state)) return;
      next = state;
      next.step = Step::kOwned;
      return emit("the receiver is the owner", next);
    case Step::kOwned:
      return;
  }
}

void MovedExpiryModel::Welcomed(const State& state, const Emit& emit) const {
  State next = state;
  next.step = Step::kCopies;
  if (!state.has_difference) {
    const int own = rules_.asks_first ? state.asked : Shown(state.receiver);
    next.difference = static_cast<int8_t>(own - state.answer - (rules_.rounds_down ? 1 : 0));
  }
  if (!rules_.translates) next.difference = 0;
  next.has_difference = 1;
  emit("the welcome comes", next);
}

// An item that has expired is not kept.
void MovedExpiryModel::Take(const State& state, const Emit& emit) const {
  if (state.has) return;
  State next = state;
  next.has = 1;
  const int own = std::max(1, state.expiry + state.difference);
  next.own_expiry = own <= Shown(state.receiver) ? uint8_t{0} : static_cast<uint8_t>(own);
  emit("the receiver takes the item", next);
}

bool MovedExpiryModel::MayOwn(const State& state) const {
  if (!state.has) return false;
  if (!rules_.waits) return true;
  const bool told = rules_.behind_the_end ? state.told_behind : state.told != 0;
  return told && Shown(state.receiver) >= state.told + state.difference;
}

const char* MovedExpiryModel::Broken(const State& state) const {
  constexpr const char* kWhat[] = {nullptr, "an item that was seen to expire is there again",
                                   "an item lives longer than at the giver",
                                   "an item expires too early"};
  return kWhat[state.wrong];
}

}  // namespace gannet::model::moved_expiry
