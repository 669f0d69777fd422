#include "server/group/move/partition_intake.h"

namespace gannet {

// What still waits of an earlier time is dropped later than it is published, so nobody asks for it.
void PartitionIntake::Begin(const Partitions& partitions) {
  partitions_ = partitions;
  clock_ = ClockDifference();
  waiting_.clear();
  waiting_bytes_ = items_ = bytes_ = 0;
  failed_ = false;
}

ReplyStatus PartitionIntake::Take(const Change& change) {
  if (full()) return ReplyStatus::kTryAgain;
  return Note(writes_->Bring(Translated(change), Writes::Brings::kChange, context_.server->Time()),
              change.key.size() + change.value.size());
}

ReplyStatus PartitionIntake::Insert(const Change& put, ServerTime giver) {
  if (full()) return ReplyStatus::kTryAgain;
  return Note(writes_->Bring(Translated(put), Writes::Brings::kWalkedItem, clock_.ToOwn(giver)),
              put.key.size() + put.value.size());
}

ReplyStatus PartitionIntake::TakeVersion(uint64_t version) {
  if (full()) return ReplyStatus::kTryAgain;
  return Note(writes_->RecordVersion(version, context_.server->Time()), 0);
}

Change PartitionIntake::Translated(const Change& change) const {
  Change translated = change;
  if (!change.expiry.never()) {
    translated.expiry = Expiry::At(clock_.ToOwn(change.expiry.time()));
  }
  return translated;
}

ReplyStatus PartitionIntake::Note(const Writes::Decided& decided, uint64_t bytes) {
  const ReplyStatus status = decided.outcome.status;
  if (status == ReplyStatus::kDiskRefuses) return ReplyStatus::kTryAgain;
  if (status != ReplyStatus::kOk) return status;
  ++items_;
  bytes_ += bytes;
  if (decided.ticket != 0) {
    waiting_.push_back({decided.ticket, bytes});
    waiting_bytes_ += bytes;
  }
  return status;
}

void PartitionIntake::Settle() {
  const uint64_t published = writes_->published();
  while (!waiting_.empty() && waiting_.front().ticket <= published) {
    failed_ |= writes_->TakeUndone(waiting_.front().ticket).has_value();
    waiting_bytes_ -= waiting_.front().bytes;
    waiting_.pop_front();
  }
}

}  // namespace gannet
