#include "tests/model/replication_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gannet::model::replication {
namespace {

using State = ReplicationModel::State;
using Member = ReplicationModel::Member;
using Configuration = ReplicationModel::Configuration;
using Role = ReplicationModel::Role;

// The records of a log's positions [0, end), a bit each.
unsigned RecordsOf(const Member& member, uint8_t end) {
  unsigned records = 0;
  for (uint8_t k = 0; k < end; ++k) records |= 1U << member.log[k];
  return records;
}

// Members 1 and 2 are alike. Of a state and the one in which they have changed places, keeps one.
uint8_t SwapBits(uint8_t bits) {
  return static_cast<uint8_t>((bits & 1) | (bits & 2) << 1 | (bits & 4) >> 1);
}
uint8_t SwapName(uint8_t i) { return i == 1 || i == 2 ? static_cast<uint8_t>(3 - i) : i; }
void Swap(Configuration* it) {
  it->primary = SwapName(it->primary);
  it->in_sync = SwapBits(it->in_sync);
  it->incarnations = SwapBits(it->incarnations);
}
State Normal(const State& state) {
  State other = state;
  Swap(&other.configuration);
  std::swap(other.members[1], other.members[2]);
  other.reader = SwapName(other.reader);
  for (Member& member : other.members) {
    Swap(&member.view);
    Swap(&member.txn.wanted);
    Swap(&member.abandoned.wanted);
    member.source = SwapName(member.source);
    member.counted = SwapBits(member.counted);
    member.joiner = SwapName(member.joiner);
    std::swap(member.landed[1], member.landed[2]);
    std::swap(member.late[1], member.late[2]);
  }
  return std::memcmp(&other, &state, sizeof(state)) < 0 ? other : state;
}

}  // namespace

std::vector<State> ReplicationModel::Initial() const {
  State state{};
  state.configuration = {1, 0, scenario_.in_sync, 0};
  state.crashes_left = scenario_.crashes;
  state.restarts_left = scenario_.restarts;
  state.abandoned_left = scenario_.abandoned;
  state.hand_overs_left = scenario_.hand_overs;
  state.leaves_left = scenario_.leaves;
  state.reads_left = scenario_.reads;
  state.reader = kNobody;
  for (uint8_t i = 0; i < kMembers; ++i) {
    Member& member = state.members[i];
    const bool in_sync = Has(scenario_.in_sync, i);
    member.role = i == 0 ? Role::kPrimary : in_sync ? Role::kBackup : Role::kJoining;
    member.view = state.configuration;
    member.source = i > 0 && in_sync ? 0 : kNobody;
    member.joiner = kNobody;
  }
  state.members[0].counted = scenario_.in_sync;
  state.members[0].lease = state.members[0].open = 1;
  if (scenario_.second_epoch) BeginSecondEpoch(&state);
  return {state};
}

void ReplicationModel::BeginSecondEpoch(State* state) const {
  state->configuration = {2, 1, 0b110, 0};
  state->sent = 2;
  End(state, 0, false);
  state->members[0].role = Role::kJoining;
  state->members[0].incarnation = 1;
  state->members[0].view = state->configuration;
  BecomePrimary(state, 1, state->configuration);
  Member& behind = state->members[2];
  behind.stale = 1;
  behind.log = {0, 1};
  behind.end = 2;
}

void ReplicationModel::Next(const State& state, const Emit& emit) const {
  const Emit emit_normal = [&emit](const char* label, const State& next) {
    State cleaned = next;
    // What a log had beyond its end says nothing.
    for (Member& member : cleaned.members) {
      std::fill(member.log.begin() + member.end, member.log.end(), 0);
    }
    emit(label, Normal(cleaned));
  };
  for (uint8_t i = 0; i < kMembers; ++i) {
    TxnSteps(state, i, emit_normal);
    if (state.members[i].role != Role::kEnded) {
      ClientSteps(state, i, emit_normal);
      LeaseSteps(state, i, emit_normal);
      StreamSteps(state, i, emit_normal);
      JoinSteps(state, i, emit_normal);
      TakeoverSteps(state, i, emit_normal);
      LeaveSteps(state, i, emit_normal);
    }
    CrashSteps(state, i, emit_normal);
  }
  if (state.reader == kNobody) return;
  State next = state;
  next.reader = kNobody;
  next.sample = next.sample_is_stale = 0;
  emit_normal("a READ is not believed", next);
  if (state.members[state.reader].lease == 0 && rules_.reads_under_lease) return;
  next.told |= state.sample;
  if (state.sample_is_stale) next.wrong = kStaleRead;
  emit_normal("a READ is believed", next);
}

// Writes, and what clients are told, at whom they take for the primary.
void ReplicationModel::ClientSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  if (member.role != Role::kPrimary || !member.open) return;
  const unsigned published = RecordsOf(member, member.applied);
  if (member.lease && (published & ~state.told) != 0) {
    State next = state;
    next.told |= published;
    emit("clients are answered", next);
  }
  if (state.reads_left > 0 && state.reader == kNobody) {
    State next = state;
    --next.reads_left;
    next.reader = i;
    next.sample = static_cast<uint8_t>(published);
    next.sample_is_stale = (state.told & ~published) != 0;
    emit("a READ is executed", next);
  }
  if (member.stopped || member.end == kLogMax) return;
  for (uint8_t write = 0; write < scenario_.writes && write <= state.sent; ++write) {
    const bool here = (RecordsOf(member, member.end) >> write & 1) != 0;
    if (here || Has(state.told, write)) continue;
    State next = state;
    next.members[i].log[next.members[i].end++] = write;
    if (write < state.sent) {
      emit("a write that was not answered is sent again", next);
    } else {
      ++next.sent;
      emit("a write is sent", next);
    }
  }
}

void ReplicationModel::LeaseSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  if (member.role != Role::kPrimary) return;
  State next = state;
  if (member.lease) {
    next.members[i].lease = 0;
    return emit("a lease is over", next);
  }
  if (member.stopped && rules_.waits_out_lease) return;
  for (uint8_t q = 0; q < kMembers; ++q) {
    if (q == i || !Has(member.counted, q)) continue;
    const Member& other = state.members[q];
    const bool connected = other.role != Role::kEnded && other.source == i;
    const bool fenced = other.role == Role::kCandidate && other.view.primary == i;
    const bool skipped = !rules_.lease_from_all && member.view.epoch > 1 && !connected;
    if (!connected && !skipped && (rules_.fenced_are_silent || !fenced)) return;
  }
  next.members[i].lease = 1;
  if (member.applied >= member.tail_end) next.members[i].open = 1;
  emit("a lease is valid again", next);
}

void ReplicationModel::StreamSteps(const State& state, uint8_t i, const Emit& emit) const {
  if (state.members[i].role != Role::kPrimary) return Apply(state, i, emit);
  for (uint8_t q = 0; q < kMembers; ++q) {
    if (state.members[q].source == i) Land(state, i, q, emit);
    if (!rules_.new_rings) LandLate(state, i, q, emit);
  }
  Publish(state, i, emit);
}

void ReplicationModel::Land(const State& state, uint8_t from, uint8_t to, const Emit& emit) const {
  if (state.members[from].landed[to] == state.members[from].end) return;
  State next = state;
  const uint8_t position = next.members[from].landed[to]++;
  const uint8_t record = next.members[from].log[position];
  Member& member = next.members[to];
  if (!rules_.keeps_lsns && !member.rest) {
    if (member.end == kLogMax) return;
    member.log[member.end++] = record;
  } else if (!member.rest) {
    // Behind a hole in the ring, nothing is found.
    if (position == member.end) member.log[member.end++] = record;
  } else {
    const bool differs = position < member.end && member.log[position] != record;
    if (differs && !rules_.drops_at_difference && !scenario_.harm_only) next.wrong = kDifference;
    if (differs && rules_.drops_at_difference) {
      member.log[position] = record;
      member.end = position + 1;
      member.rest = 0;
    } else if (rules_.overlays) {
      member.log[position] = record;
      member.end = std::max<uint8_t>(member.end, position + 1);
    }
    FinishRest(&next, to);
  }
  emit("a record lands in a ring", next);
}

// A late copy of a former stream, into memory that is the ring of the next stream. The record that
// was there is gone, and the copy is no record of this stream.
void ReplicationModel::LandLate(const State& state, uint8_t from, uint8_t to,
                                const Emit& emit) const {
  const Member& sender = state.members[from];
  const uint8_t source = state.members[to].source;
  if (source == kNobody || source == from || sender.landed[to] >= sender.late[to]) return;
  State next = state;
  const uint8_t position = next.members[from].landed[to]++;
  Member& member = next.members[to];
  if (position >= member.applied && position < member.end) member.end = position;
  emit("a late copy lands in the next ring", next);
}

// Ends the rest of a former stream once the next stream has come far enough.
void ReplicationModel::FinishRest(State* state, uint8_t i) const {
  Member& member = state->members[i];
  const Member& primary = state->members[member.source];
  const uint8_t landed = primary.landed[i];
  const bool to_own = rules_.rest == ReplicationRules::Rest::kToOwnEnd;
  if (!member.rest || landed < (to_own ? member.end : primary.tail_end)) return;
  member.rest = 0;
  for (uint8_t k = member.applied; k < landed; ++k) member.log[k] = primary.log[k];
  member.end = std::max(member.applied, landed);
}

void ReplicationModel::Publish(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  if (member.applied == member.end || (rules_.commits_under_lease && !member.lease)) return;
  int missing = 0;
  int have = 0;
  for (uint8_t q = 0; q < kMembers; ++q) {
    if (q == i || !Has(member.counted, q)) continue;
    const bool completed = std::max(member.landed[q], member.late[q]) > member.applied;
    (completed ? have : missing)++;
  }
  if (missing > 0 && (rules_.commits_by_all || have == 0)) return;
  State next = state;
  Member& changed = next.members[i];
  ++changed.applied;
  if (changed.applied >= changed.tail_end) changed.open = 1;
  // Clients may hear of it at once. If that holds, it holds as well for whoever hears of it later.
  if (changed.lease) next.told |= static_cast<uint8_t>(RecordsOf(changed, changed.applied));
  emit("a record is committed and published", next);
}

void ReplicationModel::Apply(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  if (member.role != Role::kBackup || member.source == kNobody) return;
  const Member& primary = state.members[member.source];
  const uint8_t end = member.rest ? primary.landed[i] : member.end;
  if (member.applied >= end) return;
  if (rules_.applies_committed && member.applied >= primary.applied) return;
  State next = state;
  Member& changed = next.members[i];
  if (member.rest) changed.log[changed.applied] = primary.log[changed.applied];
  ++changed.applied;
  changed.end = std::max(changed.end, changed.applied);
  FinishRest(&next, i);
  emit("a backup applies a record", next);
}

const char* ReplicationModel::Broken(const State& state) const {
  if (state.wrong == kGap) return "the next primary's stream begins behind the end of a ring";
  if (state.wrong == kDifference) return "the next stream has another record than a rest";
  if (state.wrong == kStaleRead) return "a client believes what was out of date";
  if (state.wrong == kLastCopy) return "a member that left throws the last copy away";
  if (const char* broken = BrokenPrimary(state)) return broken;
  for (uint8_t i = 0; i < kMembers; ++i) {
    const Member& member = state.members[i];
    if (member.role != Role::kPrimary) continue;
    if (member.lease && state.configuration.primary != i && !scenario_.harm_only)
      return "a lease is valid although somebody else is primary";
    const bool believed = member.open && (member.lease || !rules_.reads_under_lease);
    if (believed && (state.told & ~RecordsOf(member, member.applied)) != 0)
      return "a client reads what is out of date";
  }
  if (!scenario_.harm_only && !InOneOrder(state))
    return "two members applied different records at one position";
  if (ThrownAway(state)) return "the last copy is thrown away";
  return nullptr;
}

// What is wrong with the log of the register's primary.
const char* ReplicationModel::BrokenPrimary(const State& state) const {
  const uint8_t i = state.configuration.primary;
  const Member& primary = state.members[i];
  if (primary.role == Role::kEnded || primary.role == Role::kJoining) return nullptr;
  if (!IsIn(state.configuration, state, i)) return nullptr;
  const unsigned records = RecordsOf(primary, primary.end);
  if ((state.told & ~records) != 0) return "a write that was answered is lost";
  int different = 0;
  for (unsigned bits = records; bits != 0; bits &= bits - 1) ++different;
  if (primary.role == Role::kPrimary && different != primary.end) return "a write is applied twice";
  return nullptr;
}

// Whether the members that somebody may read from or who may take over applied the same.
bool ReplicationModel::InOneOrder(const State& state) const {
  const auto counts = [&](uint8_t i) {
    const Role role = state.members[i].role;
    const bool deposed = role == Role::kPrimary && state.configuration.primary != i;
    return IsIn(state.configuration, state, i) && role != Role::kEnded && role != Role::kJoining &&
           (!deposed || state.members[i].lease);
  };
  for (uint8_t i = 0; i < kMembers; ++i) {
    for (uint8_t j = 0; j < i; ++j) {
      if (!counts(i) || !counts(j)) continue;
      const Member& a = state.members[i];
      const Member& b = state.members[j];
      if (!std::equal(a.log.begin(), a.log.begin() + std::min(a.applied, b.applied), b.log.begin()))
        return false;
    }
  }
  return true;
}

bool ReplicationModel::ThrownAway(const State& state) const {
  bool by_itself = false;
  for (uint8_t i = 0; i < kMembers; ++i) {
    if (!IsIn(state.configuration, state, i)) continue;
    if (state.members[i].role != Role::kEnded) return false;
    by_itself |= state.members[i].threw_away;
  }
  return by_itself && state.told != 0;
}

}  // namespace gannet::model::replication
