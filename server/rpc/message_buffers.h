#ifndef GANNET_SERVER_RPC_MESSAGE_BUFFERS_H_
#define GANNET_SERVER_RPC_MESSAGE_BUFFERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/rails_reply.h"
#include "common/rdma/memory.h"

namespace gannet {

// Up to `count_max` buffers of one size in one run of memory, registered with each rail's domain.
// Registered piece by piece, because registered memory is resident: a server with few clients needs
// few buffers. Never shrinks. Owner thread only.
class MessageBuffers {
 public:
  // Buffers of a piece: 256 KiB of 4 KiB each.
  static constexpr uint32_t kPiece = 64;

  // Has one piece. A rail's number is the place of its domain in `pds`. REQUIRES: there are at most
  // kRailsMax.
  static absl::StatusOr<MessageBuffers> Create(std::span<ibv_pd* const> pds, uint32_t count_max,
                                               uint32_t buffer_bytes);
  MessageBuffers() = default;  // empty

  // Registers the next piece. Returns false if there are count_max() already, or a device
  // refuses. If one refuses, count_max() becomes count(), so that it is asked once.
  bool Grow();

  uint32_t count() const { return count_; }
  uint32_t count_max() const { return count_max_; }

  // REQUIRES, of both: index < count(). `rail` is whose work request it is for.
  std::byte* At(uint32_t index) const {
    return memory_.bytes().data() + uint64_t{index} * buffer_bytes_;
  }
  ibv_sge Sge(uint32_t index, uint32_t bytes, uint32_t rail) const {
    return {reinterpret_cast<uint64_t>(At(index)), bytes, lkeys_[index / kPiece][rail]};
  }

 private:
  absl::Status Register();

  std::vector<ibv_pd*> pds_;
  uint32_t buffer_bytes_ = 0;
  uint32_t count_ = 0;
  uint32_t count_max_ = 0;
  PrivateMemory memory_;
  std::vector<Handle<ibv_mr>> pieces_;                  // of each piece one for each domain
  std::vector<std::array<uint32_t, kRailsMax>> lkeys_;  // of each piece, by rail
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_MESSAGE_BUFFERS_H_
