#include "server/rpc/message_buffers.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace gannet {

absl::StatusOr<MessageBuffers> MessageBuffers::Create(ibv_pd* pd, uint32_t count_max,
                                                      uint32_t buffer_bytes) {
  MessageBuffers buffers;
  buffers.pd_ = pd;
  buffers.buffer_bytes_ = buffer_bytes;
  buffers.count_max_ = count_max;
  // Without a piece that is registered, its pages take no memory.
  GANNET_ASSIGN_OR_RETURN(buffers.memory_,
                          PrivateMemory::Create(uint64_t{count_max} * buffer_bytes));
  GANNET_RETURN_IF_ERROR(buffers.Register());
  return buffers;
}

bool MessageBuffers::Grow() {
  if (count_ == count_max_) return false;
  const absl::Status status = Register();
  if (status.ok()) return true;
  LOG(WARNING) << "no more than " << count_ << " message buffers: " << status.message();
  count_max_ = count_;
  return false;
}

absl::Status MessageBuffers::Register() {
  const uint32_t more = std::min(kPiece, count_max_ - count_);
  const std::span<std::byte> piece{memory_.bytes().data() + uint64_t{count_} * buffer_bytes_,
                                   uint64_t{more} * buffer_bytes_};
  GANNET_ASSIGN_OR_RETURN(pieces_.emplace_back(), RegisterMemory(pd_, piece, RemoteAccess::kNone));
  count_ += more;
  return absl::OkStatus();
}

}  // namespace gannet
