#include "server/rpc/receive_buffers.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "server/rpc/work_kind.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<ReceiveBuffers>> ReceiveBuffers::Create(ibv_pd* pd, uint32_t count) {
  std::unique_ptr<ReceiveBuffers> result(new ReceiveBuffers());
  result->repost_at_ = std::clamp<uint32_t>(count / 8, 1, kRepostAt);
  GANNET_ASSIGN_OR_RETURN(result->buffers_, MessageBuffers::Create(pd, count, kMessageBytesMax));
  GANNET_ASSIGN_OR_RETURN(result->srq_, CreateSharedReceiveQueue(pd, count));
  result->sges_.reserve(count);
  result->requests_.reserve(count);
  result->AddRegistered();
  if (!result->PostRecycled()) return absl::InternalError("the device refused the receives");
  return result;
}

void ReceiveBuffers::AddRegistered() {
  for (auto slot = static_cast<uint32_t>(requests_.size()); slot < buffers_.count(); ++slot) {
    sges_.push_back(buffers_.Sge(slot, kMessageBytesMax));
    requests_.push_back({.wr_id = PackWorkId(WorkKind::kReceive, 0, slot),
                         .next = nullptr,
                         .sg_list = &sges_.back(),
                         .num_sge = 1});
    Recycle(slot);
  }
}

// Up to repost_at_ - 1 receives may wait to be posted again.
bool ReceiveBuffers::Reserve(uint64_t requests) {
  const uint32_t before = buffers_.count();
  while (buffers_.count() < requests + repost_at_ && buffers_.Grow()) AddRegistered();
  return buffers_.count() == before || PostRecycled();
}

bool ReceiveBuffers::PostRecycled() {
  ++posts_;
  recycled_count_ = 0;
  return PostReceive(srq_.get(), std::exchange(recycled_, nullptr)) == PostResult::kPosted;
}

}  // namespace gannet
