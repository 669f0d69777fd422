#ifndef GANNET_SERVER_RPC_REPLACING_BUFFERS_H_
#define GANNET_SERVER_RPC_REPLACING_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/rdma/memory.h"
#include "server/rpc/buffer_pool.h"

namespace gannet {

// Where a value waits until it is complete, if the heap is full and it is to overwrite the item
// that it replaces: some short buffers, and one for a longer value. That one is made when it is
// needed, as long as the value and for the rail of its READs, and freed afterwards if it is longer
// than kKeptBytes. Owner thread only.
class ReplacingBuffers {
 public:
  static constexpr uint64_t kKeptBytes = 1 << 20;

  // A rail's number is the place of its domain in `pds`.
  static absl::StatusOr<ReplacingBuffers> Create(std::span<ibv_pd* const> pds, uint32_t count,
                                                 uint32_t short_bytes) {
    ReplacingBuffers buffers;
    GANNET_ASSIGN_OR_RETURN(buffers.short_, BufferPool::Create(pds, count, short_bytes));
    buffers.pds_.assign(pds.begin(), pds.end());
    buffers.short_bytes_ = short_bytes;
    return buffers;
  }
  ReplacingBuffers() = default;  // empty

  // Returns whether a buffer for so many bytes is free.
  bool Available(uint32_t bytes) const {
    return bytes <= short_bytes_ ? short_.available() > 0 : !long_taken_;
  }
  // Takes a buffer for work of a rail, and returns its index. Returns nullopt if none is free, or
  // there is no memory for one.
  std::optional<uint32_t> Take(uint32_t bytes, uint32_t rail) {
    if (bytes <= short_bytes_) return short_.Take();
    if (long_taken_ || !MakeLong(bytes, pds_[rail])) return std::nullopt;
    long_taken_ = true;
    return kLong;
  }
  void Give(uint32_t index) {
    if (index != kLong) return short_.Give(index);
    long_taken_ = false;
    if (long_ && long_->size() > kKeptBytes) long_.reset();
  }
  size_t taken(uint32_t count) const { return count - short_.available() + long_taken_; }

  std::span<std::byte> Bytes(uint32_t index) const {
    return index == kLong ? long_->bytes : short_.Bytes(index);
  }
  // REQUIRES: the buffer was taken for this rail.
  ibv_sge Sge(uint32_t index, uint32_t bytes, uint32_t rail) const {
    return index == kLong ? long_->Sge(0, bytes) : short_.Sge(index, bytes, rail);
  }

 private:
  static constexpr uint32_t kLong = UINT32_MAX;

  bool MakeLong(uint32_t bytes, ibv_pd* pd) {
    if (long_ && long_->size() >= bytes && long_->mr->pd == pd) return true;
    long_.reset();
    auto made = RegisteredBuffer::Create(pd, bytes);
    if (made.ok()) long_ = *std::move(made);
    return long_.has_value();
  }

  std::vector<ibv_pd*> pds_;
  uint32_t short_bytes_ = 0;
  BufferPool short_;
  std::optional<RegisteredBuffer> long_;
  bool long_taken_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_REPLACING_BUFFERS_H_
