#include "server/rpc/receive_buffers.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "server/rpc/work_kind.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<ReceiveBuffers>> ReceiveBuffers::Create(ibv_pd* pd, uint32_t count) {
  std::unique_ptr<ReceiveBuffers> result(new ReceiveBuffers());
  result->repost_at_ = std::clamp<uint32_t>(count / 8, 1, kRepostAt);
  GANNET_ASSIGN_OR_RETURN(result->buffers_,
                          MessageBuffers::Create({&pd, 1}, count, kMessageBytesMax));
  GANNET_ASSIGN_OR_RETURN(result->srq_, CreateSharedReceiveQueue(pd, count));
  result->receives_ = Receives(count);
  result->AddRegistered();
  if (!result->Repost()) return absl::InternalError("the device refused the receives");
  return result;
}

void ReceiveBuffers::AddRegistered() {
  for (uint32_t slot = receives_.count(); slot < buffers_.count(); ++slot) {
    receives_.Add(PackWorkId(WorkKind::kReceive, 0, slot), buffers_.Sge(slot, kMessageBytesMax, 0));
  }
}

// Up to repost_at_ - 1 receives may wait to be posted again.
bool ReceiveBuffers::Reserve(uint64_t requests) {
  const uint32_t before = buffers_.count();
  while (buffers_.count() < requests + repost_at_ && buffers_.Grow()) AddRegistered();
  return buffers_.count() == before || Repost();
}

bool ReceiveBuffers::Repost() {
  ++posts_;
  return receives_.Post(srq_.get());
}

}  // namespace gannet
