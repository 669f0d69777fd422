#include "server/rpc/slow_log.h"

#include <algorithm>
#include <limits>

#include "common/base/clock.h"

namespace gannet {

void SlowLog::Add(const SlowEntry& entry) {
  MutexLock lock(mutex_);
  if (ring_.size() < kEntriesMax) {
    ring_.push_back(entry);
  } else {
    ring_[count_ % kEntriesMax] = entry;
  }
  ++count_;
}

std::vector<SlowEntry> SlowLog::Entries() const {
  std::vector<SlowEntry> entries;
  MutexLock lock(mutex_);
  for (uint64_t i = 1; i <= ring_.size(); ++i) entries.push_back(ring_[(count_ - i) % kEntriesMax]);
  return entries;
}

uint64_t SlowLog::count() const {
  MutexLock lock(mutex_);
  return count_;
}

SlowEntry MakeSlowEntry(const RequestHeader& request, std::string_view key, std::string_view peer,
                        int64_t ns) {
  SlowEntry entry{};
  constexpr int64_t kUsMax = std::numeric_limits<uint32_t>::max();
  entry.us = static_cast<uint32_t>(std::clamp<int64_t>(ns / kNsPerUs, 0, kUsMax));
  entry.opcode = request.opcode;
  entry.key_bytes = static_cast<uint16_t>(key.size());
  entry.value_bytes = request.value_bytes;
  std::copy_n(peer.begin(), std::min(peer.size(), sizeof(entry.peer)), entry.peer);
  std::copy_n(key.begin(), std::min(key.size(), sizeof(entry.key)), entry.key);
  return entry;
}

}  // namespace gannet
