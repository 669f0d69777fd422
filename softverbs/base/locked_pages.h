#ifndef SOFTVERBS_BASE_LOCKED_PAGES_H_
#define SOFTVERBS_BASE_LOCKED_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace softverbs {

// With SOFTVERBS_MEMLOCK=1, counts the pages that the process's registrations would pin, against
// RLIMIT_MEMLOCK. It counts as the kernel does: each registration has its own pages. Unlike in the
// kernel, root is not exempt, because whoever sets the variable wants to see the limit. Without the
// variable it counts nothing. Thread safe. A forked child has registered nothing.

// Takes the pages that [address, address + length) touches. Returns false if that exceeds the
// limit.
bool TakeLockedPages(uint64_t address, size_t length);
// Gives back the pages that were taken for the same range.
void ReturnLockedPages(uint64_t address, size_t length);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_LOCKED_PAGES_H_
