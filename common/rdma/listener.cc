#include "common/rdma/listener.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/protocol/limits.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// The context of an accepted id is the number that the caller gave its connection.
uint64_t ConnectionNumber(const CmEvent& event) {
  return reinterpret_cast<uint64_t>(event.context);
}

ListenerEvent FailedEvent(const CmEvent& event) {
  ListenerEvent result{.type = ListenerEvent::Type::kFailed};
  result.status = absl::UnavailableError(
      absl::StrCat("the peer did not complete the connection: ", rdma_event_str(event.type),
                   ", status ", event.status));
  return result;
}

unsigned QueuePairFlags(PeerRights rights) {
  switch (rights) {
    case PeerRights::kRead:
      return IBV_ACCESS_REMOTE_READ;
    case PeerRights::kReadAtomic:
      return IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    case PeerRights::kAll:
      return IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE;
  }
  return 0;
}

// Old kernels set these bits for RoCE's addresses, and InfiniBand refuses them. librdmacm clears
// them in the same way.
constexpr int kRoceAttributes = 0xe00000;

bool IsInfiniBand(const rdma_cm_id& id) {
  ibv_port_attr port{};
  return ibv_query_port(id.verbs, id.port_num, &port) == 0 &&
         port.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

// Moves the queue pair to a state as librdmacm would, but with less: the depth and the rights of
// this connection.
absl::Status Move(Connection* connection, ibv_qp_state state, PeerRights rights) {
  rdma_cm_id* const id = connection->id();
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0) {
    return LastErrnoStatus("cannot prepare a queue pair");
  }
  attributes.qp_access_flags &= QueuePairFlags(rights);
  attributes.max_dest_rd_atomic = connection->depth().served;
  attributes.max_rd_atomic = connection->depth().issued;
  if (state == IBV_QPS_RTR && IsInfiniBand(*id)) mask &= ~kRoceAttributes;
  return ErrnoStatus(ibv_modify_qp(connection->qp(), &attributes, mask),
                     "cannot move a queue pair to its next state");
}

// Calls rdma_accept for a queue pair that is ready to send. rdma_accept would move a queue pair
// that it sees on the id itself, and give the peer all rights: REMOTE_WRITE, READ and atomics. To
// take rights away afterwards would be too late, because the peer has the answer then.
absl::Status AcceptReady(Connection* connection, rdma_conn_param* param) {
  rdma_cm_id* const id = connection->id();
  ibv_qp* const qp = std::exchange(id->qp, nullptr);
  param->qp_num = qp->qp_num;
  param->srq = qp->srq != nullptr;
  const int result = rdma_accept(id, param);
  const absl::Status status =
      result == 0 ? absl::OkStatus() : LastErrnoStatus("cannot accept a connection");
  id->qp = qp;
  return status;
}

}  // namespace

void IncomingRequest::Name(uint64_t connection) {
  GANNET_CHECK(connection != 0, "0 names no connection");
  id_->context = reinterpret_cast<void*>(connection);
}

SocketAddress IncomingRequest::peer() const {
  return SocketAddress(*rdma_get_peer_addr(id_.get()));
}

SocketAddress IncomingRequest::local() const {
  return SocketAddress(*rdma_get_local_addr(id_.get()));
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(std::span<const SocketAddress> addresses,
                                                           int backlog) {
  GANNET_ASSIGN_OR_RETURN(CmChannel channel, CmChannel::Create());
  std::unique_ptr<Listener> listener(new Listener(std::move(channel)));
  for (const SocketAddress& address : addresses) {
    rdma_cm_id* raw = nullptr;
    if (rdma_create_id(listener->channel_.get(), &raw, nullptr, RDMA_PS_TCP) != 0) {
      return LastErrnoStatus("cannot create a listening RDMA id");
    }
    rdma_cm_id* const id = listener->ids_.emplace_back(raw).get();
    SocketAddress bind_to = address;
    const std::string what = absl::StrCat("cannot listen on ", address.ToString());
    if (rdma_bind_addr(id, bind_to.get()) != 0) return LastErrnoStatus(what);
    if (rdma_listen(id, backlog) != 0) return LastErrnoStatus(what);
  }
  return listener;
}

SocketAddress Listener::address(size_t i) const {
  return SocketAddress(*rdma_get_local_addr(ids_[i].get()));
}

std::optional<ListenerEvent> Listener::Poll() {
  while (std::optional<CmEvent> event = channel_.Next()) {
    ListenerEvent result;
    switch (event->type) {
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        result.type = ListenerEvent::Type::kRequest;
        result.request.emplace(*event);
        return result;
      case RDMA_CM_EVENT_ESTABLISHED:
        result.type = ListenerEvent::Type::kEstablished;
        break;
      case RDMA_CM_EVENT_DISCONNECTED:
        result.type = ListenerEvent::Type::kDisconnected;
        break;
      case RDMA_CM_EVENT_CONNECT_ERROR:
      case RDMA_CM_EVENT_UNREACHABLE:
      case RDMA_CM_EVENT_REJECTED:
        result = FailedEvent(*event);
        break;
      case RDMA_CM_EVENT_DEVICE_REMOVAL:
        result.type = ListenerEvent::Type::kDeviceRemoved;
        result.connection = ConnectionNumber(*event);
        result.verbs = event->verbs;
        return result;
      default:  // TIMEWAIT_EXIT, ADDR_CHANGE: nothing to do
        continue;
    }
    result.connection = ConnectionNumber(*event);
    if (result.connection != 0) return result;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Connection>> Listener::BeginAccept(IncomingRequest request,
                                                                  const ConnectionOptions& options,
                                                                  uint64_t connection) {
  // Do not touch a request that already has its name: the Listener's thread may be reading it.
  if (request.id_->context != reinterpret_cast<void*>(connection)) request.Name(connection);
  SetAckTimeout(request.id_.get());
  const ReadDepth depth{
      .served = std::min(request.responder_resources_, options.caps.max_qp_rd_atom),
      .issued = std::min(request.initiator_depth_, options.caps.max_qp_init_rd_atom)};
  auto made = std::make_unique<Connection>(std::move(request.id_), depth);
  GANNET_RETURN_IF_ERROR(made->MakeQueuePair(options));
  return made;
}

absl::Status Listener::FinishAccept(Connection* connection, std::span<const std::byte> private_data,
                                    PeerRights rights) {
  GANNET_CHECK(private_data.size() <= kAcceptPrivateBytesMax, "too much private data");
  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.responder_resources = connection->depth().served;
  param.initiator_depth = connection->depth().issued;
  // Clients' devices try for ever. Their requests share one receive queue, and may wait for each
  // other for as long as the worker does not run. Any bound breaks connections, and with them
  // locks, on a busy machine. Still nobody waits for a dead server: lost packets are governed by
  // retry_count, and a client that hears nothing for the time of silence closes the connection.
  param.rnr_retry_count = kRnrRetryForEver;
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    GANNET_RETURN_IF_ERROR(Move(connection, state, rights));
  }
  GANNET_RETURN_IF_ERROR(AcceptReady(connection, &param));
  connection->Open();
  SetRnrTimer(connection->qp());
  return absl::OkStatus();
}

void Listener::Reject(IncomingRequest request, std::span<const std::byte> private_data) {
  GANNET_CHECK(private_data.size() <= kRejectPrivateBytesMax, "too much private data");
  // This fails if the peer went away meanwhile. Then it needs no reason any more.
  rdma_reject(request.id_.get(), private_data.data(), static_cast<uint8_t>(private_data.size()));
}

}  // namespace gannet
