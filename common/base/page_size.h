#ifndef GANNET_COMMON_BASE_PAGE_SIZE_H_
#define GANNET_COMMON_BASE_PAGE_SIZE_H_

#include <unistd.h>

#include <cstdint>

namespace gannet {

// Returns the bytes of a page of this system: 4 KiB on x86-64, up to 64 KiB elsewhere.
inline uint64_t SystemPageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_PAGE_SIZE_H_
