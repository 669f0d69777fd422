#include "server/memory/tier/tier_writer.h"

#include "absl/status/statusor.h"
#include "glog/logging.h"

namespace gannet {

TierWriter::Did TierWriter::Poll(int64_t now_ns) {
  if (disk_.load(std::memory_order_relaxed) == Disk::kFailed || now_ns < full_until_ns_) {
    return Did::kNothing;
  }
  busy_since_ns_.store(now_ns, std::memory_order_relaxed);
  FillBatch();
  Did did = Did::kNothing;
  if (!circle_.batch_empty()) {
    did = WriteBatch(now_ns);
  } else if (next_) {
    did = MakeRoom(now_ns);
  }
  busy_since_ns_.store(0, std::memory_order_relaxed);
  return did;
}

void TierWriter::FillBatch() {
  for (;;) {
    if (!next_) next_ = items_.NextToWrite();
    if (!next_) return;
    const std::optional<TierPlace> place = circle_.Add(*next_);
    if (!place) return;
    batch_.emplace_back(next_->hash, *place);
    next_.reset();
  }
}

TierWriter::Did TierWriter::WriteBatch(int64_t now_ns) {
  const absl::Status status = circle_.Write();
  Note(status, now_ns);
  std::atomic<uint64_t>& count = status.ok() ? records_written_ : records_dropped_;
  count.fetch_add(batch_.size(), std::memory_order_relaxed);
  for (const auto& [hash, place] : batch_) {
    if (status.ok()) {
      items_.Written(hash, place);
    } else {
      items_.NotWritten(place);
    }
  }
  batch_.clear();
  return status.ok() ? Did::kWorked : Did::kNothing;
}

// The list of a segment may fail to be written. Then all stubs are looked through when it is taken
// again.
TierWriter::Did TierWriter::MakeRoom(int64_t now_ns) {
  if (!forgotten_) {
    if (const absl::Status sealed = circle_.Seal(); !sealed.ok()) {
      LOG(WARNING) << "a segment of the tier has no list: " << sealed.message();
    }
    items_.Forget(circle_.ListOldest(), &circle_);
    forgotten_ = true;
  }
  const absl::StatusOr<bool> taken = circle_.TakeOldest();
  Note(taken.status(), now_ns);
  if (!taken.ok()) return Did::kNothing;
  if (!*taken) return Did::kWaits;
  forgotten_ = false;
  segments_taken_.fetch_add(1, std::memory_order_relaxed);
  return Did::kWorked;
}

void TierWriter::Note(const absl::Status& status, int64_t now_ns) {
  const Disk disk = status.ok()                         ? Disk::kWorks
                    : absl::IsResourceExhausted(status) ? Disk::kFull
                                                        : Disk::kFailed;
  if (disk == Disk::kFull) full_until_ns_ = now_ns + kFullNs;
  if (disk == disk_.load(std::memory_order_relaxed)) return;
  if (disk == Disk::kWorks) {
    LOG(INFO) << "the tier has space again";
  } else {
    LOG(ERROR) << "the tier takes no values: " << status.message();
  }
  {
    MutexLock lock(mutex_);
    status_ = status;
  }
  disk_.store(disk, std::memory_order_relaxed);
}

TierWriter::Disk TierWriter::disk(int64_t now_ns) const {
  const Disk disk = disk_.load(std::memory_order_relaxed);
  const int64_t since_ns = busy_since_ns_.load(std::memory_order_relaxed);
  const bool slow = since_ns != 0 && now_ns - since_ns >= kSlowNs;
  return disk == Disk::kWorks && slow ? Disk::kSlow : disk;
}

absl::Status TierWriter::status() const {
  MutexLock lock(mutex_);
  return status_;
}

}  // namespace gannet
