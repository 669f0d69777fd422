#include "tests/model/item_lease_owner_model.h"

namespace gannet::model::item_lease_owner {
namespace {

using State = ItemLeaseOwnerModel::State;
using Process = ItemLeaseOwnerModel::Process;
using Client = ItemLeaseOwnerModel::Client;
using Word = ItemLeaseOwnerModel::Word;
using Mark = ItemLeaseOwnerModel::Mark;

uint8_t Less(uint8_t left) { return left > 0 ? left - 1 : 0; }

void Outdate(Word* word) {
  if (*word == Word::kRight) *word = Word::kStale;
}

void Drop(Client* client) {
  client->generation = client->word_generation = client->end = 0;
  client->word = Word::kNone;
}

// By the clock of who began, and not yet by the former one, of which the client has a bound.
bool ExpiredAhead(const State& state) {
  return state.expiry > 0 && state.expiry <= ItemLeaseOwnerModel::kAhead;
}

// From which map on the giver's leases hold: the one that closed its partition last.
uint8_t LeasesFrom(uint8_t map) { return map == 0 ? 0 : ItemLeaseOwnerModel::kClosed; }

}  // namespace

std::vector<State> ItemLeaseOwnerModel::Initial() const {
  State state{};
  state.processes[0].up = state.processes[0].serves = 1;
  if (scenario_.clock_ahead) state.expiry = kExpiry;
  return {state};
}

void ItemLeaseOwnerModel::Next(const State& state, const Emit& emit) const {
  Time(state, emit);
  for (int p = 0; p < 2; ++p) ServerSteps(state, p, emit);
  SuccessionSteps(state, emit);
  TakesClients(state, emit);
  if (scenario_.moves) {
    MoveSteps(state, emit);
    LearnMap(state, emit);
  }
  if (scenario_.in_group) LeaseSteps(state, emit);
  ClientSteps(state, emit);
}

void ItemLeaseOwnerModel::Time(const State& state, const Emit& emit) const {
  State next = state;
  for (Process& process : next.processes) {
    process.wait = Less(process.wait);
    process.end = Less(process.end);
    process.until = Less(process.until);
  }
  next.client.end = Less(next.client.end);
  // The client looks at the item's expiry, so it answers from the copy no more.
  if (next.expiry == 1) next.client.word = Word::kNone;
  next.expiry = Less(next.expiry);
  if (state.owner == 1 && state.processes[1].serves && ExpiredAhead(next)) next = Changed(next);
  emit("time passes", next);
}

bool ItemLeaseOwnerModel::MayWrite(const State& state, int p) const {
  const Process& process = state.processes[p];
  if (!process.serves || process.wait > 0 || state.owner != p || !HasKey(process.map)) return false;
  return process.mark == Mark::kNone || (process.mark == Mark::kEnded && process.until == 0);
}

State ItemLeaseOwnerModel::Changed(State state) {
  for (Process& process : state.processes) Outdate(&process.word);
  Outdate(&state.client.word);
  return state;
}

// A primary that was deposed goes on with its header, and knows no better.
void ItemLeaseOwnerModel::ServerSteps(const State& state, int p, const Emit& emit) const {
  const Process& process = state.processes[p];
  if (!process.up || !process.serves) return;
  State next = state;
  Process& changed = next.processes[p];
  if (process.end < scenario_.lease) {
    changed.end = scenario_.lease;
    emit("a server renews the end", next);
    next = state;
  }
  if (state.owner == p && HasKey(process.map) && process.mark == Mark::kNone) {
    changed.mark = Mark::kLeased;
    changed.word = Word::kRight;
    emit("a server leases the item", next);
    next = state;
  }
  if (process.mark == Mark::kLeased && process.generation < scenario_.generations_max) {
    changed.mark = Mark::kEnded;
    changed.word = Word::kNone;
    ++changed.generation;
    changed.until = process.end;
    emit("a server ends the lease", next);
    next = state;
  }
  if (!MayWrite(state, p)) return;
  changed.mark = Mark::kNone;
  next.expiry = 0;
  emit("a server writes the key", Changed(next));
}

void ItemLeaseOwnerModel::SuccessionSteps(const State& state, const Emit& emit) const {
  for (int p = 0; p < 2; ++p) {
    // There is one other clock only.
    if (!state.processes[p].up || (scenario_.clock_ahead && p == 1)) continue;
    State next = state;
    next.processes[p] = {};
    if (state.client.session == p) next.client.session = kNoSession;
    emit("a process dies", next);
  }
  const auto other = static_cast<uint8_t>(1 - state.owner);
  if (state.processes[other].up) return;
  State next = state;
  next.owner = other;
  Process& process = next.processes[other];
  process.up = 1;
  // A new primary knows the newest map before it takes clients.
  process.map = state.map;
  if (scenario_.begins && !state.processes[state.owner].up) {
    process.wait = scenario_.in_group && !rules_.forced_waits ? 0 : rules_.wait;
    emit("another process begins with the items", next);
    process.wait = 0;
  }
  if (!scenario_.takes_over || state.client.lease) return;
  process.serves = 1;
  emit("a backup takes over", next);
}

// What it answers may differ from what the former one did.
void ItemLeaseOwnerModel::TakesClients(const State& state, const Emit& emit) const {
  const Process& process = state.processes[state.owner];
  if (!process.up || process.serves) return;
  if (process.wait > 0 && rules_.answers_wait) return;
  State next = state;
  next.processes[state.owner].serves = 1;
  if (scenario_.loses || ExpiredAhead(state)) next = Changed(next);
  emit("it takes clients", next);
}

void ItemLeaseOwnerModel::MoveSteps(const State& state, const Emit& emit) const {
  const Process& giver = state.processes[state.owner];
  State next = state;
  Process& changed = next.processes[state.owner];
  const bool older_lease = state.client.lease && state.client.map < kClosed;
  const bool given =
      state.map != kClosed ||
      (giver.map >= kClosed && (!older_lease || !rules_.older_leases_are_waited_out));
  if (state.map < kBack && given && giver.serves) {
    ++next.map;
    // It drops what it has before it takes the partition again, and waits for no lease of it.
    if (next.map == kBack) {
      changed.word = Word::kNone;
      changed.mark = Mark::kNone;
      if (rules_.grows_with_moves) ++changed.generation;
    }
    emit("the map changes", next);
    next = state;
  }
  if (state.map == kAway) emit("the receiver writes the key", Changed(next));
  if (giver.serves && giver.map < state.map) {
    changed.map = state.map;
    emit("the giver learns of the map", next);
  }
}

void ItemLeaseOwnerModel::LeaseSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (state.client.lease) {
    next.client.lease = 0;
    return emit("the primary's lease ends, for the client", next);
  }
  const Process& process = state.processes[state.owner];
  const bool primary = process.serves && state.owner == state.client.session;
  const bool for_the_map =
      !rules_.lease_is_for_the_map || state.client.map >= LeasesFrom(process.map);
  if (!primary || !for_the_map) return;
  next.client.lease = 1;
  emit("the primary tells of a lease", next);
}

void ItemLeaseOwnerModel::ClientSteps(const State& state, const Emit& emit) const {
  const Client& client = state.client;
  State next = state;
  if (client.session != state.owner && state.processes[state.owner].serves) {
    next.client.session = state.owner;
    next.client.lease = 0;
    if (rules_.drops_with_session) Drop(&next.client);
    emit("the client has a session with the owner", next);
    next = state;
  }
  if (client.session == kNoSession) return;
  const Process& process = state.processes[client.session];
  if (!process.serves) return;
  next.client.generation = process.generation;
  next.client.end = process.end;
  emit("the client READs the header", next);
  next = state;
  if (process.word == Word::kNone) return;
  next.client.word = process.word;
  next.client.word_generation = client.generation;
  emit("the client READs the word", next);
}

void ItemLeaseOwnerModel::LearnMap(const State& state, const Emit& emit) const {
  if (state.client.map == state.map) return;
  State next = state;
  const bool owner_differs = HasKey(state.client.map) != HasKey(state.map);
  if (rules_.drops_with_map && (rules_.compares_changes || owner_differs)) Drop(&next.client);
  next.client.map = state.map;
  emit("the client learns of the map", next);
}

bool ItemLeaseOwnerModel::Answers(const State& state) const {
  const Client& client = state.client;
  if (client.word == Word::kNone || client.word_generation != client.generation) return false;
  if (client.end == 0 || !HasKey(client.map)) return false;
  return !scenario_.in_group || client.lease || !rules_.under_lease;
}

const char* ItemLeaseOwnerModel::Broken(const State& state) const {
  if (!Answers(state) || state.client.word != Word::kStale) return nullptr;
  return "an answer from a copy, which differs from what the owner has";
}

}  // namespace gannet::model::item_lease_owner
