// Membership: transactions, joining, taking over, handing over and crashes.

#include <algorithm>

#include "tests/model/replication_model.h"

namespace gannet::model::replication {
namespace {

using State = ReplicationModel::State;
using Member = ReplicationModel::Member;
using Configuration = ReplicationModel::Configuration;
using Progress = ReplicationModel::Progress;
using Role = ReplicationModel::Role;
using Txn = ReplicationModel::Txn;

void Send(State* state, uint8_t i, const Configuration& wanted) {
  state->members[i].txn = {Progress::kSent, wanted, state->members[i].view.epoch};
}

// The source of `i` writes into its ring no more. What it had posted may be in the middle of a
// copy, and complete as if it had been in time.
void Cut(State* state, uint8_t i) {
  Member& member = state->members[i];
  if (member.source == ReplicationModel::kNobody) return;
  Member& from = state->members[member.source];
  if (from.role == Role::kPrimary) from.late[i] = from.end;
  member.source = ReplicationModel::kNobody;
}

}  // namespace

void ReplicationModel::TxnSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  if (member.txn.progress == Progress::kSent) {
    State next = state;
    const Txn txn = member.txn;
    next.members[i].txn = {};
    Execute(&next, i, txn.wanted);
    if (member.role != Role::kEnded) next.members[i].txn = {Progress::kWon, txn.wanted, txn.epoch};
    emit("a transaction wins", next);
  }
  if (member.abandoned.progress == Progress::kSent) {
    State next = state;
    next.members[i].abandoned = {};
    Execute(&next, i, member.abandoned.wanted);
    next.members[i].stale = member.role != Role::kEnded;
    emit("an abandoned transaction wins", next);
  }
  if (member.role == Role::kEnded) return;
  State next = state;
  next.members[i].txn = {};
  if (member.txn.progress == Progress::kWon) {
    next.members[i].txn = member.txn;
    Won(&next, i);
    return emit("a transaction is known to have won", next);
  }
  if (member.txn.progress == Progress::kLost) {
    Learn(&next, i, true);
    return emit("a transaction is known to have lost", next);
  }
  if (member.txn.progress == Progress::kSent && state.abandoned_left > 0 &&
      member.abandoned.progress == Progress::kNone) {
    --next.abandoned_left;
    next.members[i].abandoned = member.txn;
    emit("a transaction's result remains unknown", next);
  }
  const bool may_be_told = member.txn.progress == Progress::kNone && member.stale &&
                           member.role != Role::kReading && member.role != Role::kOut;
  if (may_be_told) {
    Learn(&next, i, false);
    emit("a member learns the configuration", next);
  }
  if (member.role == Role::kPrimary && member.txn.progress == Progress::kNone) {
    PrimaryTxns(state, i, emit);
  }
}

// The register takes `wanted`. All other transactions compare with what it had before.
void ReplicationModel::Execute(State* state, uint8_t i, const Configuration& wanted) const {
  state->configuration = wanted;
  for (uint8_t j = 0; j < kMembers; ++j) {
    Member& member = state->members[j];
    if (j != i && member.role != Role::kEnded && member.role != Role::kOut) member.stale = 1;
    const auto loses = [&](const Txn& txn) {
      return txn.progress == Progress::kSent &&
             (rules_.compares_revision || txn.epoch != wanted.epoch);
    };
    if (loses(member.txn)) {
      member.txn = {};
      if (member.role != Role::kEnded) member.txn.progress = Progress::kLost;
    }
    if (loses(member.abandoned)) member.abandoned = {};
  }
}

void ReplicationModel::PrimaryTxns(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  // It could only lose.
  if (member.stale && rules_.compares_revision) return;
  const auto send = [&](const char* label, const Configuration& wanted, uint8_t counted) {
    State next = state;
    next.members[i].counted = counted;
    Send(&next, i, wanted);
    emit(label, next);
  };
  for (uint8_t q = 0; q < kMembers; ++q) {
    if (q == i || !Has(member.view.in_sync, q)) continue;
    Configuration wanted = member.view;
    wanted.in_sync &= ~Bit(q);
    wanted.incarnations &= ~Bit(q);
    const auto fewer = static_cast<uint8_t>(member.counted & ~Bit(q));
    send("a primary removes a backup", wanted,
         rules_.counts_until_removed ? member.counted : fewer);
  }
  if (member.abandoned.progress == Progress::kSent) {
    if (rules_.settles_by_txn) {
      send("a primary settles an unknown result", member.view, member.counted);
    } else if (member.stopped || member.adding) {
      State next = state;
      next.members[i].stopped = next.members[i].adding = 0;
      emit("a primary takes an unchanged register for the result", next);
    }
  }
  AddJoiner(state, i, emit);
  const bool lease_is_over = !member.lease || !rules_.waits_out_lease;
  if (!member.stopped || !lease_is_over) return;
  for (uint8_t q = 0; q < kMembers; ++q) {
    if (q == i || !Has(member.view.in_sync, q)) continue;
    Configuration wanted = member.view;
    wanted.in_sync &= ~Bit(i);
    wanted.incarnations &= ~Bit(i);
    ++wanted.epoch;
    wanted.primary = q;
    send("a primary names its successor", wanted, member.counted);
  }
}

void ReplicationModel::AddJoiner(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  const uint8_t q = member.joiner;
  if (q == kNobody || member.adding) return;
  if (!state.members[q].walked || state.members[q].source != i) return;
  if (rules_.counts_joiner_first && !Has(member.counted, q)) return;
  if (rules_.adds_when_complete && member.landed[q] < member.applied) return;
  State next = state;
  Configuration wanted = member.view;
  wanted.in_sync |= Bit(q);
  wanted.incarnations =
      static_cast<uint8_t>((wanted.incarnations & ~Bit(q)) | state.members[q].incarnation << q);
  next.members[i].adding = 1;
  Send(&next, i, wanted);
  emit("a primary adds a member", next);
}

void ReplicationModel::JoinSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  if (member.role == Role::kPrimary && member.joiner != kNobody && !member.adding) {
    State next = state;
    Member& joiner = next.members[member.joiner];
    if (joiner.source == i) joiner.source = kNobody;
    next.members[i].counted = static_cast<uint8_t>((member.counted & ~Bit(member.joiner)) |
                                                   (member.view.in_sync & Bit(member.joiner)));
    next.members[i].joiner = kNobody;
    emit("a primary drops a joiner", next);
  }
  if (member.role != Role::kJoining) return;
  if (member.source != kNobody) {
    const Member& primary = state.members[member.source];
    State next = state;
    if (!member.walked && primary.applied >= member.tail_end) {
      // The items that the stream brings are left out: the join model has them.
      Member& changed = next.members[i];
      std::copy(primary.log.begin(), primary.log.begin() + member.tail_end, changed.log.begin());
      changed.applied = member.tail_end;
      changed.end = std::max(changed.end, changed.applied);
      changed.walked = 1;
      emit("a joiner ends its walk", next);
    }
    if (member.walked && !Has(primary.counted, i) && rules_.counts_joiner_first &&
        primary.joiner == i) {
      next.members[member.source].counted |= Bit(i);
      emit("a primary counts a joiner", next);
    }
    return;
  }
  for (uint8_t p = 0; p < kMembers && !member.walked; ++p) {
    const Member& primary = state.members[p];
    if (p == i || primary.role != Role::kPrimary || !primary.open || primary.stopped) continue;
    if (primary.joiner != kNobody || Has(primary.counted | primary.view.in_sync, i)) continue;
    State next = state;
    next.members[p].joiner = i;
    next.members[p].landed[i] = primary.end;
    next.members[p].late[i] = 0;
    next.members[i].source = p;
    next.members[i].view = primary.view;
    next.members[i].tail_end = primary.end;  // where its stream begins
    next.members[i].end = primary.end;
    emit("a joiner connects", next);
  }
}

// Whether a primary's lease that counts on `i` may be valid.
bool ReplicationModel::LeaseCovers(const State& state, uint8_t i) const {
  const Configuration& view = state.members[i].view;
  const Member& primary = state.members[view.primary];
  return primary.role == Role::kPrimary && primary.view.epoch == view.epoch && primary.lease &&
         Has(primary.counted, i);
}

void ReplicationModel::Fence(State* state, uint8_t i) {
  Cut(state, i);
  Member& member = state->members[i];
  member.rest = 0;
  member.role = Role::kCandidate;
}

void ReplicationModel::TakeoverSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  State next = state;
  if (member.role == Role::kBackup && !LeaseCovers(state, i)) {
    if (rules_.fences_before_reading) {
      Fence(&next, i);
      emit("a backup fences the primary, and reads its ring", next);
    } else {
      next.members[i].role = Role::kReading;
      next.members[i].read_end = member.end;
      emit("a backup reads its ring", next);
    }
  }
  if (member.role == Role::kReading) {
    Fence(&next, i);
    next.members[i].end = std::min(member.read_end, next.members[i].end);
    next.members[i].read_end = 0;
    emit("a backup that has read fences the primary", next);
  }
  if (member.role == Role::kCandidate && member.txn.progress == Progress::kNone &&
      (!member.stale || !rules_.compares_revision)) {
    Configuration wanted = member.view;
    wanted.in_sync &= ~Bit(wanted.primary);
    wanted.incarnations &= ~Bit(wanted.primary);
    ++wanted.epoch;
    wanted.primary = i;
    Send(&next, i, wanted);
    emit("a candidate sends its transaction", next);
  }
  if (member.role == Role::kBackup && member.source != member.view.primary) Connect(state, i, emit);
}

// A survivor connects to the next primary.
void ReplicationModel::Connect(const State& state, uint8_t i, const Emit& emit) const {
  const uint8_t p = state.members[i].view.primary;
  if (p == i) return;
  State next = state;
  Member& member = next.members[i];
  Member& primary = next.members[p];
  if (primary.role != Role::kPrimary || primary.view.epoch != member.view.epoch) return;
  if (!Has(primary.counted, i)) return;
  Cut(&next, i);
  member.source = p;
  if (rules_.keeps_lsns && member.end < primary.applied) {
    if (!scenario_.harm_only) next.wrong = kGap;
    // It lacks what the stream does not bring.
    End(&next, i, true);
    return emit("a survivor cannot go on with the next stream", next);
  }
  member.applied = std::max(member.applied, std::min(primary.applied, member.end));
  primary.landed[i] = primary.applied;
  const bool keeps = rules_.rest != ReplicationRules::Rest::kNone;
  member.rest = keeps && rules_.resends_tail && rules_.keeps_lsns;
  if (!member.rest && rules_.keeps_lsns) member.end = member.applied;
  FinishRest(&next, i);
  emit("a survivor connects to the next primary", next);
}

// It leaves while it follows the primary. If it hears of a next primary first, it tries again.
void ReplicationModel::LeaveSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  State next = state;
  if (member.role == Role::kBackup && !member.leaving && state.leaves_left > 0) {
    --next.leaves_left;
    next.members[i].leaving = 1;
    if (!rules_.leaves_by_txn) End(&next, i, true);
    emit("a backup is told to stop", next);
  }
  next = state;
  if (member.role == Role::kJoining && !member.leaving && state.leaves_left > 0) {
    --next.leaves_left;
    next.members[i].leaving = 1;
    if (!member.walked || !rules_.ready_joiner_waits) End(&next, i, true);
    emit("a joiner is told to stop", next);
  }
  next = state;
  const bool follows = member.role == Role::kBackup && member.source == member.view.primary;
  const bool may_send =
      member.txn.progress == Progress::kNone && (!member.stale || !rules_.compares_revision);
  if (member.leaving && follows && may_send) {
    Configuration wanted = member.view;
    wanted.in_sync &= ~Bit(i);
    wanted.incarnations &= ~Bit(i);
    Send(&next, i, wanted);
    emit("a backup asks to leave those in sync", next);
  }
  next = state;
  if (member.role != Role::kOut) return;
  const Member& primary = state.members[state.configuration.primary];
  if (rules_.leaver_awaits_primary && primary.role != Role::kPrimary) return;
  bool somebody_lives = false;
  for (uint8_t j = 0; j < kMembers; ++j) {
    somebody_lives |= IsIn(state.configuration, state, j) && state.members[j].role != Role::kEnded;
  }
  if (!somebody_lives && state.told != 0) next.wrong = kLastCopy;
  // A primary that never learned that its joiner was added, and left since, may add it again. That
  // is as if it had crashed: the primary lives.
  End(&next, i, false);
  emit("a member that has left ends", next);
}

void ReplicationModel::GoOut(State* state, uint8_t i) {
  if (!state->members[i].leaving) return End(state, i, true);
  Cut(state, i);
  Member& member = state->members[i];
  member.role = Role::kOut;
  member.stale = member.rest = member.walked = 0;
}

void ReplicationModel::CrashSteps(const State& state, uint8_t i, const Emit& emit) const {
  const Member& member = state.members[i];
  State next = state;
  if (member.role != Role::kEnded) {
    if (member.role == Role::kPrimary && state.hand_overs_left > 0 && !member.stopped) {
      --next.hand_overs_left;
      next.members[i].stopped = 1;
      emit("a primary stops for a hand-over", next);
      next = state;
    }
    if (state.crashes_left == 0) return;
    --next.crashes_left;
    End(&next, i, false);
    return emit("a process crashes", next);
  }
  if (state.restarts_left == 0 || member.incarnation > 0) return;
  if (member.txn.progress != Progress::kNone) return;
  --next.restarts_left;
  Member& changed = next.members[i];
  changed.role = Role::kJoining;
  changed.incarnation = rules_.names_incarnations ? 1 : 0;
  changed.threw_away = 0;
  changed.view = state.configuration;
  // It takes itself for a member in sync, which it was.
  if (!rules_.names_incarnations && IsIn(state.configuration, next, i))
    changed.role = Role::kBackup;
  emit("a process starts again", next);
}

void ReplicationModel::End(State* state, uint8_t i, bool by_itself) {
  Member& member = state->members[i];
  Member ended{};
  ended.role = Role::kEnded;
  ended.incarnation = member.incarnation;
  ended.threw_away = by_itself;
  ended.source = ended.joiner = kNobody;
  if (member.txn.progress == Progress::kSent) ended.txn = member.txn;
  ended.abandoned = member.abandoned;
  member = ended;
  for (Member& other : state->members) {
    if (other.source == i) other.source = kNobody;
  }
  if (state->reader != i) return;
  state->reader = kNobody;
  state->sample = state->sample_is_stale = 0;
}

void ReplicationModel::Won(State* state, uint8_t i) const {
  Member& member = state->members[i];
  const Configuration wanted = member.txn.wanted;
  member.txn = {};
  if (member.role != Role::kPrimary && !Has(wanted.in_sync, i)) return GoOut(state, i);
  if (member.role != Role::kPrimary) return BecomePrimary(state, i, wanted);
  if (wanted.primary != i) return End(state, i, true);
  member.view = wanted;
  member.adding = member.stopped = 0;
  if (member.joiner != kNobody && Has(wanted.in_sync, member.joiner)) member.joiner = kNobody;
  const bool joiner_counts = member.joiner != kNobody && Has(member.counted, member.joiner);
  member.counted = wanted.in_sync | (joiner_counts ? Bit(member.joiner) : uint8_t{0});
}

// Reads the register; `lost`: because its own transaction lost.
void ReplicationModel::Learn(State* state, uint8_t i, bool lost) const {
  Member& member = state->members[i];
  const Configuration now = state->configuration;
  member.stale = 0;
  const bool is_in = IsIn(now, *state, i);
  if (member.role == Role::kPrimary) {
    if (!is_in || now.primary != i) return End(state, i, true);
    member.txn.wanted = now;
    return Won(state, i);
  }
  if (member.role == Role::kJoining) {
    if (is_in) {
      member.role = Role::kBackup;
      member.tail_end = 0;
      // It may be told of the next epoch first.
      if (now.epoch > member.view.epoch && rules_.survivors_fence) Cut(state, i);
    }
    if (is_in || member.source == kNobody) member.view = now;
    return;
  }
  if (lost && !rules_.loser_reads_again) return End(state, i, true);
  if (!is_in) return GoOut(state, i);
  if (now.primary == i) {
    if (member.role == Role::kBackup) Fence(state, i);
    return BecomePrimary(state, i, now);
  }
  if (now.epoch > member.view.epoch) {
    member.role = Role::kBackup;
    if (rules_.survivors_fence) Cut(state, i);
  }
  member.view = now;
}

void ReplicationModel::BecomePrimary(State* state, uint8_t i, const Configuration& view) const {
  Member& member = state->members[i];
  member.role = Role::kPrimary;
  member.view = view;
  member.counted = view.in_sync;
  member.tail_end = member.end;
  member.walked = 0;
  if (!rules_.resends_tail) member.applied = member.end;
  member.open = member.applied == member.tail_end && !rules_.opens_when_all_connected;
  member.landed.fill(member.applied);
  member.late.fill(0);
}

}  // namespace gannet::model::replication
