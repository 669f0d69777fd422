#ifndef GANNET_CLIENT_SESSION_REGISTERED_POOL_H_
#define GANNET_CLIENT_SESSION_REGISTERED_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/lookup/index_view.h"
#include "common/rdma/memory.h"

namespace gannet {

// A registered buffer on loan from a RegisteredPool; empty when data is null.
struct LentBuffer {
  std::byte* data = nullptr;
  uint32_t bytes = 0;
  uint32_t lkey = 0;
  uint32_t rkey = 0;
  uint8_t tier = 0;

  uint64_t address() const { return reinterpret_cast<uint64_t>(data); }
};

// Registered buffers for what does not fit the fixed ones: long items, long values. Three sizes,
// a bounded number of each. A size's memory is allocated and registered the first time it is asked
// for (there is no other allocation), and stays registered with the pool's one right for peers.
//
// One owner thread. The protection domain outlives the pool.
class RegisteredPool {
 public:
  RegisteredPool(ibv_pd* pd, RemoteAccess access) : pd_(pd), access_(access) {}

  // An empty buffer: none is free now, or error() says that there can be none.
  // REQUIRES: bytes <= kItemReadBytesMax.
  LentBuffer Take(uint32_t bytes);
  void Return(LentBuffer buffer);
  const absl::Status& error() const { return error_; }
  // Taken and not returned.
  uint32_t lent() const;

 private:
  struct TierSize {
    uint32_t bytes;
    uint32_t count;
  };
  static constexpr std::array<TierSize, 3> kTiers = {
      {{16 << 10, 64}, {128 << 10, 32}, {kItemReadBytesMax, 8}}};

  struct Tier {
    RegisteredBuffer memory;
    std::vector<std::byte*> free;
    bool made = false;
  };
  bool MakeTier(uint8_t tier);

  ibv_pd* pd_;
  RemoteAccess access_;
  std::array<Tier, kTiers.size()> tiers_;
  absl::Status error_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_REGISTERED_POOL_H_
