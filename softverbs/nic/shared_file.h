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
  UniqueFd fd;          // invalid when the memory is not a shared mapping of an open file
};

// Finds it by reading /proc/self/maps, and a descriptor of it in /proc/self/fd (the application
// must not have closed its own). Only memory files are taken: memfd and POSIX shared memory, huge
// pages included. `writable` asks for a descriptor that can be mapped for writing.
SharedFile FindSharedFile(const void* address, size_t length, bool writable);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_SHARED_FILE_H_
