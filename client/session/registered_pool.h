#ifndef GANNET_CLIENT_SESSION_REGISTERED_POOL_H_
#define GANNET_CLIENT_SESSION_REGISTERED_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "client/session/memory_domains.h"
#include "common/layout/item.h"

namespace gannet {

// A registered buffer that was taken from a RegisteredPool. Empty if `data` is null.
struct LentBuffer {
  std::byte* data = nullptr;
  uint32_t bytes = 0;
  const MemoryKeys* keys = nullptr;
  uint8_t tier = 0;

  uint64_t address() const { return reinterpret_cast<uint64_t>(data); }
};

// Registered buffers for what does not fit the fixed ones: long items and long values. There are
// five sizes, with a bounded number of buffers each. The memory of a size is allocated and
// registered when it is first asked for; there is no other allocation. All of it gives peers the
// same access.
//
// One owner thread. The domains outlive the pool.
class RegisteredPool {
 public:
  RegisteredPool(MemoryDomains* domains, RemoteAccess access)
      : domains_(domains), access_(access) {}

  // Returns an empty buffer if none is free now, or if there can be none: see error().
  // REQUIRES: bytes <= kValueBytesMax.
  LentBuffer Take(uint32_t bytes);
  void Return(LentBuffer buffer);
  // Why memory could not be registered; OK if it could.
  const absl::Status& error() const { return error_; }
  // How many buffers are taken and not returned.
  uint32_t lent() const;

 private:
  struct TierSize {
    uint32_t bytes;
    uint32_t count;
  };
  static constexpr std::array<TierSize, 5> kTiers = {
      {{16 << 10, 64}, {128 << 10, 32}, {1 << 20, 8}, {8 << 20, 2}, {kValueBytesMax, 1}}};

  struct Tier {
    std::unique_ptr<MemoryRange> memory;
    std::vector<std::byte*> free;
    bool made = false;
  };
  bool MakeTier(uint8_t tier);

  MemoryDomains* domains_;
  RemoteAccess access_;
  std::array<Tier, kTiers.size()> tiers_;
  absl::Status error_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_REGISTERED_POOL_H_
