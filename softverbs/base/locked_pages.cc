#include "softverbs/base/locked_pages.h"

#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "softverbs/base/fork.h"
#include "softverbs/base/page_size.h"

namespace softverbs {
namespace {

std::atomic<uint64_t> locked_pages{0};

bool Enforced() {
  static const bool enforced = [] {
    const char* value = getenv("SOFTVERBS_MEMLOCK");
    if (value == nullptr || std::string_view(value) != "1") return false;
    OnForkChild([] { locked_pages.store(0, std::memory_order_relaxed); });
    return true;
  }();
  return enforced;
}

uint64_t PagesTouched(uint64_t address, size_t length) {
  if (length == 0) return 0;
  return (address + length - 1) / PageSize() - address / PageSize() + 1;
}

}  // namespace

bool TakeLockedPages(uint64_t address, size_t length) {
  if (!Enforced()) return true;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    limit.rlim_cur = ~rlim_t{0};
  }
  const uint64_t pages = PagesTouched(address, length);
  // Relaxed: only the sum matters, and nothing is published with it.
  const uint64_t before = locked_pages.fetch_add(pages, std::memory_order_relaxed);
  if (before + pages <= limit.rlim_cur / PageSize()) return true;
  locked_pages.fetch_sub(pages, std::memory_order_relaxed);
  return false;
}

void ReturnLockedPages(uint64_t address, size_t length) {
  if (!Enforced()) return;
  locked_pages.fetch_sub(PagesTouched(address, length), std::memory_order_relaxed);
}

}  // namespace softverbs
