#include "server/group/replica/primary_lease.h"

#include <algorithm>

namespace gannet {

void PrimaryLease::Count(uint64_t backup, BootTime now) {
  counted_.try_emplace(backup, Backup{.heard = now});
}

uint64_t PrimaryLease::OnSend(BootTime now) {
  sent_.push_back(now);
  while (sent_.size() > kBeaconsLeast && now - sent_.front() >= times_.lease_ns) sent_.pop_front();
  return ++newest_;
}

bool PrimaryLease::OnAnswer(uint64_t backup, uint64_t sequence, BootTime now) {
  if (sequence == 0 || sequence > newest_) return false;
  const auto it = counted_.find(backup);
  const uint64_t age = newest_ - sequence;
  if (it == counted_.end() || age >= sent_.size()) return true;
  Backup& answering = it->second;
  // From when it was sent: when the backup heard it, it began to wait for G, and that was later.
  const BootTime sent = sent_[sent_.size() - 1 - age];
  if (answering.answered && sent < answering.sent) return true;
  answering.answered = true;
  answering.sent = sent;
  answering.heard = now;
  return true;
}

void PrimaryLease::OnBroken(uint64_t backup) {
  const auto it = counted_.find(backup);
  if (it != counted_.end()) it->second.broken = true;
}

void PrimaryLease::Expel(uint64_t backup) {
  const auto it = counted_.find(backup);
  if (it != counted_.end()) it->second.broken = it->second.expelled = true;
}

int64_t PrimaryLease::LeftNs(BootTime now) const {
  int64_t left = times_.lease_ns;
  for (const auto& [incarnation, backup] : counted_) {
    if (!backup.answered) return 0;
    left = std::min(left, backup.sent + times_.lease_ns - now);
  }
  return std::max<int64_t>(left, 0);
}

bool PrimaryLease::AnsweredSince(BootTime time) const {
  return std::ranges::all_of(
      counted_, [&](const auto& it) { return it.second.answered && it.second.sent > time; });
}

bool PrimaryLease::MaySend(BootTime now) const {
  return counted_.empty() || std::ranges::any_of(counted_, [&](const auto& it) {
           return now - it.second.heard < times_.grace_ns();
         });
}

bool PrimaryLease::Hears(const Backup& backup, BootTime now) const {
  // One that has still to connect gets more time.
  const int64_t patience = backup.answered ? silence_ns_ : times_.lease_ns;
  return !backup.broken && now - backup.heard < patience;
}

bool PrimaryLease::IsHeard(uint64_t backup, BootTime now) const {
  const auto it = counted_.find(backup);
  return it != counted_.end() && Hears(it->second, now);
}

bool PrimaryLease::HasAnsweredSince(uint64_t backup, BootTime sent) const {
  const auto it = counted_.find(backup);
  return it != counted_.end() && it->second.answered && it->second.sent > sent;
}

std::vector<uint64_t> PrimaryLease::Silent(BootTime now) const {
  const bool hears_somebody = std::ranges::any_of(
      counted_, [&](const auto& it) { return it.second.answered && Hears(it.second, now); });
  std::vector<uint64_t> silent;
  for (const auto& [incarnation, backup] : counted_) {
    if (Hears(backup, now)) continue;
    if (backup.expelled || hears_somebody || now - backup.heard >= times_.loneliness_ns()) {
      silent.push_back(incarnation);
    }
  }
  return silent;
}

}  // namespace gannet
