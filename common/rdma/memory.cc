#include "common/rdma/memory.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/align.h"
#include "common/base/page_size.h"
#include "common/base/status_macros.h"
#include "common/rdma/memory_file.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

constexpr uint64_t kHugePageBytes = 2 << 20;

// Returns 0 if /proc does not say.
uint64_t AvailableMemoryBytes() {
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return 0;
  unsigned long long kib = 0;
  char line[256];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
  }
  std::fclose(file);
  return kib * 1024;
}

absl::Status TooLittleMemory(uint64_t wanted, std::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot have ", wanted >> 20, " MiB of memory: ", std::string(what), "; about ",
                   AvailableMemoryBytes() >> 20, " MiB are available, ask for less"));
}

struct FileMapping {
  int fd = -1;
  void* address = MAP_FAILED;
  uint64_t bytes = 0;
  uint64_t page_bytes = 0;
};

// Seals the file. Processes that get it, as softverbs' peers do, can then neither write it nor
// shrink it. (Shrinking it would kill this process by SIGBUS.) Best effort: a kernel before 5.1
// lacks FUTURE_WRITE, and a NIC does not hand the file out.
void Seal(int fd, bool remote_write) {
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  if (!remote_write) fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
}

// If the mapping is unusable, errno says why. The mapping takes all reserved huge pages at once (no
// MAP_NORESERVE), so too few of them fail here and not later as a SIGBUS.
FileMapping MapMemfd(const SharedMemory::Options& options, bool huge) {
  FileMapping mapping{.page_bytes = huge ? kHugePageBytes : options.page_bytes};
  mapping.bytes = AlignUp(options.bytes, mapping.page_bytes);
  const unsigned flags = huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0u;
  mapping.fd = memfd_create(options.name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
  if (mapping.fd < 0) return mapping;
  if (ftruncate(mapping.fd, static_cast<off_t>(mapping.bytes)) == 0) {
    mapping.address =
        mmap(nullptr, mapping.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, mapping.fd, 0);
  }
  if (mapping.address == MAP_FAILED) {
    const int error = errno;
    close(mapping.fd);
    errno = error;
    return mapping;
  }
  Seal(mapping.fd, options.remote_write);
  return mapping;
}

int AccessFlags(RemoteAccess access) {
  switch (access) {
    case RemoteAccess::kNone:
      return IBV_ACCESS_LOCAL_WRITE;
    case RemoteAccess::kRead:
      return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    case RemoteAccess::kReadAtomic:
      return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    case RemoteAccess::kReadWrite:
      return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  }
  return 0;
}

}  // namespace

absl::StatusOr<SharedMemory> SharedMemory::Create(const Options& options) {
  if (options.bytes == 0) return absl::InvalidArgumentError("a region of 0 bytes is of no use");
  if (!options.file.empty()) return OfFile(options);
  if (const uint64_t available = AvailableMemoryBytes();
      options.prefault && available != 0 && options.bytes > available) {
    // Do not ask the kernel for more than there is. It would call the OOM killer, which may choose
    // another process.
    return TooLittleMemory(options.bytes, "there is not so much");
  }
  FileMapping mapping;
  if (options.huge_pages == HugePages::kAuto) mapping = MapMemfd(options, true);
  if (mapping.address == MAP_FAILED) mapping = MapMemfd(options, false);
  if (mapping.address == MAP_FAILED) return TooLittleMemory(options.bytes, std::strerror(errno));
  SharedMemory memory;
  memory.bytes_ = {static_cast<std::byte*>(mapping.address), mapping.bytes};
  memory.page_bytes_ = mapping.page_bytes;
  memory.fd_ = mapping.fd;
  if (options.huge_pages == HugePages::kAuto && mapping.page_bytes != kHugePageBytes) {
    // Best effort. It has an effect only if /sys/kernel/mm/transparent_hugepage/shmem_enabled
    // allows it.
    madvise(mapping.address, mapping.bytes, MADV_HUGEPAGE);
  }
  if (!options.prefault) return memory;
  if (const int error = Prefault(memory.bytes_, mapping.page_bytes, options.prefault_hooks)) {
    return TooLittleMemory(mapping.bytes, std::strerror(error));
  }
  return memory;
}

absl::StatusOr<SharedMemory> SharedMemory::OfFile(const Options& options) {
  GANNET_ASSIGN_OR_RETURN(const MemoryFile file, OpenMemoryFile(options.file, options.bytes));
  void* address = mmap(nullptr, file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    close(file.fd);
    return TooLittleMemory(file.bytes, std::strerror(error));
  }
  SharedMemory memory;
  memory.bytes_ = {static_cast<std::byte*>(address), file.bytes};
  memory.page_bytes_ = file.page_bytes;
  memory.fd_ = file.fd;
  if (options.huge_pages == HugePages::kAuto) madvise(address, file.bytes, MADV_HUGEPAGE);
  if (const int error = Prefault(memory.bytes_, file.page_bytes, options.prefault_hooks)) {
    return TooLittleMemory(file.bytes, std::strerror(error));
  }
  return memory;
}

SharedMemory::~SharedMemory() {
  if (bytes_.empty()) return;
  munmap(bytes_.data(), bytes_.size());
  close(fd_);
}

absl::StatusOr<PrivateMemory> PrivateMemory::Create(uint64_t bytes) {
  const uint64_t size = AlignUp(std::max<uint64_t>(bytes, 1), SystemPageBytes());
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return TooLittleMemory(size, std::strerror(errno));
  PrivateMemory memory;
  memory.bytes_ = {static_cast<std::byte*>(address), size};
  return memory;
}

PrivateMemory::~PrivateMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

absl::StatusOr<Handle<ibv_mr>> RegisterMemory(ibv_pd* pd, std::span<std::byte> memory,
                                              RemoteAccess access) {
  Handle<ibv_mr> mr(ibv_reg_mr(pd, memory.data(), memory.size(), AccessFlags(access)));
  if (mr == nullptr) {
    return LastErrnoStatusOfPinning(
        absl::StrCat("cannot register ", (memory.size() + 1023) >> 10, " KiB with the device"));
  }
  return mr;
}

absl::StatusOr<Handle<ibv_mr>> RegisterDmabufMemory(ibv_pd* pd, int fd, uint64_t offset,
                                                    uint64_t bytes, RemoteAccess access) {
  Handle<ibv_mr> mr(ibv_reg_dmabuf_mr(pd, offset, bytes, /*iova=*/0, fd, AccessFlags(access)));
  if (mr != nullptr) return mr;
  if (errno == EOPNOTSUPP || errno == ENOSYS) {
    return absl::UnimplementedError(
        "the device cannot register dma-bufs; that takes a NIC and a driver with peer memory "
        "(mlx5 and others, kernel 5.12), and a GPU that exports its memory");
  }
  if (errno == EBADF || errno == EINVAL) {
    return absl::InvalidArgumentError("not a dma-buf of so many bytes");
  }
  return LastErrnoStatusOfPinning(
      absl::StrCat("cannot register ", (bytes + 1023) >> 10, " KiB of a dma-buf with the device"));
}

absl::StatusOr<RegisteredBuffer> RegisteredBuffer::Create(ibv_pd* pd, uint64_t bytes,
                                                          RemoteAccess access) {
  RegisteredBuffer buffer;
  if (access == RemoteAccess::kRead) {
    const SharedMemory::Options options{
        .name = "gannet-lent", .bytes = bytes, .huge_pages = HugePages::kOff, .prefault = false};
    GANNET_ASSIGN_OR_RETURN(buffer.shared_memory, SharedMemory::Create(options));
    buffer.bytes = buffer.shared_memory->bytes();
  } else {
    GANNET_ASSIGN_OR_RETURN(buffer.private_memory, PrivateMemory::Create(bytes));
    buffer.bytes = buffer.private_memory.bytes();
  }
  GANNET_ASSIGN_OR_RETURN(buffer.mr, RegisterMemory(pd, buffer.bytes, access));
  return buffer;
}

}  // namespace gannet
