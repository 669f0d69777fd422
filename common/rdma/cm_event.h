#ifndef GANNET_COMMON_RDMA_CM_EVENT_H_
#define GANNET_COMMON_RDMA_CM_EVENT_H_

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "common/rdma/handle.h"

namespace gannet {

// Private data as it arrived: padded with zeroes to the transport's maximum, so its length says
// nothing about the message in it.
class PrivateData {
 public:
  PrivateData() = default;
  PrivateData(const void* data, size_t bytes);
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<std::byte, 256> bytes_{};
  size_t size_ = 0;
};

// An event of librdmacm, copied, and acknowledged.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  rdma_cm_id* id = nullptr;  // CONNECT_REQUEST: a new id, which the receiver owns
  // id->context, taken while the event still kept the id alive: unless the owner of this channel is
  // also who destroys its ids, the id itself may be gone by now.
  void* context = nullptr;
  int status = 0;
  // READs and atomics in flight that the peer wants served, and that it serves. Only in
  // CONNECT_REQUEST and ESTABLISHED.
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  // How often the peer wants this side's device to try again when the peer has no receive posted;
  // 7: for ever. Only in CONNECT_REQUEST; 0 from iWARP, which knows no such thing.
  uint8_t rnr_retry_count = 0;
  PrivateData private_data;
};

// The event channel. Next takes one event and acknowledges it at once, so that destroying an id,
// which waits for acknowledgements, cannot hang; and destroying an id drops its events that were
// not yet taken. An event may speak of an id that another thread destroyed since it was taken:
// look at its context, not at its id.
//
// Owner thread only. Ids of the channel may be destroyed by any one thread each.
class CmChannel {
 public:
  // FailedPrecondition: no RDMA here.
  static absl::StatusOr<CmChannel> Create();

  rdma_event_channel* get() const { return channel_.get(); }
  // Non-blocking; readable while an event is there.
  int fd() const { return channel_->fd; }
  std::optional<CmEvent> Next();

 private:
  explicit CmChannel(Handle<rdma_event_channel> channel) : channel_(std::move(channel)) {}

  Handle<rdma_event_channel> channel_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_CM_EVENT_H_
