#include "softverbs/base/populate.h"

#include <sys/mman.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "softverbs/base/page_size.h"

// The C library's headers of older systems lack them.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace softverbs {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { fclose(file); }
};

// Returns 0 or an errno value.
int Populate(uint64_t begin, uint64_t end, int advice) {
  const uint64_t first = begin / PageSize() * PageSize();
  int result;
  do {
    result = madvise(reinterpret_cast<void*>(first), end - first, advice);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  return result == 0 ? 0 : errno;
}

// Asks the kernel about a page that is there for certain.
bool KernelCanPopulate() {
  static const bool can = [] {
    const char on_stack = 0;
    const auto address = reinterpret_cast<uint64_t>(&on_stack);
    return Populate(address, address + 1, MADV_POPULATE_READ) == 0;
  }();
  return can;
}

}  // namespace

int CheckMappings(uint64_t address, size_t length, bool writable) {
  const std::unique_ptr<FILE, CloseFile> maps(fopen("/proc/self/maps", "re"));
  if (!maps) return 0;  // nothing is known
  const uint64_t end = address + length;
  char text[512];
  while (address < end && fgets(text, sizeof(text), maps.get()) != nullptr) {
    uint64_t first, last;
    char read, write;
    if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %c%c", &first, &last, &read, &write) != 4) continue;
    if (last <= address) continue;
    if (first > address || read != 'r' || (writable && write != 'w')) return EFAULT;
    address = last;
  }
  return address < end ? EFAULT : 0;
}

int PopulatePages(uint64_t address, size_t length, bool writable) {
  if (length == 0) return 0;
  if (!KernelCanPopulate()) return CheckMappings(address, length, writable);
  const int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  return Populate(address, address + length, advice) == 0 ? 0 : EFAULT;
}

}  // namespace softverbs
