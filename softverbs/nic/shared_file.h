#ifndef SOFTVERBS_NIC_SHARED_FILE_H_
#define SOFTVERBS_NIC_SHARED_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "softverbs/base/unique_fd.h"

namespace softverbs {

// The file behind a piece of memory.
struct SharedFile {
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t offset = 0;  // in the file, of the memory's first byte
  uint64_t size = 0;    // of the file
  UniqueFd fd;          // invalid if the memory is not a shared mapping of an open file
};

// Finds the file behind a piece of memory. Reads /proc/self/maps, and searches /proc/self/fd for a
// descriptor of the file (so the application must not have closed its own). Accepts only memory
// files: memfd and POSIX shared memory, including huge pages. `writable` asks for a descriptor that
// can be mapped for writing.
SharedFile FindSharedFile(const void* address, size_t length, bool writable);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_SHARED_FILE_H_
