// The store follows the stream: records are applied once they are committed, and the clock by which
// items expire follows behind them.

#include "server/group/members/backup_copy.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace gannet {
namespace {

// So long after the last record.
constexpr int64_t kBusyNs = 20 * kNsPerMs;

}  // namespace

absl::Status BackupCopy::Begin(const BackupLinks& links, const ReplicaWelcome& welcome,
                               BootTime now) {
  log_.emplace(welcome.first_lsn);
  history_ = welcome.history;
  context_.server->FollowClock(ServerTime::FromMs(welcome.clock_ms));
  auto walk = links.BeginWalk({.target = &join_target_,
                               .server_time = context_.server,
                               .clocks = context_.clocks,
                               .now = now});
  if (!walk.ok()) return walk.status();
  walk_ = *std::move(walk);
  applier_.TellJoiner(walk_.get());
  return absl::OkStatus();
}

void BackupCopy::OnWelcome(const ReplicaWelcome& welcome, BootTime now) {
  clock_.OnPrimary(ServerTime::FromMs(welcome.clock_ms), now);
  applier_.OnVersion(welcome.version_next);
}

bool BackupCopy::Follow(const BackupLink& link) {
  const ReplicaWelcome& welcome = link.welcome();
  const bool follows = log_->Follow(
      link.ring(), BeginOf(welcome), welcome.tail_end,
      [this](const RingRecord& record, uint64_t, uint64_t) { applier_.Apply(record); });
  if (follows) stream_epoch_ = welcome.epoch;
  return follows;
}

void BackupCopy::OnBeacon(const BackupLink::ToldBeacon& told, BootTime now) {
  told_clock_ = ServerTime::FromMs(told.beacon.clock_ms);
  told_committed_ = told.beacon.committed;
  clock_.OnPrimary(told_clock_, now, told.last);
  log_->OnCommitted(told_committed_);
  Apply(now);
}

void BackupCopy::Apply(BootTime now) {
  if (!log_) return;
  const uint64_t before = log_->applied();
  log_->Apply([this](const RingRecord& record, uint64_t, uint64_t) { applier_.Apply(record); },
              [this](const ProvenUpdates& updates) { applier_.ApplyUpdates(updates); });
  if (log_->applied() != before) busy_until_ = now + kBusyNs;
  // A touch that lets an item live longer may be on its way until then.
  if (told_clock_ != ServerTime() && log_->applied() >= told_committed_) {
    context_.server->FollowClock(std::exchange(told_clock_, ServerTime()));
  }
}

absl::StatusOr<bool> BackupCopy::Walk(BootTime now) {
  switch (walk_->Poll(now)) {
    case Joiner::Step::kGoesOn:
      return false;
    case Joiner::Step::kFailed:
      return walk_->status();
    case Joiner::Step::kDone:
      break;
  }
  applier_.OnVersion(walk_->version_next());
  LOG(INFO) << "copied " << walk_->items() << " items, " << walk_->bytes() << " bytes";
  EndWalk();
  return true;
}

void BackupCopy::EndWalk() {
  applier_.TellJoiner(nullptr);
  walk_.reset();
}

// What a former primary's stream brought behind what is applied may be in another order in this
// epoch.
uint64_t BackupCopy::Received(uint64_t epoch) {
  if (!log_) return 0;
  return stream_epoch_ == epoch ? log_->Received() : log_->applied();
}

uint8_t BackupCopy::joined_percent() const {
  if (!log_) return 0;
  return walk_ ? static_cast<uint8_t>(100 * std::clamp(walk_->done(), 0.0, 1.0)) : 100;
}

}  // namespace gannet
