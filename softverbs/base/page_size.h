#ifndef SOFTVERBS_BASE_PAGE_SIZE_H_
#define SOFTVERBS_BASE_PAGE_SIZE_H_

#include <unistd.h>

#include <cstdint>

namespace softverbs {

inline uint64_t PageSize() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_PAGE_SIZE_H_
