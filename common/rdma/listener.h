#ifndef GANNET_COMMON_RDMA_LISTENER_H_
#define GANNET_COMMON_RDMA_LISTENER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/address.h"
#include "common/rdma/cm_event.h"
#include "common/rdma/connection.h"
#include "common/rdma/handle.h"

namespace gannet {

// A count of retries after "receiver not ready" (RNR); any less is what it says.
inline constexpr uint8_t kRnrRetryForEver = 7;

// A peer that wants to connect. Destroying it without Accept or Reject refuses it without a reason.
//
// How often a device tries again to SEND to a peer that has no receive posted, its peer says: the
// count in the request governs what the accepting side sends, the one in the accept what the
// requesting side sends (rdma_connect(3), rdma_accept(3)).
class IncomingRequest {
 public:
  explicit IncomingRequest(const CmEvent& event)
      : id_(event.id),
        private_data_(event.private_data),
        responder_resources_(event.responder_resources),
        initiator_depth_(event.initiator_depth),
        rnr_retry_count_(event.rnr_retry_count) {}

  // Padded: see PrivateData. Hostile.
  std::span<const std::byte> private_data() const { return private_data_.bytes(); }
  // The device it came in through; another one than the server's is to be refused.
  ibv_context* verbs() const { return id_->verbs; }
  SocketAddress peer() const;
  // True if this side's device would try for ever to send to a peer that takes nothing.
  bool wants_endless_retries() const { return rnr_retry_count_ >= kRnrRetryForEver; }
  // Events of the connection that this becomes will carry the number `connection`, not 0, which is
  // to be given to BeginAccept too. To be called before the request goes to another thread than the
  // Listener's.
  void Name(uint64_t connection);

 private:
  friend class Listener;

  Handle<rdma_cm_id> id_;
  PrivateData private_data_;
  uint8_t responder_resources_;
  uint8_t initiator_depth_;
  uint8_t rnr_retry_count_;
};

// Something happened to a connection that was accepted, or wants to be.
struct ListenerEvent {
  enum class Type : uint8_t {
    kRequest,       // `request`
    kEstablished,   // the first message may be there before this event
    kDisconnected,  // the peer closed it, or it died; begin to close it
    kFailed,        // it never became established: `status`; begin to close it
    kDeviceRemoved,
  };
  Type type = Type::kRequest;
  std::optional<IncomingRequest> request;
  uint64_t connection = 0;  // as given to Accept
  absl::Status status;
};

// The passive side: a listening cm id and the events of every connection that it accepted.
//
//   while (auto event = listener->Poll()) switch (event->type) ...
//
// Connections are named by numbers of the caller's, which it never reuses: an event of a connection
// that is gone names nothing. Never blocks.
//
// Poll is for one thread. What comes of a request (the two steps of accepting, Reject, the
// connection and its destruction) may be another one's, so that a worker owns its connections.
// Destroy the connections first.
class Listener {
 public:
  // FailedPrecondition: the port is in use, no device has the address, no RDMA here. Port 0 takes
  // any. Requests beyond `backlog` that were not polled yet are refused without a reason; the
  // default is as many as Linux allows, so that a thousand clients may come at once.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(const SocketAddress& address,
                                                          int backlog = 1024);

  // With the port that was chosen.
  SocketAddress address() const;
  // nullptr: every device (a wildcard address).
  ibv_context* verbs() const { return id_->verbs; }
  int fd() const { return channel_.fd(); }

  // The next event, if there is one.
  std::optional<ListenerEvent> Poll();

  // Accepting has two steps, so that receives can be posted and the answer can name the queue pair:
  // BeginAccept makes the queue pair, FinishAccept sends the answer. `connection` is not 0.
  // After an error of FinishAccept the connection only remains to be destroyed.
  absl::StatusOr<std::unique_ptr<Connection>> BeginAccept(IncomingRequest request,
                                                          const ConnectionOptions& options,
                                                          uint64_t connection);
  absl::Status FinishAccept(Connection* connection, std::span<const std::byte> private_data);
  // The peer gets `private_data` as the reason.
  void Reject(IncomingRequest request, std::span<const std::byte> private_data);

 private:
  Listener(CmChannel channel, Handle<rdma_cm_id> id)
      : channel_(std::move(channel)), id_(std::move(id)) {}

  CmChannel channel_;
  Handle<rdma_cm_id> id_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_LISTENER_H_
