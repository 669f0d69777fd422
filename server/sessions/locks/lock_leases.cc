// Leases by lock word, and by their ends for each worker. A lease is of one value of its word, so
// all but Set find nothing if the lock has another holder.

#include "server/sessions/locks/lock_leases.h"

#include <algorithm>

#include "common/base/words.h"

namespace gannet {

bool LockLeases::HasRoom(const Lease& lease, BootTime now) {
  MutexLock lock(mutex_);
  if (entries_.size() < kLeasesMax || entries_.contains(lease.index)) return true;
  if (now < next_sweep_) return false;
  next_sweep_ = now + kSweepNs;
  Sweep();
  return entries_.size() < kLeasesMax;
}

bool LockLeases::Set(uint32_t worker, const Lease& lease, BootTime deadline) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(lease.index);
  if (it != entries_.end()) {
    if (it->second.breaking && it->second.word == lease.word) return false;
    Erase(it);
  }
  if (deadline == BootTime::Never()) return true;
  entries_[lease.index] = {lease.word, deadline, worker, /*breaking=*/false};
  by_deadline_[worker].emplace(deadline, lease.index);
  return true;
}

void LockLeases::Drop(const Lease& lease) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(lease.index);
  if (it != entries_.end() && it->second.word == lease.word) Erase(it);
}

std::optional<LockLeases::Lease> LockLeases::TakeDue(uint32_t worker, BootTime now) {
  MutexLock lock(mutex_);
  auto& due = by_deadline_[worker];
  if (due.empty() || due.begin()->first > now) return std::nullopt;
  const size_t index = due.begin()->second;
  due.erase(due.begin());
  Entry& entry = entries_.at(index);
  entry.breaking = true;
  return Lease{index, entry.word};
}

void LockLeases::PutBack(const Lease& lease) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(lease.index);
  if (it == entries_.end() || it->second.word != lease.word) return;
  it->second.breaking = false;
  by_deadline_[it->second.worker].emplace(it->second.deadline, lease.index);
}

BootTime LockLeases::Next(uint32_t worker) const {
  MutexLock lock(mutex_);
  const auto& due = by_deadline_[worker];
  return due.empty() ? BootTime::Never() : due.begin()->first;
}

BootTime LockLeases::Deadline(const Lease& lease) const {
  MutexLock lock(mutex_);
  const auto it = entries_.find(lease.index);
  return it != entries_.end() && it->second.word == lease.word ? it->second.deadline
                                                               : BootTime::Never();
}

size_t LockLeases::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

BootTime LockLeases::Last() const {
  MutexLock lock(mutex_);
  BootTime last;
  for (const auto& [index, entry] : entries_) last = std::max(last, entry.deadline);
  return last;
}

void LockLeases::Clear() {
  MutexLock lock(mutex_);
  entries_.clear();
  for (auto& of_worker : by_deadline_) of_worker.clear();
}

void LockLeases::Erase(Entries::iterator it) {
  by_deadline_[it->second.worker].erase({it->second.deadline, it->first});
  entries_.erase(it);
}

void LockLeases::Sweep() {
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto next = std::next(it);
    // Relaxed: a value that is gone never comes back, so it does no harm to see the change late.
    if (!it->second.breaking && LoadWord(&words_[it->first]) != it->second.word) Erase(it);
    it = next;
  }
}

}  // namespace gannet
