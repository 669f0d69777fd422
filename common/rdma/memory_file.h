#ifndef GANNET_COMMON_RDMA_MEMORY_FILE_H_
#define GANNET_COMMON_RDMA_MEMORY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gannet {

// A file on tmpfs or hugetlbfs. Its pages are memory, and outlive the process. It is locked until
// the descriptor is closed. The kernel does that when the process ends, however it ends.
struct MemoryFile {
  int fd = -1;
  uint64_t bytes = 0;
  uint64_t page_bytes = 0;
  bool existed = false;
};

// Opens the file, or makes one of `bytes`, rounded up to pages. FailedPrecondition: another process
// has it. InvalidArgument: it has another size, or is no file of memory. ResourceExhausted: the
// file system has no room.
absl::StatusOr<MemoryFile> OpenMemoryFile(const std::string& path, uint64_t bytes);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_MEMORY_FILE_H_
