#ifndef SOFTVERBS_BASE_POPULATE_H_
#define SOFTVERBS_BASE_POPULATE_H_

#include <cstddef>
#include <cstdint>

namespace softverbs {

// Brings in every page of [address, address + length), for writing too if `writable`, as a driver
// does that pins the memory. Returns 0, or EFAULT if some of it is not mapped, does not allow the
// access, or lies behind the end of its file.
//
// Kernels before 5.14 cannot do that. There it reads the list of mappings instead, which tells the
// first two.
int PopulatePages(uint64_t address, size_t length, bool writable);

// What PopulatePages does without help of the kernel. For tests.
int CheckMappings(uint64_t address, size_t length, bool writable);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_POPULATE_H_
