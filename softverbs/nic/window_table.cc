#include "softverbs/nic/window_table.h"

namespace softverbs {
namespace {

constexpr unsigned kChange = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

}  // namespace

uint32_t WindowTable::Add(ibv_mw_type type, uint32_t pd) {
  const uint32_t key = memory_->TakeWindowKey();
  if (key == 0) return 0;
  const LockGuard guard(mutex_);
  windows_[WindowOf(key)] = {.type = type, .pd = pd, .key = key};
  return key;
}

void WindowTable::Remove(uint32_t key) {
  {
    const LockGuard guard(mutex_);
    const auto found = windows_.find(WindowOf(key));
    if (found == windows_.end()) return;
    UnbindLocked(found->second);
    windows_.erase(found);
  }
  memory_->ReturnWindowKey(key);
}

bool WindowTable::Bind(const Binding& binding) {
  const LockGuard guard(mutex_);
  Window* window = FindLocked(binding.key);
  if (window == nullptr || !MayBindLocked(*window, binding)) return false;
  UnbindLocked(*window);
  window->key = binding.key;
  if (binding.length == 0) return true;
  const bool zero_based = (binding.access & IBV_ACCESS_ZERO_BASED) != 0;
  window->region = binding.region;
  window->region_addr = binding.addr;
  window->qpn = binding.qpn;
  window->access = binding.access;
  window->addr = zero_based ? 0 : binding.addr;
  window->length = binding.length;
  ++bound_[binding.region];
  return true;
}

// IBTA 10.6.7.2.
bool WindowTable::MayBindLocked(const Window& window, const Binding& binding) const {
  if (window.pd != binding.pd) return false;
  if (window.type == IBV_MW_TYPE_1) {
    if ((binding.access & IBV_ACCESS_ZERO_BASED) != 0) return false;
    if (binding.length == 0) return true;
  } else if (window.region != 0 || binding.length == 0) {
    return false;
  }
  // Atomics and WRITEs through a window need a region that may be written locally.
  unsigned needed = IBV_ACCESS_MW_BIND;
  if ((binding.access & kChange) != 0) needed |= IBV_ACCESS_LOCAL_WRITE;
  return memory_->Resolve(binding.region, binding.addr, binding.length, binding.pd, needed) !=
         nullptr;
}

bool WindowTable::Invalidate(uint32_t key, uint32_t qpn) {
  const LockGuard guard(mutex_);
  Window* window = FindLocked(key);
  if (window == nullptr || window->type != IBV_MW_TYPE_2 || window->key != key ||
      window->qpn != qpn) {
    return false;
  }
  UnbindLocked(*window);
  return true;
}

void WindowTable::ForgetQueuePair(uint32_t qpn) {
  const LockGuard guard(mutex_);
  for (auto& [number, window] : windows_) {
    if (window.type == IBV_MW_TYPE_2 && window.qpn == qpn) UnbindLocked(window);
  }
}

bool WindowTable::CloseRegion(uint32_t region) {
  const LockGuard guard(mutex_);
  if (bound_.contains(region)) return false;
  memory_->Invalidate(region);
  return true;
}

// The hold outlives this call.
uint8_t* WindowTable::Resolve(uint32_t key, uint64_t addr, uint64_t length, uint32_t qpn,
                              uint32_t pd, unsigned access, Hold* hold) {
  *hold = Hold(mutex_);
  const Window* window = FindLocked(key);
  if (window == nullptr || window->key != key || window->region == 0 || window->pd != pd ||
      (window->access & access) != access) {
    return nullptr;
  }
  if (window->type == IBV_MW_TYPE_2 && window->qpn != qpn) return nullptr;
  const uint64_t offset = addr - window->addr;
  if (offset > window->length || length > window->length - offset) return nullptr;
  // The region's own remote rights do not matter. It was checked when the window was bound.
  return memory_->Resolve(window->region, window->region_addr + offset, length, pd, 0);
}

WindowTable::Window* WindowTable::FindLocked(uint32_t key) {
  const auto found = windows_.find(WindowOf(key));
  return found == windows_.end() ? nullptr : &found->second;
}

void WindowTable::UnbindLocked(Window& window) {
  if (window.region == 0) return;
  const auto count = bound_.find(window.region);
  if (--count->second == 0) bound_.erase(count);
  window.region = 0;
}

}  // namespace softverbs
