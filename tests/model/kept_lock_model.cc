#include "tests/model/kept_lock_model.h"

#include <algorithm>
#include <cstdlib>

namespace gannet::model::kept_lock {
namespace {

using State = KeptLockModel::State;
using Phase = KeptLockModel::Phase;

constexpr uint8_t kCountBits = 4;
constexpr uint8_t kDone = 1, kRefused = 2;

uint8_t IdOf(uint8_t word) { return word >> kCountBits; }
bool Dead(const State& state, uint8_t id) { return (state.dead >> id & 1) != 0; }
bool Asks(const State& state) {
  return state.phase == Phase::kLocking || state.phase == Phase::kUnlocking;
}
// Begins a call, or what follows from one that was given up.
void Ask(State* state, Phase phase) {
  state->phase = phase;
  state->answered = state->sent = 0;
}

}  // namespace

std::vector<State> KeptLockModel::Initial() const {
  State state{};
  state.connection = state.connections = state.connected = 1;
  state.holder = state.ids = state.id = 1;
  state.attempts = scenario_.attempts;
  state.breaks = scenario_.breaks;
  state.deaths = scenario_.lock_rails_die;
  state.b_attempts = 1;
  return {state};
}

void KeptLockModel::Next(const State& state, const Emit& emit) const {
  Client(state, emit);
  Connection(state, emit);
  Server(state, emit);
  Other(state, emit);
}

void KeptLockModel::Client(const State& state, const Emit& emit) const {
  if (state.phase == Phase::kGone) return;
  if (state.phase == Phase::kIdle && state.connected != 0 && state.attempts > 0) {
    State next = state;
    --next.attempts;
    next.own = static_cast<uint8_t>(state.id << kCountBits | ++next.count);
    Ask(&next, Phase::kLocking);
    emit("A wants the lock", next);
  }
  if (state.phase == Phase::kHolds && state.connected != 0) {
    State next = state;
    Ask(&next, Phase::kUnlocking);
    emit("A gives the lock back", next);
  }
  if (Asks(state) && state.connected != 0 && !state.sent) {
    State next = state;
    next.sent = 1;
    if (rules_.by_nic) {
      const bool locks = state.phase == Phase::kLocking;
      Push(&next, {state.own, locks, state.connected});
      emit("A posts its swap", next);
    } else if (state.connected == state.connection) {
      next.received = 1;
      emit("A's request arrives", next);
    }
  }
  if (Asks(state) && state.connected != 0 && state.answered != 0 &&
      state.told_by == state.connected) {
    emit("A hears the answer", Answer(state));
  }
  if (state.phase == Phase::kLocking && !state.given_up) {
    State next = state;
    next.given_up = 1;
    emit("the deadline of A's call passes", next);
  }
  if (!scenario_.dies) return;
  State next = state;
  next.phase = Phase::kGone;
  next.connected = 0;
  emit("A dies", next);
}

State KeptLockModel::Answer(State state) const {
  const bool got = state.phase == Phase::kLocking && state.answered == kDone;
  if (got && state.given_up) {
    Ask(&state, Phase::kUnlocking);
  } else {
    state.phase = got ? Phase::kHolds : Phase::kIdle;
  }
  state.given_up = 0;
  return state;
}

void KeptLockModel::Connection(const State& state, const Emit& emit) const {
  if (state.connected != 0 && state.breaks > 0) {
    State next = state;
    --next.breaks;
    next.connected = 0;
    // A request may be lost on its way, and is sent again in any case.
    next.sent = 0;
    emit("A's connection breaks", next);
    next.received = 0;
    emit("A's connection breaks, and its request is lost", next);
  }
  const bool old = state.connection != 0 && state.connection != state.connected;
  if (old)
    emit("the server closes the old connection",
         Close(state, !rules_.by_nic || rules_.keeps_of_swappers));
  if (state.phase != Phase::kGone && state.connected == 0 && !old) {
    emit("A connects anew", Connect(state, true));
    if (state.breaks > 0) emit("A connects anew, and does not hear of it", Connect(state, false));
  }
  if (rules_.expires && state.kept != 0 && state.connection == 0 && state.connected == 0) {
    State next = state;
    next.dead |= 1 << state.kept;
    next.kept = 0;
    emit("A is away for a silence", next);
  }
}

// What the connection had received is dropped. Its swaps go on.
State KeptLockModel::Close(State state, bool keeps) const {
  if (keeps) {
    state.kept = state.holder;
  } else {
    state.dead |= 1 << state.holder;
  }
  state.connection = state.holder = state.received = 0;
  return state;
}

State KeptLockModel::Connect(State state, bool hears) const {
  state.connection = ++state.connections;
  state.holder = state.kept != 0 ? state.kept : ++state.ids;
  state.kept = 0;
  if (!hears) {
    --state.breaks;
    return state;
  }
  state.connected = state.connection;
  const bool kept = state.holder == state.id || !rules_.same_id_only;
  if (state.holder != state.id) state.id = state.holder;
  const bool forgets = !rules_.gives_back && state.given_up;
  if (!kept || forgets) {
    state.phase = Phase::kIdle;
    state.given_up = state.answered = 0;
  } else if (state.phase == Phase::kLocking && rules_.by_nic) {
    // A NIC's swap has no number under which it could be asked for again.
    state.phase = Phase::kIdle;
    state.given_up = 0;
  }
  return state;
}

void KeptLockModel::Server(const State& state, const Emit& emit) const {
  if (state.received) {
    State next = state;
    next.received = 0;
    if (state.answered != 0) {
      next.told_by = state.connection;
      emit("the server answers from its record", next);
    } else {
      Push(&next, {state.own, state.phase == Phase::kLocking, state.connection});
      emit("the server posts a swap", next);
    }
  }
  if (state.size > 0) emit("a swap takes effect", DoSwap(state));
  const uint8_t id = IdOf(state.word);
  if (state.word != 0 && state.word != kB && Dead(state, id)) {
    State next = state;
    next.word = 0;
    emit("the janitor frees a word of the dead", next);
  }
  if (state.deaths == 0) return;
  // Connections of holders are closed, and other memory is served when they are gone.
  State next = state.connection != 0 ? Close(state, false) : state;
  --next.deaths;
  next.word = next.connected = next.b_holds = next.size = 0;
  next.sent = 0;
  next.swaps = {};
  if (next.kept != 0 && rules_.lost_with_lock_rail) {
    next.dead |= 1 << next.kept;
    next.kept = 0;
  }
  emit("the lock rail dies", next);
}

void KeptLockModel::Push(State* state, const Swap& swap) const {
  if (state->size == kSwapsMax) std::abort();
  state->swaps[state->size++] = swap;
}

State KeptLockModel::DoSwap(State state) const {
  const Swap swap = state.swaps[0];
  std::copy(state.swaps.begin() + 1, state.swaps.end(), state.swaps.begin());
  state.swaps[--state.size] = {};
  const uint8_t old = state.word;
  const bool stores = !swap.locks && !rules_.unlock_compares;
  if (old == (swap.locks ? 0 : swap.word) || stores) state.word = swap.locks ? swap.word : 0;
  const bool of_present =
      swap.word == state.own && Asks(state) && swap.locks == (state.phase == Phase::kLocking);
  // Its connection is gone, so nobody records its answer.
  const bool open = rules_.by_nic ? swap.serves == state.connected
                                  : swap.serves != 0 && swap.serves == state.connection;
  if (!of_present || !open) return state;
  state.answered = old == swap.word || (swap.locks && old == 0) ? kDone : kRefused;
  state.told_by = swap.serves;
  return state;
}

void KeptLockModel::Other(const State& state, const Emit& emit) const {
  State next = state;
  if (state.b_holds) {
    next.b_holds = 0;
    if (state.word == kB) next.word = 0;
    emit("B gives the lock back", next);
  } else if (state.word == 0 && state.b_attempts > 0) {
    --next.b_attempts;
    next.b_holds = 1;
    next.word = kB;
    emit("B takes the lock", next);
  }
}

const char* KeptLockModel::Broken(const State& state) const {
  if (state.phase == Phase::kHolds && state.connected != 0 && state.word != state.own)
    return "A is connected, and believes in a lock that it does not have";
  if (state.b_holds && state.word != kB) return "B's lock was freed by another";
  return nullptr;
}

const char* KeptLockModel::BrokenAtRest(const State& state) const {
  return state.word != 0 ? "a lock that nobody frees" : nullptr;
}

}  // namespace gannet::model::kept_lock
