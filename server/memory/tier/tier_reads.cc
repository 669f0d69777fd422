// Threads that read the disk for workers, and the memory that they read into. A read is found by
// the position of its record, so GETs of one record share it, and waits in the order of its begin.

#include "server/memory/tier/tier_reads.h"

#include <pthread.h>

#include <mutex>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"

namespace gannet {

TierReads::TierReads(const Options& options)
    : options_(options),
      units_(options.memory.size() / kTierBlockBytes),
      done_(options.workers.size()) {
  GANNET_CHECK(reinterpret_cast<uintptr_t>(options.memory.data()) % kTierBlockBytes == 0,
               "memory of whole blocks");
  for (uint32_t i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Run(); });
}

TierReads::~TierReads() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  MutexLock lock(mutex_);
  for (const uint64_t id : waiting_) options_.circle->Unpin(reads_.at(id).place);
}

// One segment has one record at a position in a lap, and a pinned segment has one lap.
std::optional<uint64_t> TierReads::Find(const TierPlace& place, std::string_view key) const {
  const auto found = by_position_.find(place.position);
  if (found == by_position_.end()) return std::nullopt;
  const Read& read = reads_.at(found->second);
  if (read.place != place || read.key != key) return std::nullopt;
  return found->second;
}

TierReads::Begun TierReads::Begin(const TierPlace& place, std::string_view key,
                                  const Waiter& waiter) {
  MutexLock lock(mutex_);
  if (const std::optional<uint64_t> joined = Find(place, key)) {
    reads_.at(*joined).waiters.push_back(waiter);
    ++counts_.joined;
    return Begun::kYes;
  }
  const uint64_t bytes = TierRecordBytes(key.size(), place.value_bytes);
  const uint64_t units = BlocksOf(place.position, bytes).bytes / kTierBlockBytes;
  const std::optional<uint64_t> first = units_.Take(units);
  if (!first) return Begun::kNoMemory;
  if (!options_.circle->Pin(place)) {
    units_.Free(*first, units);
    return Begun::kTaken;
  }
  ++counts_.reads;
  const uint64_t id = ++last_id_;
  Read& read = reads_[id];
  read = {.place = place,
          .key = std::string(key),
          .first_unit = *first,
          .units = units,
          .waiters = {waiter},
          .holders = 0};
  by_position_[place.position] = id;
  waiting_.push_back(id);
  wanted_.notify_one();
  return Begun::kYes;
}

void TierReads::Run() {
  pthread_setname_np(pthread_self(), "kv-tier-read");
  std::unique_lock lock(mutex_.native());
  for (;;) {
    while (!stopping_ && waiting_.empty()) wanted_.wait(lock);
    if (stopping_) return;
    const uint64_t id = waiting_.front();
    waiting_.pop_front();
    // Others join it meanwhile, which changes its waiters only. Nodes of the map stay where they
    // are.
    const Read& read = reads_.at(id);
    lock.unlock();
    const int64_t began_ns = MonotonicNs();
    const absl::StatusOr<std::string_view> value = ReadInto(read);
    const int64_t took_ns = MonotonicNs() - began_ns;
    options_.circle->Unpin(read.place);
    lock.lock();
    counts_.took_ns += took_ns;
    Complete(id, value);
  }
}

absl::StatusOr<std::string_view> TierReads::ReadInto(const Read& read) const {
  const std::span<std::byte> room =
      options_.memory.subspan(read.first_unit * kTierBlockBytes, read.units * kTierBlockBytes);
  return options_.circle->Read(read.place, read.key, room);
}

void TierReads::Complete(uint64_t id, const absl::StatusOr<std::string_view>& value) {
  Read& read = reads_.at(id);
  by_position_.erase(read.place.position);
  counts_.failed += !value.ok();
  read.holders = read.waiters.size();
  for (const Waiter& waiter : read.waiters) {
    done_[waiter.worker].push_back({.tag = waiter.tag, .read = id, .value = value});
    options_.workers[waiter.worker]->OnTierReadsDone();
  }
}

std::vector<TierReads::Done> TierReads::TakeDone(uint32_t worker) {
  MutexLock lock(mutex_);
  return std::exchange(done_[worker], {});
}

void TierReads::Give(uint64_t id) {
  MutexLock lock(mutex_);
  const auto found = reads_.find(id);
  GANNET_CHECK(found != reads_.end() && found->second.holders > 0, "a read that is done");
  Read& read = found->second;
  if (--read.holders > 0) return;
  units_.Free(read.first_unit, read.units);
  reads_.erase(found);
}

size_t TierReads::under_way() const {
  MutexLock lock(mutex_);
  return by_position_.size();
}

TierReads::Counts TierReads::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace gannet
