#include "softverbs/nic/imported_regions.h"

#include <sys/stat.h>

#include <utility>

#include "softverbs/base/mutex.h"

namespace softverbs {

bool ImportedRegions::NoteRequested(uint32_t id) {
  const LockGuard guard(mutex_);
  return requested_.insert(id).second;
}

bool ImportedRegions::Install(uint32_t id, int fd, bool writable) {
  struct stat info;
  if (id == 0 || fstat(fd, &info) != 0 || info.st_size <= 0) return false;
  const auto size = static_cast<uint64_t>(info.st_size);
  const LockGuard guard(mutex_);
  Slot& slot = slots_[id % kSlots];
  if (slot.id.load(std::memory_order_relaxed) != 0 || requested_.count(id) == 0) return false;
  slot.mapping = Mapping(fd, size, writable);
  if (!slot.mapping) return false;
  slot.base.store(static_cast<uint8_t*>(slot.mapping.data()), std::memory_order_relaxed);
  slot.size.store(size, std::memory_order_relaxed);
  slot.writable.store(writable, std::memory_order_relaxed);
  slot.id.store(id, std::memory_order_seq_cst);  // publishes the fields above
  return true;
}

Mapping ImportedRegions::Retire(uint32_t id) {
  const LockGuard guard(mutex_);
  requested_.erase(id);
  Slot& slot = slots_[id % kSlots];
  if (id == 0 || slot.id.load(std::memory_order_relaxed) != id) return Mapping();
  slot.id.store(0, std::memory_order_seq_cst);
  return std::exchange(slot.mapping, Mapping());
}

}  // namespace softverbs
