#ifndef GANNET_COMMON_RDMA_LISTENER_H_
#define GANNET_COMMON_RDMA_LISTENER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/address.h"
#include "common/rdma/cm_event.h"
#include "common/rdma/connection.h"
#include "common/rdma/handle.h"

namespace gannet {

// The count of retries after "receiver not ready" (RNR) that means for ever.
inline constexpr uint8_t kRnrRetryForEver = 7;

// A peer's request to connect. Destroying it without Accept or Reject refuses it without a reason.
//
// A device may find that its peer has no receive posted. Then the peer has decided how often the
// device tries again: the count in the request governs the accepting side's sends, the count in the
// accept governs those of the requesting side (rdma_connect(3), rdma_accept(3)).
class IncomingRequest {
 public:
  explicit IncomingRequest(const CmEvent& event)
      : id_(event.id),
        private_data_(event.private_data),
        responder_resources_(event.responder_resources),
        initiator_depth_(event.initiator_depth),
        rnr_retry_count_(event.rnr_retry_count) {}

  // Padded (see PrivateData), and may be hostile.
  std::span<const std::byte> private_data() const { return private_data_.bytes(); }
  // The device through which the request came in. A server must refuse it if that is none of its
  // own.
  ibv_context* verbs() const { return id_->verbs; }
  SocketAddress peer() const;
  // The address that the peer connected to.
  SocketAddress local() const;
  // Returns true if this side's device would try for ever to send to a peer that takes nothing.
  bool wants_endless_retries() const { return rnr_retry_count_ >= kRnrRetryForEver; }
  // Numbers the future connection. Its events carry this number, which is not 0. Pass the same
  // number to BeginAccept. Call it before the request goes to another thread than the Listener's.
  void Name(uint64_t connection);

 private:
  friend class Listener;

  Handle<rdma_cm_id> id_;
  PrivateData private_data_;
  uint8_t responder_resources_;
  uint8_t initiator_depth_;
  uint8_t rnr_retry_count_;
};

// An event of a connection that was accepted, or of a request to connect.
struct ListenerEvent {
  enum class Type : uint8_t {
    kRequest,        // `request`
    kEstablished,    // the first message may arrive before this event
    kDisconnected,   // the peer closed it or died; begin to close it
    kFailed,         // it was never established, see `status`; begin to close it
    kDeviceRemoved,  // of the address, or of the connection; `verbs` is which
  };
  Type type = Type::kRequest;
  std::optional<IncomingRequest> request;
  uint64_t connection = 0;  // as given to Accept
  absl::Status status;
  const ibv_context* verbs = nullptr;
};

// The passive side: a listening cm id for each address, and the events of every connection that
// they accepted.
//
//   while (auto event = listener->Poll()) switch (event->type) ...
//
// The caller names connections by numbers that it never reuses, so a late event of a connection
// that is gone matches none. Never blocks.
//
// One thread calls Poll. Other threads may accept or reject a request, and own and destroy the
// connection, so a worker can own its connections. Destroy the connections before the Listener.
class Listener {
 public:
  // Listens. Port 0 takes any free port. FailedPrecondition: the port is in use, no device has the
  // address, or this machine has no RDMA. If more than `backlog` requests of an address wait for
  // Poll, further ones are refused without a reason. The default is the most that Linux allows, so
  // that a thousand clients may come at once.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(std::span<const SocketAddress> addresses,
                                                          int backlog = 1024);
  static absl::StatusOr<std::unique_ptr<Listener>> Create(const SocketAddress& address) {
    return Create(std::span(&address, 1));
  }

  // The address of this number, with the port that was chosen.
  SocketAddress address(size_t i = 0) const;
  // Its device, or nullptr if it is of every device (a wildcard address).
  ibv_context* verbs(size_t i) const { return ids_[i]->verbs; }
  uint8_t port(size_t i) const { return ids_[i]->port_num; }  // of that device
  int fd() const { return channel_.fd(); }

  // The next event, if there is one.
  std::optional<ListenerEvent> Poll();

  // Accepting has two steps, so that the answer can name the queue pair. BeginAccept makes it and
  // posts its receives, FinishAccept opens it and sends the answer. The queue pair gives the peer
  // `rights` and no others, from its first packet on. REQUIRES: `connection` is not 0. After an
  // error of FinishAccept, drain the connection and destroy it.
  absl::StatusOr<std::unique_ptr<Connection>> BeginAccept(IncomingRequest request,
                                                          const ConnectionOptions& options,
                                                          uint64_t connection);
  absl::Status FinishAccept(Connection* connection, std::span<const std::byte> private_data,
                            PeerRights rights);
  // Refuses the request. The peer gets `private_data` as the reason.
  void Reject(IncomingRequest request, std::span<const std::byte> private_data);

 private:
  explicit Listener(CmChannel channel) : channel_(std::move(channel)) {}

  CmChannel channel_;
  std::vector<Handle<rdma_cm_id>> ids_;  // that listen
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_LISTENER_H_
