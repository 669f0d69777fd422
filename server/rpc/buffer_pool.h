#ifndef GANNET_SERVER_RPC_BUFFER_POOL_H_
#define GANNET_SERVER_RPC_BUFFER_POOL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status_macros.h"
#include "common/rdma/memory.h"

namespace gannet {

// A fixed number of registered buffers of one size. Owner thread only.
class BufferPool {
 public:
  static absl::StatusOr<BufferPool> Create(ibv_pd* pd, uint32_t count, uint32_t buffer_bytes) {
    BufferPool pool;
    GANNET_ASSIGN_OR_RETURN(pool.memory_,
                            RegisteredBuffer::Create(pd, uint64_t{count} * buffer_bytes));
    pool.buffer_bytes_ = buffer_bytes;
    for (uint32_t i = count; i-- > 0;) pool.free_.push_back(i);
    return pool;
  }
  BufferPool() = default;  // empty

  // Takes a free buffer and returns its index. Returns nullopt if all are taken.
  std::optional<uint32_t> Take() {
    if (free_.empty()) return std::nullopt;
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void Give(uint32_t index) { free_.push_back(index); }
  size_t available() const { return free_.size(); }
  // Returns true if a peer that holds `held` buffers may take another. It may hold a quarter as
  // many as are free, or one. So a peer that takes all it can, and gives none back, leaves most of
  // the rest to the others: after ten such peers a tenth is free.
  bool MayTake(uint32_t held) const {
    return !free_.empty() && held < std::max<size_t>(free_.size() / 4, 1);
  }

  std::span<std::byte> Bytes(uint32_t index) const {
    return {memory_.data() + uint64_t{index} * buffer_bytes_, buffer_bytes_};
  }
  ibv_sge Sge(uint32_t index, uint32_t bytes) const {
    return memory_.Sge(uint64_t{index} * buffer_bytes_, bytes);
  }

 private:
  RegisteredBuffer memory_;
  uint32_t buffer_bytes_ = 0;
  std::vector<uint32_t> free_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_BUFFER_POOL_H_
