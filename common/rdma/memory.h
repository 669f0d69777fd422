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

// Page-aligned, zero-filled memory of a memfd, mapped shared: what clients READ. On a NIC it is as
// good as any memory; softverbs hands the memfd to peers (read-only where the MR gives no remote
// write) and so serves their READs without this process.
//
// Owns the mapping; destroy every MR on it first. Moving keeps the addresses.
class SharedMemory {
 public:
  struct Options {
    std::string name = "gannet";  // as /proc/PID/maps shows it
    uint64_t bytes = 0;           // rounded up to whole pages of the kind that is used
    HugePages huge_pages = HugePages::kAuto;
    uint64_t page_bytes = SystemPageBytes();  // of those that are not huge
    // Touch every page now: no page fault later, and no surprise by the OOM killer.
    bool prefault = true;
    PrefaultHooks prefault_hooks;
    // Peers change it (lock words). Otherwise the memfd is sealed: with softverbs, where peers get
    // the file, the kernel itself then keeps them from ever mapping it writable.
    bool remote_write = false;
  };
  // ResourceExhausted: not that much memory (the text says how much there is).
  static absl::StatusOr<SharedMemory> Create(const Options& options);
  SharedMemory(SharedMemory&& other) noexcept { Swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~SharedMemory();

  std::span<std::byte> bytes() const { return bytes_; }
  // Of the system, or of a huge page when the region is made of reserved ones.
  uint64_t page_bytes() const { return page_bytes_; }

 private:
  SharedMemory() = default;
  void Swap(SharedMemory& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(page_bytes_, other.page_bytes_);
    std::swap(fd_, other.fd_);
  }

  std::span<std::byte> bytes_;
  uint64_t page_bytes_ = 0;
  int fd_ = -1;  // stays open: softverbs looks among the open files for the one behind a mapping
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

// Least rights: what peers may do with the memory. Local access is always read and write.
enum class RemoteAccess : uint8_t {
  kNone,        // SENDs, receives, own READ sinks
  kRead,        // the region; a value a client lends to the server
  kReadAtomic,  // lock words
  kReadWrite,   // a buffer that the peer fills
};

// REQUIRES: the memory outlives the MR. ResourceExhausted: RLIMIT_MEMLOCK, with what to do;
// FailedPrecondition: kReadAtomic on a device without atomics.
absl::StatusOr<Handle<ibv_mr>> RegisterMemory(ibv_pd* pd, std::span<std::byte> memory,
                                              RemoteAccess access);

// Memory of its own with its MR: message buffers, READ sinks, lent values. What peers may only READ
// is shared memory, so that on softverbs they do so without this process's CPU.
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

  std::span<std::byte> bytes;  // of one of these
  PrivateMemory private_memory;
  std::optional<SharedMemory> shared_memory;
  Handle<ibv_mr> mr;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_MEMORY_H_
