#ifndef GANNET_COMMON_RDMA_MULTICAST_H_
#define GANNET_COMMON_RDMA_MULTICAST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/address.h"
#include "common/rdma/cm_event.h"
#include "common/rdma/handle.h"
#include "common/rdma/memory.h"

namespace gannet {

// A member of a multicast group: sends datagrams to all members of it, and receives what others
// send. A datagram may be lost, come twice, or come from anybody.
//
// One owner thread. All calls may block as long as they say.
class MulticastMember {
 public:
  static constexpr size_t kDatagramBytesMax = 1024;

  // Joins the group that is the address, 239.1.2.3 for example, by the device that leads there; if
  // `local` is given, by the one that has that address. DeadlineExceeded: joining took longer than
  // `timeout_ns`. Other errors: no RDMA device leads there, or it has no multicast.
  static absl::StatusOr<std::unique_ptr<MulticastMember>> Join(
      const SocketAddress& group, const std::optional<SocketAddress>& local, int64_t timeout_ns);
  ~MulticastMember();
  MulticastMember(const MulticastMember&) = delete;
  MulticastMember& operator=(const MulticastMember&) = delete;

  // Sends, and waits until the device took it. REQUIRES: at most kDatagramBytesMax.
  absl::Status Send(std::span<const std::byte> datagram);
  // Returns the next datagram, valid until the next call, or nullopt if none came for `wait_ns`.
  absl::StatusOr<std::optional<std::span<const std::byte>>> Receive(int64_t wait_ns);

 private:
  static constexpr uint32_t kReceives = 64;
  static constexpr size_t kHeaderBytes = 40;  // a datagram begins with a GRH, or room for it
  static constexpr size_t kSlotBytes = kHeaderBytes + kDatagramBytesMax;

  struct DestroyAddressHandle {
    void operator()(ibv_ah* it) const { ibv_destroy_ah(it); }
  };

  MulticastMember(CmChannel channel, const SocketAddress& group)
      : channel_(std::move(channel)), group_(group) {}
  absl::Status Resolve(const std::optional<SocketAddress>& local, int64_t deadline_ns);
  absl::Status MakeQueuePair();
  absl::Status Enter(int64_t deadline_ns);
  // Waits for an event of this type. Returns where the group is, if it tells that. The errors say
  // what came instead.
  absl::StatusOr<rdma_ud_param> Await(rdma_cm_event_type type, int64_t deadline_ns);
  absl::Status PostReceive(uint32_t slot);

  CmChannel channel_;
  SocketAddress group_;
  Handle<ibv_pd> pd_;
  Handle<ibv_comp_channel> arrivals_;
  Handle<ibv_cq> send_cq_;
  Handle<ibv_cq> receive_cq_;
  RegisteredBuffer buffer_;  // a slot for each receive, and one to send from
  Handle<rdma_cm_id> id_;
  std::unique_ptr<ibv_ah, DestroyAddressHandle> to_all_;
  uint32_t queue_pair_ = 0;
  uint32_t queue_key_ = 0;
  bool joined_ = false;
  std::optional<uint32_t> lent_;  // the slot that Receive returned last
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_MULTICAST_H_
