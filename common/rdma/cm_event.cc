#include "common/rdma/cm_event.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/mutex.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// When rdma_get_cm_event returns a rejection, it has moved the queue pair of the event's id to the
// error state, and takes no lock for that. The id may be another thread's, which destroys the queue
// pair at that moment. So both hold this. It is held for no wait: the channels are non-blocking.
Mutex queue_pairs_of_ids;

}  // namespace

void Deleter::operator()(rdma_cm_id* id) const {
  {
    const MutexLock lock(queue_pairs_of_ids);
    if (id->qp != nullptr) rdma_destroy_qp(id);
  }
  Check(rdma_destroy_id(id), "rdma_destroy_id failed");
}

PrivateData::PrivateData(const void* data, size_t bytes) {
  if (data == nullptr) return;
  size_ = std::min(bytes, bytes_.size());
  std::memcpy(bytes_.data(), data, size_);
}

absl::StatusOr<CmChannel> CmChannel::Create() {
  Handle<rdma_event_channel> channel(rdma_create_event_channel());
  if (channel == nullptr) {
    if (errno == ENODEV || errno == ENOSYS || errno == ENOENT) return NoDeviceStatus();
    return LastErrnoStatus("cannot create an RDMA event channel");
  }
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return LastErrnoStatus("cannot make the RDMA event channel non-blocking");
  }
  return CmChannel(std::move(channel));
}

std::optional<CmEvent> CmChannel::Next() {
  rdma_cm_event* event = nullptr;
  {
    const MutexLock lock(queue_pairs_of_ids);
    if (rdma_get_cm_event(channel_.get(), &event) != 0) return std::nullopt;
  }
  const rdma_conn_param& conn = event->param.conn;
  CmEvent copy{.type = event->event,
               .id = event->id,
               .context = event->id->context,
               .verbs = event->id->verbs,
               .status = event->status};
  copy.private_data = PrivateData(conn.private_data, conn.private_data_len);
  copy.responder_resources = conn.responder_resources;
  copy.initiator_depth = conn.initiator_depth;
  copy.rnr_retry_count = conn.rnr_retry_count;
  rdma_ack_cm_event(event);
  return copy;
}

}  // namespace gannet
