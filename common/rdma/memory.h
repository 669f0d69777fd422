#ifndef GANNET_COMMON_RDMA_MEMORY_H_
#define GANNET_COMMON_RDMA_MEMORY_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/page_size.h"
#include "common/rdma/handle.h"
#include "common/rdma/prefault.h"

namespace gannet {

enum class HugePages : uint8_t { kAuto, kOff };

// Page-aligned, zero-filled memory of a memfd, mapped shared, for what clients READ. To a NIC it is
// memory like any other. softverbs hands the memfd to peers (read-only if the MR gives no remote
// write), so that they READ it without this process.
//
// Owns the mapping. Destroy every MR on it first. Moving keeps the addresses.
class SharedMemory {
 public:
  struct Options {
    std::string name = "gannet";  // as /proc/PID/maps shows it
    uint64_t bytes = 0;           // rounded up to whole pages, huge or not
    HugePages huge_pages = HugePages::kAuto;
    uint64_t page_bytes = SystemPageBytes();  // of pages that are not huge
    // Touches every page now, so that there is no page fault later, and no surprise by the OOM
    // killer.
    bool prefault = true;
    PrefaultHooks prefault_hooks;
    // True if peers change the memory (lock words). Otherwise the memfd is sealed, so that the
    // kernel keeps softverbs' peers, who get the file, from ever mapping it writable.
    bool remote_write = false;
    // Path of a file that is the memory, and outlives it (OpenMemoryFile). The file keeps its
    // contents. Empty: no file.
    std::string file;
  };
  // ResourceExhausted: there is too little memory; the text says how much there is. Other errors
  // are those of OpenMemoryFile.
  static absl::StatusOr<SharedMemory> Create(const Options& options);
  SharedMemory(SharedMemory&& other) noexcept { Swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~SharedMemory();

  std::span<std::byte> bytes() const { return bytes_; }
  // The system's page size, or that of a huge page if the region is made of reserved ones.
  uint64_t page_bytes() const { return page_bytes_; }

 private:
  SharedMemory() = default;
  static absl::StatusOr<SharedMemory> OfFile(const Options& options);
  void Swap(SharedMemory& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(page_bytes_, other.page_bytes_);
    std::swap(fd_, other.fd_);
  }

  std::span<std::byte> bytes_;
  uint64_t page_bytes_ = 0;
  int fd_ = -1;  // stays open: softverbs finds the file behind a mapping among the open files
};

// Page-aligned, zero-filled private memory: message buffers, READ sinks, the values a client lends.
class PrivateMemory {
 public:
  // ResourceExhausted: no memory.
  static absl::StatusOr<PrivateMemory> Create(uint64_t bytes);
  PrivateMemory() = default;  // empty
  PrivateMemory(PrivateMemory&& other) noexcept { std::swap(bytes_, other.bytes_); }
  PrivateMemory& operator=(PrivateMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PrivateMemory();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// What peers may do with the memory. Choose the least. Local access is always read and write.
enum class RemoteAccess : uint8_t {
  kNone,        // SENDs, receives, own READ sinks
  kRead,        // the region; a value a client lends to the server
  kReadAtomic,  // lock words
  kReadWrite,   // a buffer that the peer fills
};

// REQUIRES: the memory outlives the MR. ResourceExhausted: RLIMIT_MEMLOCK is too low; the text says
// what to do. FailedPrecondition: kReadAtomic on a device without atomics.
absl::StatusOr<Handle<ibv_mr>> RegisterMemory(ibv_pd* pd, std::span<std::byte> memory,
                                              RemoteAccess access);

// Registers `bytes` of a dma-buf: memory of a device, such as a GPU, which the CPU need not be able
// to address. Work requests name its first byte as address 0. Unimplemented: the device, or its
// driver, cannot. InvalidArgument: the descriptor is no dma-buf.
absl::StatusOr<Handle<ibv_mr>> RegisterDmabufMemory(ibv_pd* pd, int fd, uint64_t offset,
                                                    uint64_t bytes, RemoteAccess access);

// A buffer with its own memory and MR: message buffers, READ sinks, lent values. Memory that peers
// may only READ is shared memory, so that on softverbs they READ it without this process's CPU.
struct RegisteredBuffer {
  static absl::StatusOr<RegisteredBuffer> Create(ibv_pd* pd, uint64_t bytes,
                                                 RemoteAccess access = RemoteAccess::kNone);

  std::byte* data() const { return bytes.data(); }
  uint64_t size() const { return bytes.size(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(data()); }
  uint32_t lkey() const { return mr->lkey; }
  uint32_t rkey() const { return mr->rkey; }
  ibv_sge Sge(uint64_t offset, uint32_t length) const {
    return {address() + offset, length, lkey()};
  }

  std::span<std::byte> bytes;  // in one of the next two
  PrivateMemory private_memory;
  std::optional<SharedMemory> shared_memory;
  Handle<ibv_mr> mr;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_MEMORY_H_
