#ifndef GANNET_CLIENT_SESSION_MEMORY_DOMAINS_H_
#define GANNET_CLIENT_SESSION_MEMORY_DOMAINS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/data_path_checks.h"
#include "common/base/mutex.h"
#include "common/protocol/rails_reply.h"
#include "common/rdma/handle.h"
#include "common/rdma/memory.h"

namespace gannet {

class MemoryDomains;

// The most devices that a client uses, and so the most protection domains.
inline constexpr uint32_t kDomainsMax = kRailsMax;

// By what work requests name registered memory, on each device. They are 0 on one that the client
// does not use.
struct MemoryKeys {
  std::array<uint32_t, kDomainsMax> lkeys{};
  std::array<uint32_t, kDomainsMax> rkeys{};
};

// Memory registered with every device that a client uses: the caller's own, or the client's.
// Deregisters it when it is destroyed, from any thread. From then on no device touches the memory:
// work that still names it fails, and its connection breaks.
class MemoryRange {
 public:
  ~MemoryRange();

  // What work requests name as its first byte.
  uint64_t address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  bool belongs_to(const MemoryDomains& domains) const { return domains_.get() == &domains; }
  // Servers may READ it.
  bool remote_read() const { return access_ == RemoteAccess::kRead; }
  // nullptr if the CPU cannot address it.
  std::byte* data() const { return data_; }
  // Keys of a domain count once it is open.
  const MemoryKeys& keys() const { return keys_; }
  uint32_t rkey(uint32_t domain) const { return keys_.rkeys[domain]; }

 private:
  friend class MemoryDomains;
  struct Dmabuf {
    int fd;
    uint64_t offset;
  };

  MemoryRange() = default;
  absl::Status RegisterWith(ibv_pd* pd, uint32_t domain);
  void Deregister(uint32_t domain);

  uint64_t address_ = 0;
  uint64_t bytes_ = 0;
  std::byte* data_ = nullptr;
  RemoteAccess access_ = RemoteAccess::kNone;
  std::optional<Dmabuf> dmabuf_;
  std::optional<SharedMemory> own_;  // if the client made the memory, that one or this
  PrivateMemory own_private_;
  std::shared_ptr<MemoryDomains> domains_;
  MemoryKeys keys_;
  std::array<Handle<ibv_mr>, kDomainsMax> mrs_;  // by domain; destroyed before the memory
};

// The protection domains of a client, one for each device that it uses. Its sessions share them, so
// that memory is registered once for all servers behind a device.
//
// Thread safety: all methods may be called from any thread. A domain, once open, stays open as long
// as this, and so do its keys in a MemoryRange.
class MemoryDomains : public std::enable_shared_from_this<MemoryDomains> {
 public:
  static std::shared_ptr<MemoryDomains> Create() {
    return std::shared_ptr<MemoryDomains>(new MemoryDomains());
  }

  // Returns the number of the device's domain. Opens it if that was not done before, and registers
  // all memory with it. ResourceExhausted: the device's limits, or memlock; or too many devices.
  absl::StatusOr<uint32_t> Open(ibv_context* device);
  ibv_pd* pd(uint32_t domain) const;
  // Returns the rkey in `domain` of the memory that has this one in domain `former`; the same rkey
  // if there is no such memory any more.
  uint32_t RkeyIn(uint32_t domain, uint32_t former, uint32_t rkey) const;

  // REQUIRES: the memory outlives the range. If `remote_read`, servers may READ it (for PUTs).
  // Errors: as RegisterMemory.
  absl::StatusOr<std::unique_ptr<MemoryRange>> Register(std::span<std::byte> memory,
                                                        bool remote_read);
  // Makes new memory, which lives as long as the range. On softverbs servers READ such memory
  // without this process's CPU.
  absl::StatusOr<std::unique_ptr<MemoryRange>> Allocate(uint64_t bytes);
  // The same for a session's own buffers. Memory that servers may only READ is shared memory, as
  // that of Allocate; other memory is private.
  absl::StatusOr<std::unique_ptr<MemoryRange>> AllocateBuffers(uint64_t bytes, RemoteAccess access);
  // Registers `bytes` from `offset` of a dma-buf, which need not have an address for the CPU.
  // Unimplemented: the device cannot.
  absl::StatusOr<std::unique_ptr<MemoryRange>> RegisterDmabuf(int fd, uint64_t offset,
                                                              uint64_t bytes, bool remote_read);

 private:
  friend class MemoryRange;
  struct Domain {
    ibv_context* device;
    Handle<ibv_pd> pd;
  };

  MemoryDomains() { domains_.reserve(kDomainsMax); }  // so that pd() may run beside Open
  absl::StatusOr<std::unique_ptr<MemoryRange>> Add(std::unique_ptr<MemoryRange> range);
  void Remove(MemoryRange* range);

  mutable Mutex mutex_;
  std::vector<Domain> domains_ GANNET_GUARDED_BY(mutex_);
  std::vector<MemoryRange*> ranges_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_MEMORY_DOMAINS_H_
