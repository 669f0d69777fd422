#include "common/rdma/completion.h"

#include <fcntl.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rdma/device.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

absl::StatusOr<Handle<ibv_comp_channel>> CreateChannel(ibv_context* verbs) {
  Handle<ibv_comp_channel> channel(ibv_create_comp_channel(verbs));
  if (channel == nullptr) return LastErrnoStatus("cannot create a completion channel");
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return LastErrnoStatus("cannot make the completion channel non-blocking");
  }
  return channel;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompletionQueue>> CompletionQueue::Create(ibv_context* verbs,
                                                                         uint32_t entries,
                                                                         bool with_channel) {
  ibv_device_attr attributes{};
  GANNET_RETURN_IF_ERROR(
      ErrnoStatus(ibv_query_device(verbs, &attributes), "cannot query the device"));
  entries = std::min(entries, static_cast<uint32_t>(attributes.max_cqe));
  std::unique_ptr<CompletionQueue> queue(new CompletionQueue());
  if (with_channel) {
    GANNET_ASSIGN_OR_RETURN(queue->channel_, CreateChannel(verbs));
  }
  queue->cq_.reset(
      ibv_create_cq(verbs, static_cast<int>(entries), nullptr, queue->channel_.get(), 0));
  if (queue->cq_ == nullptr) return LastErrnoStatusOfPinning("cannot create a completion queue");
  queue->yields_ = KindOf(*verbs->device) == DeviceKind::kKernelSoftware;
  queue->capacity_ = static_cast<uint32_t>(queue->cq_->cqe);
  return queue;
}

absl::Status CompletionQueue::Reserve(uint32_t entries) {
  if (entries > capacity_ - reserved_) {
    return absl::ResourceExhaustedError(absl::StrCat("the completion queue has room for ",
                                                     capacity_ - reserved_, " of its ", capacity_,
                                                     " entries, ", entries, " are needed"));
  }
  reserved_ += entries;
  return absl::OkStatus();
}

void CompletionQueue::Release(uint32_t entries) {
  GANNET_CHECK(entries <= reserved_, "more released than reserved");
  reserved_ -= entries;
}

absl::Status CompletionQueue::Arm() {
  return ErrnoStatus(ibv_req_notify_cq(cq_.get(), 0), "cannot arm the completion queue");
}

void CompletionQueue::TakeEvent() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
}

}  // namespace gannet
