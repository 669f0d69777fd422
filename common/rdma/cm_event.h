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

// Private data as it arrived. It is padded with zeroes to the transport's maximum, so its length
// says nothing about the message in it.
class PrivateData {
 public:
  PrivateData() = default;
  PrivateData(const void* data, size_t bytes);
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<std::byte, 256> bytes_{};
  size_t size_ = 0;
};

// A copy of an event of librdmacm, which is already acknowledged.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  rdma_cm_id* id = nullptr;  // CONNECT_REQUEST: a new id, whose owner is the receiver
  // id->context, taken while the unacknowledged event still kept the id alive. The id itself may be
  // gone by now, unless the owner of this channel also destroys its ids.
  void* context = nullptr;
  ibv_context* verbs = nullptr;  // the id's device, taken then too; nullptr: it has none
  int status = 0;
  // How many READs and atomics in flight the peer wants this side to serve, and how many it serves
  // itself. Only in CONNECT_REQUEST and ESTABLISHED.
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  // How often the peer wants this side's device to try again while the peer has no receive posted;
  // 7: for ever. Only in CONNECT_REQUEST. iWARP knows no such count and gives 0.
  uint8_t rnr_retry_count = 0;
  PrivateData private_data;
};

// The event channel. Next takes one event and acknowledges it at once. Destroying an id waits for
// acknowledgements, so it cannot hang. It also drops the id's events that were not taken yet. An
// event may name an id that another thread has destroyed since: look at its context, not at its id.
//
// Owner thread only. Each id of the channel may be destroyed by any one thread.
class CmChannel {
 public:
  // FailedPrecondition: this machine has no RDMA.
  static absl::StatusOr<CmChannel> Create();

  rdma_event_channel* get() const { return channel_.get(); }
  // A non-blocking descriptor that is readable while there is an event.
  int fd() const { return channel_->fd; }
  std::optional<CmEvent> Next();

 private:
  explicit CmChannel(Handle<rdma_event_channel> channel) : channel_(std::move(channel)) {}

  Handle<rdma_event_channel> channel_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_CM_EVENT_H_
