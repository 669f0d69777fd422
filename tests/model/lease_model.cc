#include "tests/model/lease_model.h"

#include <algorithm>

namespace gannet::model::lease {
namespace {

uint8_t Older(uint8_t age, uint8_t by, uint8_t max) {
  return std::min<uint8_t>(max, static_cast<uint8_t>(age + by));
}

}  // namespace

std::vector<LeaseModel::State> LeaseModel::Initial() const {
  std::vector<State> all;
  for (int rates = 0; rates < 16; ++rates) {
    const auto rate = [&](int i) { return (rates >> i & 1) != 0 ? kFast : kSlow; };
    State state{};
    state.rate = rate(0);
    state.client_rate = rate(1);
    for (int i = 0; i < kBackups; ++i) {
      Backup& backup = state.backups[i];
      backup.rate = rate(2 + i);
      backup.in_sync = backup.counted = backup.added =
          i == 0 ? !scenario_.clock : scenario_.second_backup;
      backup.answered = kLease;
      backup.clock_age = scenario_.clock ? kClockAgeMax : 0;
    }
    all.push_back(state);
  }
  return all;
}

bool LeaseModel::Exists(int backup) const {
  return backup == 0 ? !scenario_.clock : scenario_.second_backup || scenario_.joiner;
}

uint8_t LeaseModel::Left(const State& state) const {
  uint8_t oldest = 0;
  uint8_t newest = kLease;
  for (const Backup& backup : state.backups) {
    if (!backup.counted) continue;
    oldest = std::max(oldest, backup.answered);
    newest = std::min(newest, backup.answered);
  }
  return kLease - (rules_.counts_all ? oldest : newest);
}

uint8_t LeaseModel::Told(const State& state) const {
  const bool is_short = state.hand_over == HandOver::kShort && rules_.grants_short;
  if (state.hand_over > HandOver::kShort) return 0;
  return is_short ? std::min(Left(state), kShortLease) : Left(state);
}

void LeaseModel::Next(const State& state, const Emit& emit) const {
  State next = state;
  for (Backup& backup : next.backups) {
    backup.silence = Older(backup.silence, backup.rate, rules_.grace);
    backup.answered = Older(backup.answered, state.rate, kLease);
    if (backup.beacon != Message::kNone) {
      backup.beacon_age =
          Older(backup.beacon_age, state.rate, scenario_.clock ? kClockAgeMax : kLease);
    }
    if (scenario_.clock) backup.clock_age = Older(backup.clock_age, state.rate, kClockAgeMax);
  }
  if (scenario_.clock) next.served_age = Older(state.served_age, state.rate, kClockAgeMax);
  if (state.ask != Message::kNone) next.ask_age = Older(state.ask_age, state.client_rate, kLease);
  if (state.hand_over == HandOver::kShort || state.hand_over == HandOver::kWaits) {
    next.waited = Older(state.waited, state.rate, kLease);
  }
  next.client_lease -= std::min(state.client_lease, state.client_rate);
  emit("time passes", next);
  for (int i = 0; i < kBackups; ++i) {
    if (Exists(i)) BackupSteps(state, i, emit);
  }
  if (scenario_.joiner) JoinSteps(state, emit);
  if (scenario_.hand_over) HandOverSteps(state, emit);
  if (scenario_.clock) return ServeSteps(state, emit);
  CommitSteps(state, emit);
  if (scenario_.client) ClientSteps(state, emit);
}

void LeaseModel::BackupSteps(const State& state, int i, const Emit& emit) const {
  const Backup& backup = state.backups[i];
  State next = state;
  Backup& changed = next.backups[i];
  if (backup.in_sync && !backup.fenced && backup.silence >= rules_.grace) {
    changed.fenced = 1;
    next.deposed = 1;
    if (scenario_.clock && backup.clock_age > state.served_age + kLease) next.wrong = kClockBehind;
    emit("a backup fences the primary, and takes over", next);
    next = state;
  }
  if (backup.beacon == Message::kNone) {
    changed.beacon = Message::kRequest;
    changed.beacon_age = 0;
    return emit("a beacon is sent", next);
  }
  changed.beacon = Message::kNone;
  changed.beacon_age = 0;
  emit("a beacon, or its answer, is lost", next);
  if (backup.beacon == Message::kReply) {
    changed.answered = std::min(backup.answered, rules_.from_send ? backup.beacon_age : uint8_t{0});
    return emit("a beacon's answer arrives", next);
  }
  if (backup.fenced) return;
  changed = backup;
  changed.beacon = Message::kReply;
  changed.silence = 0;
  if (scenario_.clock) changed.clock_age = std::min(backup.clock_age, backup.beacon_age);
  emit("a beacon arrives, and is answered", next);
}

void LeaseModel::JoinSteps(const State& state, const Emit& emit) const {
  const Backup& joiner = state.backups[1];
  State next = state;
  Backup& changed = next.backups[1];
  if (!joiner.counted && (rules_.joiner_first || joiner.in_sync)) {
    changed.counted = 1;
    emit("the primary counts the joiner", next);
    next = state;
  }
  if (!joiner.added) {
    if (rules_.joiner_first && !joiner.counted) return;
    if (rules_.adds_under_lease && Left(state) == 0) return;
    changed.added = 1;
    return emit("the primary sends the transaction that adds the joiner", next);
  }
  if (joiner.in_sync) return;
  changed.in_sync = 1;
  changed.silence = 0;
  emit("the joiner learns that it is in sync", next);
}

void LeaseModel::ServeSteps(const State& state, const Emit& emit) const {
  if (Left(state) == 0 || state.deposed) return;
  State next = state;
  next.served_age = 0;
  emit("the primary judges an expiry", next);
}

void LeaseModel::HandOverSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (state.hand_over == HandOver::kNone) {
    next.hand_over = HandOver::kShort;
    return emit("the primary grants short leases only", next);
  }
  next.waited = 0;
  if (state.hand_over == HandOver::kShort) {
    if (state.waited < kLease && rules_.waits_for_long) return;
    next.hand_over = HandOver::kWaits;
    return emit("the primary stops for a hand-over", next);
  }
  const bool waited = state.waited >= kShortLease || !rules_.waits_to_hand_over;
  if (state.hand_over == HandOver::kNamed || !waited) return;
  next.hand_over = HandOver::kNamed;
  next.deposed = 1;
  emit("the successor is named, and fences the primary", next);
}

// The primary polls the completions of a record's WRITEs. After a takeover they lie: the WRITEs may
// have come after the ring was read.
void LeaseModel::CommitSteps(const State& state, const Emit& emit) const {
  State next = state;
  next.commit = Commit::kNone;
  if (state.hand_over == HandOver::kNamed && rules_.commits_before_naming) return;
  const bool valid = Left(state) > 0;
  switch (state.commit) {
    case Commit::kNone:
      if (!rules_.looks_after_poll) {
        if (!valid) return;
        next.commit = Commit::kLooked;
        return emit("the primary looks at its clock", next);
      }
      next.commit = state.deposed ? Commit::kPolledTooLate : Commit::kPolled;
      return emit("the primary polls completions", next);
    case Commit::kLooked:
      if (state.deposed) next.wrong = kCommitted;
      return emit("the primary polls completions, and commits", next);
    default:
      if (valid && state.commit == Commit::kPolledTooLate) next.wrong = kCommitted;
      return emit(valid ? "the primary looks at its clock, and commits"
                        : "the primary looks at its clock: too late",
                  next);
  }
}

void LeaseModel::ClientSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (state.ask == Message::kNone) {
    next.ask = Message::kRequest;
    emit("a client asks for the lease", next);
  } else {
    next.ask = Message::kNone;
    next.ask_age = next.ask_left = 0;
    emit("a client's question, or the answer, is lost", next);
    if (state.ask == Message::kReply) {
      // An exact share: slow to fast.
      int left = rules_.client_deducts ? state.ask_left * kSlow / kFast : state.ask_left;
      if (rules_.client_from_ask) left -= state.ask_age;
      next.client_lease = static_cast<uint8_t>(std::max<int>(state.client_lease, left));
      emit("a client has a lease", next);
    } else if (Told(state) > 0) {
      next = state;
      next.ask = Message::kReply;
      next.ask_left = Told(state);
      emit("the primary says what is left of its lease", next);
    }
  }
  next = state;
  if (state.reply == Reply::kNone) {
    if (state.hand_over > HandOver::kShort) return;
    // What it says may be out of date as soon as there is another primary.
    next.reply = state.deposed ? Reply::kOutOfDate : Reply::kRight;
    return emit("the primary answers a request", next);
  }
  next.reply = Reply::kNone;
  if (state.client_lease == 0 && rules_.replies_under_lease) {
    return emit("a client does not believe a reply", next);
  }
  if (state.reply == Reply::kOutOfDate) next.wrong = kBelieved;
  emit("a client believes a reply", next);
}

const char* LeaseModel::Broken(const State& state) const {
  if (state.wrong == kCommitted) return "a record is committed after a takeover";
  if (state.wrong == kBelieved) return "a client believes a reply from after a takeover";
  if (state.wrong == kClockBehind) return "the new primary's clock is behind the former one's";
  if (state.deposed && state.client_lease > 0) return "a client's lease is valid after a takeover";
  return nullptr;
}

}  // namespace gannet::model::lease
