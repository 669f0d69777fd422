#include "server/rpc/receive_buffers.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "server/rpc/work_kind.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<ReceiveBuffers>> ReceiveBuffers::Create(ibv_pd* pd, uint32_t count) {
  std::unique_ptr<ReceiveBuffers> result(new ReceiveBuffers());
  result->count_ = count;
  result->repost_at_ = std::clamp<uint32_t>(count / 8, 1, kRepostAt);
  GANNET_ASSIGN_OR_RETURN(result->buffers_,
                          RegisteredBuffer::Create(pd, uint64_t{count} * kMessageBytesMax));
  GANNET_ASSIGN_OR_RETURN(result->srq_, CreateSharedReceiveQueue(pd, count));
  result->sges_.resize(count);
  result->requests_.resize(count);
  for (uint32_t slot = 0; slot < count; ++slot) {
    result->sges_[slot] = result->buffers_.Sge(uint64_t{slot} * kMessageBytesMax, kMessageBytesMax);
    result->requests_[slot] = {.wr_id = PackWorkId(WorkKind::kReceive, 0, slot),
                               .next = nullptr,
                               .sg_list = &result->sges_[slot],
                               .num_sge = 1};
    result->Recycle(slot);
  }
  if (!result->PostRecycled()) return absl::InternalError("the device refused the receives");
  return result;
}

bool ReceiveBuffers::PostRecycled() {
  ++posts_;
  recycled_count_ = 0;
  return PostReceive(srq_.get(), std::exchange(recycled_, nullptr)) == PostResult::kPosted;
}

}  // namespace gannet
