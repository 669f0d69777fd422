#include "server/group/replica/backup_log.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace gannet {

bool BackupLog::Follow(std::span<std::byte> ring, const RingReader::Begin& begin, uint64_t tail_end,
                       Use apply) {
  GANNET_CHECK(!reader_.has_value(), "the former link is not sealed");
  rest_.Take(begin.lsn, apply);
  applied_ = std::max(applied_, rest_.begin());
  if (applied_ < begin.lsn) return false;
  tail_end_ = tail_end;
  const bool goes_on = std::exchange(stream_id_, begin.stream_id) == begin.stream_id;
  received_ = goes_on ? std::max(received_, begin.lsn) : begin.lsn;
  committed_ = begin.lsn;
  reader_.emplace(ring, begin);
  ShortenRest();
  return true;
}

void BackupLog::ShortenRest() {
  const bool is_over = reader_ && reader_->end() >= tail_end_;
  if (!is_over) rest_.Drop(applied_);
  if (is_over || rest_.end() <= applied_) rest_.BeginAt(applied_);
}

void BackupLog::OnCommitted(uint64_t committed) { committed_ = std::max(committed_, committed); }

// What was applied while a former stream was followed is not applied again.
void BackupLog::Apply(Use apply, std::optional<UseUpdates> apply_updates) {
  if (!reader_) return;
  reader_->Scan();
  OnCommitted(reader_->committed());
  const auto use = [&](const RingRecord& record, uint64_t lsn, uint64_t end) {
    if (lsn < applied_) return;
    apply(record, lsn, end);
    applied_ = end;
  };
  const auto use_updates = [&](ProvenUpdates updates) {
    updates.DropTo(applied_);
    if (updates.empty()) return;
    (*apply_updates)(updates);
    applied_ = updates.lsn_end();
  };
  reader_->Take(committed_, use,
                apply_updates ? std::optional<UseUpdates>(use_updates) : std::nullopt);
  ShortenRest();
}

bool BackupLog::Seal() {
  if (!reader_) return true;
  sealed_at_ = {.stream_id = stream_id_, .lsn = reader_->taken(), .position = reader_->consumed()};
  RingTail newer = reader_->Seal();
  received_ = std::max(received_, reader_->end());
  ShortenRest();
  reader_.reset();
  newer.Drop(applied_);
  if (newer.end() <= applied_) return true;
  if (rest_.begin() < rest_.end()) return rest_.LayOver(std::move(newer));
  rest_ = std::move(newer);
  return true;
}

uint64_t BackupLog::Received() {
  if (reader_) {
    reader_->Scan();
    received_ = std::max(received_, reader_->end());
  }
  return std::max(applied_, received_);
}

RingTail BackupLog::TakeTail() {
  GANNET_CHECK(!reader_.has_value(), "the former link is not sealed");
  return std::exchange(rest_, RingTail(applied_));
}

}  // namespace gannet
