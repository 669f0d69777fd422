#ifndef GANNET_SERVER_RPC_BUFFER_POOL_H_
#define GANNET_SERVER_RPC_BUFFER_POOL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status_macros.h"
#include "server/rpc/message_buffers.h"

namespace gannet {

// Up to a fixed number of registered buffers of one size. They are registered when they are first
// needed (MessageBuffers). Owner thread only.
class BufferPool {
 public:
  static absl::StatusOr<BufferPool> Create(std::span<ibv_pd* const> pds, uint32_t count,
                                           uint32_t buffer_bytes) {
    BufferPool pool;
    GANNET_ASSIGN_OR_RETURN(pool.buffers_, MessageBuffers::Create(pds, count, buffer_bytes));
    pool.buffer_bytes_ = buffer_bytes;
    pool.free_.reserve(count);
    pool.AddFree(0);
    return pool;
  }
  BufferPool() = default;  // empty

  // Takes a free buffer and returns its index. Returns nullopt if all are taken.
  std::optional<uint32_t> Take() {
    if (free_.empty() && !Grow()) [[unlikely]]
      return std::nullopt;
    const uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void Give(uint32_t index) { free_.push_back(index); }
  // Counts those that are not registered yet.
  size_t available() const { return free_.size() + buffers_.count_max() - buffers_.count(); }
  // Returns true if a peer that holds `held` buffers may take another. It may hold a quarter as
  // many as are free, or one. So a peer that takes all it can, and gives none back, leaves most of
  // the rest to the others: after ten such peers a tenth is free.
  bool MayTake(uint32_t held) const {
    const size_t free = available();
    return free > 0 && held < std::max<size_t>(free / 4, 1);
  }

  std::span<std::byte> Bytes(uint32_t index) const { return {buffers_.At(index), buffer_bytes_}; }
  ibv_sge Sge(uint32_t index, uint32_t bytes, uint32_t rail) const {
    return buffers_.Sge(index, bytes, rail);
  }

 private:
  bool Grow() {
    const uint32_t first = buffers_.count();
    if (!buffers_.Grow()) return false;
    AddFree(first);
    return true;
  }
  void AddFree(uint32_t first) {
    for (uint32_t i = buffers_.count(); i-- > first;) free_.push_back(i);
  }

  MessageBuffers buffers_;
  uint32_t buffer_bytes_ = 0;
  std::vector<uint32_t> free_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_BUFFER_POOL_H_
