#include "client/tables/huge_page_array.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "common/base/align.h"

namespace gannet {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = 2 << 20;

}  // namespace

void PagesDeleter::operator()(void* pages) const { munmap(pages, bytes); }

Pages AllocatePages(size_t bytes) {
  if (bytes == 0) return nullptr;
  const size_t size = AlignUp(bytes, kPageBytes);
  const size_t slack = size < kHugePageBytes ? 0 : kHugePageBytes;
  void* mapped = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  if (slack == 0) return Pages(mapped, {size});
  // Keeps an aligned part, and gives back the rest at both ends.
  auto* begin = static_cast<char*>(mapped);
  char* end = begin + size + slack;
  auto* aligned =
      reinterpret_cast<char*>(AlignUp(reinterpret_cast<uintptr_t>(begin), kHugePageBytes));
  if (aligned != begin) munmap(begin, aligned - begin);
  if (aligned + size != end) munmap(aligned + size, end - (aligned + size));
  // Best effort: the kernel may ignore it. The last, partial huge page is left out, as it would
  // take more memory than was asked for.
  madvise(aligned, size / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  return Pages(aligned, {size});
}

}  // namespace gannet
