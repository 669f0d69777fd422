#ifndef SOFTVERBS_CM_CM_ID_H_
#define SOFTVERBS_CM_CM_ID_H_

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "softverbs/base/unique_fd.h"
#include "softverbs/cm/acquired_device.h"
#include "softverbs/cm/cm_address.h"
#include "softverbs/cm/event_channel.h"
#include "softverbs/cm/peer_socket.h"
#include "softverbs/cm/state.h"
#include "softverbs/cm/wire.h"
#include "softverbs/nic/loop.h"

namespace softverbs::cm {

class ListeningSocket;

inline constexpr uint8_t kHopLimit = 64;  // of every path

// The state of an id. In this picture, the active side goes down the left column, the passive side
// down the right one. kClosed is the end of both.
//
//   kIdle -> kBound -> kListening
//   kAddressResolved                   (a connection request arrives: a new id)
//   kRouteResolved
//   kRequestSent   ---- REQ ---->      kRequestReceived
//   kReplyReceived <--- REP -----      kReplySent
//   kEstablished   ---- RTU ---->      kEstablished
//   kDisconnectSent --- DREQ --->      kDisconnectReceived     (or the other way round)
//   kTimeWait      <--- DREP ----      kTimeWait
//
// A datagram id does not connect; it resolves a service (SIDR). After a REQ and a REP of other
// names both ends are kResolved, and neither hears from the other any more.
enum class IdState {
  kIdle,
  kBound,
  kAddressResolved,
  kRouteResolved,
  kListening,
  kRequestSent,
  kRequestReceived,
  kReplyReceived,
  kReplySent,
  kEstablished,
  kDisconnectSent,
  kDisconnectReceived,
  kTimeWait,
  kResolved,
  kClosed,  // refused, failed, or past kTimeWait
};

// What the two sides agreed on, from this side's view.
struct Agreement {
  uint8_t responder_resources = 0;  // READs and atomics that the peer may have in flight here
  uint8_t initiator_depth = 0;      // and that we may have in flight there
  bool remote_reads = false;        // whether the peer said that it would send any
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  uint32_t local_psn = 0;
  uint32_t remote_psn = 0;
  uint32_t remote_qp_num = 0;
};

// A multicast group that an id joined.
struct MulticastMembership {
  Address address;
  bool send_only = false;
  bool attached = false;  // the id's queue pair
  void* context = nullptr;
};

struct FreeInfo {
  void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
};
using Info = std::unique_ptr<rdma_addrinfo, FreeInfo>;

class CmId;

// Passes messages that arrive on an id's socket to the steps of the protocol (dispatch.cc). It
// cannot be a base of CmId, which must lie at the address of its rdma_cm_id.
class PeerReceiver final : public PeerOwner {
 public:
  explicit PeerReceiver(CmId* id) : id_(id) {}
  void OnMessage(std::shared_ptr<PeerSocket> peer, const Message& message)
      SV_REQUIRES(state_mutex) override;
  void OnEnd(const std::shared_ptr<PeerSocket>& peer) SV_REQUIRES(state_mutex) override;

 private:
  CmId* const id_;
};

// An rdma_cm_id. The public fields belong to the application's threads, as with rdma-core: they
// are written only inside calls on the id and inside rdma_get_cm_event. Everything below is
// guarded by State::mutex unless it says otherwise.
class CmId : public rdma_cm_id {
 public:
  // Enters the id into State::ids. A `sync` id owns its channel, and every call on it waits for its
  // event. REQUIRES: State::mutex is held.
  CmId(std::shared_ptr<EventChannel> events, bool sync, void* context, rdma_port_space ps,
       ibv_qp_type type);
  ~CmId();
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;

  // Returns null with errno EINVAL for a null pointer, or for an id inherited through fork().
  static CmId* From(rdma_cm_id* id);
  // Returns the id with this handle, or null. REQUIRES: State::mutex is held.
  static CmId* Lookup(uint64_t handle) SV_REQUIRES(state_mutex);

  // Makes an event about this id, on its account, with no parameters.
  std::unique_ptr<QueuedEvent> NewEvent(rdma_cm_event_type type, int status);
  // Queues the event where this id's events go, and counts it on its account. REQUIRES, both: mutex
  // held.
  void QueueEvent(std::unique_ptr<QueuedEvent> event) SV_REQUIRES(state_mutex);
  void PushEvent(rdma_cm_event_type type, int status) SV_REQUIRES(state_mutex);

  // Sends on the socket, if there is one. REQUIRES: mutex held.
  bool Send(const Message& message) SV_REQUIRES(state_mutex);
  // Runs `fn(id)` on the loop thread after `delay_ns` with the mutex held, unless the id is gone
  // by then. REQUIRES: mutex held.
  void RunLater(int64_t delay_ns, void (*fn)(CmId*)) SV_REQUIRES(state_mutex);

  // Takes the device of the id's own address once: fills in verbs, pd, port_num, pkey and limits.
  // Returns 0 or an errno. REQUIRES: mutex not held.
  int BindDevice();

  // Returns whether there is or was a connection, or an attempt at one.
  bool Connecting() const SV_REQUIRES(state_mutex) { return state >= IdState::kRequestSent; }

  // Returns whether the id is of RDMA_PS_UDP.
  bool IsDatagram() const { return qp_type == IBV_QPT_UD; }

  const uint64_t handle;           // never reused; immutable
  const uint32_t fork_generation;  // immutable
  IdState state SV_GUARDED_BY(state_mutex) = IdState::kIdle;

  std::shared_ptr<EventChannel> events SV_GUARDED_BY(state_mutex);
  // Events queued or delivered and not yet acknowledged.
  int outstanding SV_GUARDED_BY(state_mutex) = 0;
  uint64_t acknowledged_count SV_GUARDED_BY(state_mutex) = 0;
  Condition acknowledged;

  // Addressing.
  Address local SV_GUARDED_BY(state_mutex);
  Address remote SV_GUARDED_BY(state_mutex);
  bool reuse_address SV_GUARDED_BY(state_mutex) = false;
  std::optional<bool> v6_only SV_GUARDED_BY(state_mutex);
  std::optional<uint8_t> ack_timeout SV_GUARDED_BY(state_mutex);
  // The name of `local`, until the id listens or connects.
  UniqueFd port_holder SV_GUARDED_BY(state_mutex);

  std::shared_ptr<ListeningSocket> listener SV_GUARDED_BY(state_mutex);
  std::shared_ptr<PeerSocket> peer SV_GUARDED_BY(state_mutex);
  PeerReceiver receiver{this};  // the socket's owner
  // The listener of a request that the application has not seen yet.
  CmId* parent SV_GUARDED_BY(state_mutex) = nullptr;

  Agreement agreed SV_GUARDED_BY(state_mutex);
  // The REQ, which may have to wait for the listener.
  std::optional<Message> request SV_GUARDED_BY(state_mutex);
  int listener_looks_left SV_GUARDED_BY(state_mutex) = 0;  // for one that is missing
  int unanswered_dials SV_GUARDED_BY(state_mutex) = 0;     // to another host
  // From RunLater, cancelled by Shutdown.
  std::vector<Loop::Timer> timers SV_GUARDED_BY(state_mutex);
  std::vector<MulticastMembership> memberships SV_GUARDED_BY(state_mutex);
  // The application was told CONNECT_ERROR, and nothing after it.
  bool connect_error SV_GUARDED_BY(state_mutex) = false;
  ibv_ece local_ece SV_GUARDED_BY(state_mutex) = {};
  ibv_ece remote_ece SV_GUARDED_BY(state_mutex) = {};
  // From rdma_resolve_addrinfo, until rdma_query_addrinfo.
  Info resolved SV_GUARDED_BY(state_mutex);

  // Owned by the application's threads, like the public fields.
  bool sync;
  bool holds_device = false;  // since BindDevice
  int device_number = 0;      // of that device
  DeviceLimits limits;
  std::optional<ibv_qp_init_attr> endpoint_qp;  // of a passive rdma_create_ep
  std::vector<uint8_t> endpoint_data;           // ai_connect of an active one
};

// Turns an errno into the result of an rdma_* call: -1 with errno set, or 0 for success.
int Result(int error);

// Implements rdma_create_id with an explicit queue pair type. A null channel makes a synchronous
// id. Returns 0 or an errno.
int CreateId(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space ps,
             ibv_qp_type type);

// For a synchronous id, waits for the event that completes the call just made. Otherwise returns 0.
int Complete(CmId* id);

// Does everything that rdma_destroy_id does, except waiting until the id's events are acknowledged.
// REQUIRES: mutex not held.
void Shutdown(CmId* id);
// Shuts down and deletes an id that the application never saw.
void DestroyUnseen(CmId* id);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_CM_ID_H_
