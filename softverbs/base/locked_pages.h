#ifndef SOFTVERBS_BASE_LOCKED_PAGES_H_
#define SOFTVERBS_BASE_LOCKED_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace softverbs {

// With SOFTVERBS_MEMLOCK=1: the pages that the process's registrations would pin, counted as the
// kernel counts them (each registration its own), against RLIMIT_MEMLOCK. Root is not exempt,
// unlike in the kernel: who sets the variable wants to see the limit. Without it nothing is
// counted. Thread safe. A forked child has registered nothing.

// The pages that [address, address + length) touches, taken; false if that exceeds the limit.
bool TakeLockedPages(uint64_t address, size_t length);
// Gives back what was taken for the same range.
void ReturnLockedPages(uint64_t address, size_t length);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_LOCKED_PAGES_H_
