#include "tests/model/lock_model.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace gannet::model::lock {
namespace {

using State = LockModel::State;
using Cas = LockModel::Cas;
using CasKind = LockModel::CasKind;
using CasResult = LockModel::CasResult;
using Phase = LockModel::Phase;
using Progress = LockModel::Progress;
using ReadResult = LockModel::ReadResult;
using Request = LockModel::Request;

constexpr uint8_t kCountBits = 4;

uint8_t LockWordOf(uint8_t connection, uint8_t count) { return connection << kCountBits | count; }
uint8_t ConnectionOf(uint8_t word) { return word >> kCountBits; }

// The order of things under way has no meaning. This keeps them sorted, so that equal states look
// equal.
void Add(State* state, const Cas& cas) {
  auto& all = state->cas;
  if (all.back().kind != CasKind::kNone) std::abort();
  all.back() = cas;
  std::sort(all.begin(), all.end(), [](const Cas& a, const Cas& b) {
    return std::tie(b.kind, a.word, a.owner, a.client) <
           std::tie(a.kind, b.word, b.owner, b.client);
  });
}
void Remove(State* state, int i) {
  auto& all = state->cas;
  std::copy(all.begin() + i + 1, all.end(), all.begin() + i);
  all.back() = {};
}
void Add(State* state, const Request& request) {
  for (Request& slot : state->requests) {
    if (slot.progress != Progress::kNone) continue;
    slot = request;
    return;
  }
  std::abort();
}

}  // namespace

std::vector<State> LockModel::Initial() const {
  State state{};
  state.lock_owner = kNobody;
  state.version = 1;
  state.next_connection = 1;
  state.next_serial = 1;
  state.plain_puts_left = scenario_.plain_puts;
  state.deaths_left = scenario_.deaths;
  state.leases_left = scenario_.leases;
  state.extends_left = scenario_.extends;
  for (Client& client : state.clients) {
    client.connection = state.next_connection++;
    client.owner = state.next_owner++;
    client.attempts_left = scenario_.attempts;
  }
  return {state};
}

void LockModel::Next(const State& state, const Emit& emit) const {
  for (uint8_t i = 0; i < kClients; ++i) ClientSteps(state, i, emit);
  NicSteps(state, emit);
  WorkerSteps(state, emit);
  JanitorSteps(state, emit);
  LeaseSteps(state, emit);
  ExtendSteps(state, emit);
  ConnectionSteps(state, emit);
  if (state.plain_puts_left > 0 && !MutexHeld(state)) {
    State next = state;
    --next.plain_puts_left;
    WithNewVersion(next, "a plain PUT", emit);
  }
}

void LockModel::ClientSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Client& client = state.clients[i];
  if (client.phase == Phase::kIdle && client.attempts_left > 0) {
    emit("a client posts CAS and READ", PostLock(state, i));
  }
  if (client.read == ReadResult::kPosted || client.read == ReadResult::kSampled) {
    State next = state;
    if (client.read == ReadResult::kPosted) next.clients[i].version = state.version;
    next.clients[i].read = ReadResult::kDone;
    emit("a READ completes", next);
  }
  if (client.phase == Phase::kLocking && client.read == ReadResult::kNone &&
      client.cas == CasResult::kTaken) {
    State next = state;
    next.clients[i].read = ReadResult::kPosted;
    emit("a client posts the READ after its CAS", next);
  }
  const bool locked_or_not = client.cas == CasResult::kFailed ||
                             (client.cas == CasResult::kTaken && client.read == ReadResult::kDone);
  if (client.phase == Phase::kLocking && locked_or_not) {
    emit("a client sends its write, or gives up", Decide(state, i));
  }
  if (client.phase == Phase::kWriting) {
    State next = state;
    for (Request& request : next.requests) {
      if (request.progress != Progress::kNone && request.client == i) request.client = kNobody;
    }
    next.clients[i].phase = Phase::kReleasing;
    Add(&next, Cas{CasKind::kRelease, client.word, client.owner, i});
    emit("a client's deadline passes; it releases the lock", next);
  }
}

State LockModel::PostLock(State state, uint8_t i) const {
  Client& client = state.clients[i];
  --client.attempts_left;
  if (rules_.count_acquisitions) ++client.count;
  client.word = LockWordOf(client.connection, client.count);
  client.phase = Phase::kLocking;
  client.cas = CasResult::kPosted;
  client.read = rules_.second_only_reads && rules_.read_after_cas && i == 1 ? ReadResult::kNone
                                                                            : ReadResult::kPosted;
  Add(&state, Cas{CasKind::kAcquire, client.word, client.owner, i});
  return state;
}

State LockModel::Decide(State state, uint8_t i) const {
  Client& client = state.clients[i];
  if (client.cas == CasResult::kFailed) {
    client.phase = Phase::kIdle;
    client.serial = 0;
  } else if (rules_.second_only_reads && i == 1) {
    if (client.version < client.version_when_taken) state.breach = Breach::kStaleRead;
    client.phase = Phase::kReleasing;
    Add(&state, Cas{CasKind::kRelease, client.word, client.owner, i});
  } else {
    client.phase = Phase::kWriting;
    Add(&state, Request{Progress::kReceived, client.word, client.version, client.serial, i, 0});
  }
  client.cas = CasResult::kNone;
  client.read = ReadResult::kNone;
  client.version = 0;
  client.version_when_taken = 0;
  return state;
}

void LockModel::NicSteps(const State& state, const Emit& emit) const {
  for (int i = 0; i < kCasMax && state.cas[i].kind != CasKind::kNone; ++i) {
    switch (state.cas[i].kind) {
      case CasKind::kAcquire:
        emit(state.cas[i].client == kNobody ? "a CAS of the dead takes effect"
                                            : "a CAS to acquire takes effect",
             DoCas(state, i));
        break;
      case CasKind::kRelease:
        emit("a CAS to release takes effect", DoCas(state, i));
        break;
      case CasKind::kExpire:
        emit("the CAS of a lease that is over takes effect", DoCas(state, i));
        break;
      default:
        emit("the janitor's CAS takes effect", DoCas(state, i));
    }
  }
}

State LockModel::DoCas(State state, int i) const {
  const Cas cas = state.cas[i];
  Remove(&state, i);
  const bool acquire = cas.kind == CasKind::kAcquire;
  const bool stores = (cas.kind == CasKind::kBreak && !rules_.break_by_cas) ||
                      (cas.kind == CasKind::kExpire && !rules_.lease_breaks_its_word) ||
                      (cas.kind == CasKind::kRelease && !rules_.release_by_cas);
  if (stores && cas.kind != CasKind::kBreak && state.lock_word != 0 &&
      state.lock_word != cas.word) {
    state.breach = Breach::kLaterLockBroken;
  }
  const bool done = stores || state.lock_word == (acquire ? 0 : cas.word);
  if (done && cas.kind == CasKind::kBreak && state.lock_owner != kNobody &&
      (state.dead_owners >> state.lock_owner & 1) == 0) {
    state.breach = Breach::kLivingLockBroken;
  }
  if (done && cas.kind == CasKind::kExpire && cas.word == state.extended_word) {
    state.breach = Breach::kExtendedLockBroken;
  }
  if (done) {
    state.lock_word = acquire ? cas.word : 0;
    state.lock_owner = acquire ? cas.owner : kNobody;
    state.lock_serial = acquire ? state.next_serial++ : 0;
  }
  if (cas.client == kNobody) return state;
  Client& client = state.clients[cas.client];
  if (acquire) {
    client.cas = done ? CasResult::kTaken : CasResult::kFailed;
    client.serial = done ? state.lock_serial : 0;
    if (rules_.second_only_reads && cas.client == 1) client.version_when_taken = state.version;
  } else {
    client.phase = Phase::kIdle;
    client.serial = 0;
  }
  return state;
}

bool LockModel::MutexHeld(const State& state) const {
  return rules_.compare_under_mutex &&
         std::any_of(state.requests.begin(), state.requests.end(), [](const Request& request) {
           return request.progress == Progress::kLockLoaded;
         });
}

void LockModel::WorkerSteps(const State& state, const Emit& emit) const {
  int workers_busy = 0;
  for (const Request& request : state.requests) {
    workers_busy += request.progress == Progress::kLockLoaded;
  }
  for (int i = 0; i < kRequestsMax; ++i) {
    const Request& request = state.requests[i];
    if (request.progress == Progress::kReceived && workers_busy < 2 && !MutexHeld(state)) {
      emit("a worker loads the lock word and compares", LoadLock(state, i));
    }
    if (request.progress != Progress::kLockLoaded) continue;
    const State next = Apply(state, i);
    if (next.version != state.version) {
      State before = next;
      before.version = state.version;
      WithNewVersion(before, "a worker applies a write", emit);
    } else {
      emit("a worker refuses a write", next);
    }
  }
}

State LockModel::LoadLock(State state, int i) const {
  Request& request = state.requests[i];
  request.progress = Progress::kLockLoaded;
  const bool lock_right = !rules_.compare_lock_word || state.lock_word == request.word;
  const bool version_right = !rules_.compare_version || state.version == request.version;
  request.accepted = lock_right && version_right;
  if (request.accepted && state.lock_serial != request.serial) state.breach = Breach::kLateHolder;
  return state;
}

State LockModel::Apply(State state, int i) const {
  const Request request = state.requests[i];
  state.requests[i] = {};
  if (request.accepted) {
    if (request.version != state.version) state.breach = Breach::kLostUpdate;
    ++state.version;
  }
  if (request.client == kNobody) return state;
  Client& client = state.clients[request.client];
  client.phase = Phase::kReleasing;
  Add(&state, Cas{CasKind::kRelease, client.word, client.owner, request.client});
  return state;
}

void LockModel::WithNewVersion(State state, const char* label, const Emit& emit) const {
  const uint8_t old_version = state.version++;
  for (uint32_t samplers = 0; samplers < 1u << kClients; ++samplers) {
    State next = state;
    bool possible = true;
    for (uint8_t i = 0; i < kClients; ++i) {
      if ((samplers >> i & 1) == 0) continue;
      possible &= state.clients[i].read == ReadResult::kPosted;
      next.clients[i].read = ReadResult::kSampled;
      next.clients[i].version = old_version;
    }
    if (possible) emit(label, next);
  }
}

void LockModel::JanitorSteps(const State& state, const Emit& emit) const {
  const bool under_way = state.cas[0].kind == CasKind::kBreak;
  const uint8_t holder = ConnectionOf(state.lock_word);
  if (rules_.break_again_and_again) {
    const bool dead = state.lock_word != 0 && (state.dead_connections >> holder & 1) != 0;
    if (dead && !under_way) emit("the janitor sees a lock of the dead", PostBreak(state));
    return;
  }
  const uint8_t to_sweep = state.dead_connections & ~state.swept;
  if (to_sweep == 0 || under_way) return;
  State next = state.lock_word != 0 && (to_sweep >> holder & 1) != 0 ? PostBreak(state) : state;
  next.swept |= to_sweep;
  emit("the janitor looks at the locks of the dead, once", next);
}

// The server loads the lock word and compares it with the one that the client names. Later it swaps
// that word back. It cannot see what the NIC does in between.
void LockModel::LeaseSteps(const State& state, const Emit& emit) const {
  if (state.leased_word != 0) {
    State next = state;
    next.leased_word = next.extended_word = 0;
    Add(&next, Cas{CasKind::kExpire, state.leased_word, kNobody, kNobody});
    emit("a lease is over", next);
    return;
  }
  if (state.leases_left == 0) return;
  for (const Client& client : state.clients) {
    const bool believes = client.cas == CasResult::kTaken || client.phase == Phase::kWriting;
    if (!believes || client.word != state.lock_word) continue;
    State next = state;
    --next.leases_left;
    next.leased_word = client.word;
    emit("the server gives a lease", next);
  }
}

// What counts is the moment in which the server loads the lock word. Then it answers at once.
void LockModel::ExtendSteps(const State& state, const Emit& emit) const {
  if (state.extends_left == 0) return;
  for (const Client& client : state.clients) {
    if (client.cas != CasResult::kTaken && client.phase != Phase::kWriting) continue;
    const bool held = client.word == state.lock_word;
    const bool breaking =
        std::any_of(state.cas.begin(), state.cas.end(), [&client](const Cas& cas) {
          return cas.kind == CasKind::kExpire && cas.word == client.word;
        });
    if (!held && rules_.extend_compares_word) continue;
    if (breaking && rules_.breaking_is_final) continue;
    State next = state;
    --next.extends_left;
    next.leased_word = next.extended_word = client.word;
    if (!held) next.breach = Breach::kExtendedTooLate;
    emit("the server extends a lease", next);
  }
}

State LockModel::PostBreak(State state) const {
  Add(&state, Cas{CasKind::kBreak, state.lock_word, kNobody, kNobody});
  return state;
}

void LockModel::ConnectionSteps(const State& state, const Emit& emit) const {
  const Client& first = state.clients[0];
  if (first.phase == Phase::kDisconnected) {
    emit("the first client connects again", Reconnect(state));
  } else if (state.deaths_left > 0) {
    emit("the first client's connection dies", Die(state, true));
    if (first.phase == Phase::kWriting) {
      emit("the first client's connection dies, and its write is lost", Die(state, false));
    }
  }
}

// The queue pair goes to ERR before the locks are broken. Requests that a worker has received, and
// operations in the NIC, may still take effect.
State LockModel::Die(State state, bool requests_received) const {
  Client& client = state.clients[0];
  --state.deaths_left;
  state.dead_connections |= 1 << client.connection;
  state.dead_owners |= 1 << client.owner;
  for (Request& request : state.requests) {
    if (request.progress == Progress::kNone || request.client != 0) continue;
    if (request.progress == Progress::kReceived && !requests_received) {
      request = {};
    } else {
      request.client = kNobody;
    }
  }
  const auto in_flight = state.cas;
  state.cas = {};
  for (Cas cas : in_flight) {
    if (cas.kind == CasKind::kNone) continue;
    if (cas.client == 0) cas.client = kNobody;
    Add(&state, cas);
  }
  client = {.phase = Phase::kDisconnected,
            .connection = client.connection,
            .owner = client.owner,
            .count = client.count,
            .attempts_left = client.attempts_left};
  return state;
}

State LockModel::Reconnect(State state) const {
  Client& client = state.clients[0];
  client.phase = Phase::kIdle;
  client.count = 0;
  client.owner = state.next_owner++;
  if (rules_.new_connection_ids) {
    client.connection = state.next_connection++;
  } else {
    state.dead_connections &= ~(1 << client.connection);
  }
  return state;
}

const char* LockModel::Broken(const State& state) const {
  switch (state.breach) {
    case Breach::kLostUpdate:
      return "a lost update: a write computed from another value than it replaced";
    case Breach::kLateHolder:
      return "a write of an acquisition that does not hold the lock was accepted";
    case Breach::kLivingLockBroken:
      return "the lock of a living connection was broken";
    case Breach::kLaterLockBroken:
      return "a lock was broken by the lease, or the unlock, of an earlier one";
    case Breach::kExtendedTooLate:
      return "a lease was extended of a lock that is not held any more";
    case Breach::kExtendedLockBroken:
      return "a lock was broken before the end of its extended lease";
    case Breach::kStaleRead:
      return "a value READ under the lock is older than the lock's acquisition";
    case Breach::kNothing:
      break;
  }
  return nullptr;
}

const char* LockModel::BrokenAtRest(const State& state) const {
  return state.lock_word != 0 ? "a lock that is never released" : nullptr;
}

}  // namespace gannet::model::lock
