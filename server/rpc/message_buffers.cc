#include "server/rpc/message_buffers.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace gannet {

absl::StatusOr<MessageBuffers> MessageBuffers::Create(std::span<ibv_pd* const> pds,
                                                      uint32_t count_max, uint32_t buffer_bytes) {
  GANNET_CHECK(pds.size() <= kRailsMax, "more rails than there may be");
  MessageBuffers buffers;
  buffers.pds_.assign(pds.begin(), pds.end());
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
  std::array<uint32_t, kRailsMax> lkeys{};
  for (size_t rail = 0; rail < pds_.size(); ++rail) {
    GANNET_ASSIGN_OR_RETURN(pieces_.emplace_back(),
                            RegisterMemory(pds_[rail], piece, RemoteAccess::kNone));
    lkeys[rail] = pieces_.back()->lkey;
  }
  lkeys_.push_back(lkeys);
  count_ += more;
  return absl::OkStatus();
}

}  // namespace gannet
