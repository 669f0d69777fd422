#ifndef GANNET_SERVER_RPC_MESSAGE_BUFFERS_H_
#define GANNET_SERVER_RPC_MESSAGE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/memory.h"

namespace gannet {

// Up to `count_max` buffers of one size in one run of memory. Registered piece by piece, because
// registered memory is resident: a server with few clients needs few buffers. Never shrinks. Owner
// thread only.
class MessageBuffers {
 public:
  // Buffers of a piece: 256 KiB of 4 KiB each.
  static constexpr uint32_t kPiece = 64;

  // Has one piece.
  static absl::StatusOr<MessageBuffers> Create(ibv_pd* pd, uint32_t count_max,
                                               uint32_t buffer_bytes);
  MessageBuffers() = default;  // empty

  // Registers the next piece. Returns false if there are count_max() already, or the device
  // refuses. If it refuses, count_max() becomes count(), so that it is asked once.
  bool Grow();

  uint32_t count() const { return count_; }
  uint32_t count_max() const { return count_max_; }

  // REQUIRES, of both: index < count().
  std::byte* At(uint32_t index) const {
    return memory_.bytes().data() + uint64_t{index} * buffer_bytes_;
  }
  ibv_sge Sge(uint32_t index, uint32_t bytes) const {
    return {reinterpret_cast<uint64_t>(At(index)), bytes, pieces_[index / kPiece]->lkey};
  }

 private:
  absl::Status Register();

  ibv_pd* pd_ = nullptr;
  uint32_t buffer_bytes_ = 0;
  uint32_t count_ = 0;
  uint32_t count_max_ = 0;
  PrivateMemory memory_;
  std::vector<Handle<ibv_mr>> pieces_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_MESSAGE_BUFFERS_H_
