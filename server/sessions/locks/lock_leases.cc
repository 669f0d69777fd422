#include "server/sessions/locks/lock_leases.h"

#include "common/base/words.h"

namespace gannet {

bool LockLeases::HasRoom(const Lease& lease, int64_t now_ns) {
  MutexLock lock(mutex_);
  if (entries_.size() < kLeasesMax || entries_.contains(lease.index)) return true;
  if (now_ns < next_sweep_ns_) return false;
  next_sweep_ns_ = now_ns + kSweepNs;
  Sweep();
  return entries_.size() < kLeasesMax;
}

bool LockLeases::Set(uint32_t worker, const Lease& lease, int64_t deadline_ns) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(lease.index);
  if (it != entries_.end()) {
    if (it->second.breaking && it->second.word == lease.word) return false;
    Erase(it);
  }
  if (deadline_ns == kNever) return true;
  entries_[lease.index] = {lease.word, deadline_ns, worker, /*breaking=*/false};
  by_deadline_[worker].emplace(deadline_ns, lease.index);
  return true;
}

void LockLeases::Drop(const Lease& lease) {
  MutexLock lock(mutex_);
  const auto it = entries_.find(lease.index);
  if (it != entries_.end() && it->second.word == lease.word) Erase(it);
}

std::optional<LockLeases::Lease> LockLeases::TakeDue(uint32_t worker, int64_t now_ns) {
  MutexLock lock(mutex_);
  auto& due = by_deadline_[worker];
  if (due.empty() || due.begin()->first > now_ns) return std::nullopt;
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
  by_deadline_[it->second.worker].emplace(it->second.deadline_ns, lease.index);
}

int64_t LockLeases::NextNs(uint32_t worker) const {
  MutexLock lock(mutex_);
  const auto& due = by_deadline_[worker];
  return due.empty() ? kNever : due.begin()->first;
}

int64_t LockLeases::DeadlineNs(const Lease& lease) const {
  MutexLock lock(mutex_);
  const auto it = entries_.find(lease.index);
  return it != entries_.end() && it->second.word == lease.word ? it->second.deadline_ns : kNever;
}

size_t LockLeases::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

void LockLeases::Erase(Entries::iterator it) {
  by_deadline_[it->second.worker].erase({it->second.deadline_ns, it->first});
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
