// Accepts what the connection thread hands over. A request that is refused leaves nothing behind:
// it makes no session, so nobody else's has to make room for it. Atomics are allowed only to the
// queue pairs of clients that swap lock words themselves.

#include "server/rpc/acceptor.h"

#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/auth/handshake_mac.h"

namespace gannet {
namespace {

// The most queue pairs of one session. A client wants a few, for depth.
constexpr uint16_t kQueuePairsMax = 16;
// Enough for the headers of replies, but seldom for values.
constexpr uint32_t kInlineBytesWanted = 256;

template <class T>
std::span<const std::byte> BytesOf(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

std::string KeyText(const SessionKey* key) {
  if (key == nullptr) return "";
  return absl::StrCat(", key ", key->key.id, key->key.read_only ? " (may only read)" : "");
}

}  // namespace

void Acceptor::Reject(Arrival arrival, RejectCode code, std::string_view reason) {
  context_.counters.refused_connections.Add(1);
  LogRefusal(&context_.server.log.refused_connections, context_.now.boot,
             arrival.incoming.peer().ToString(), reason);
  const struct Reject reject = NewReject(code, reason);
  context_.server.listener.Reject(std::move(arrival.incoming), BytesOf(reject));
  context_.server.connection_ids.GiveBack(arrival.connection);
}

void Acceptor::Poll() {
  for (size_t i = 0; i < kArrivalsPerPoll && !arrivals_.empty(); ++i) {
    Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    OnArrival(std::move(arrival));
  }
}

void Acceptor::BeginClosing() {
  closing_ = true;
  for (Arrival& arrival : std::exchange(waiting_, {})) arrivals_.push_back(std::move(arrival));
}

// Destroys the request with the arrival.
void Acceptor::GiveUp(Arrival arrival) {
  context_.server.connection_ids.GiveBack(arrival.connection);
}

void Acceptor::OnArrival(Arrival arrival) {
  if (arrival.gone) return GiveUp(std::move(arrival));
  if (closing_) {
    return Reject(std::move(arrival), RejectCode::kShuttingDown, "the server is shutting down");
  }
  if (context_.rails[arrival.rail].lost) {
    return Reject(std::move(arrival), RejectCode::kTooManyConnections,
                  "this rail's device is lost; connect to another address of the server");
  }
  if (context_.server.standing != nullptr && !context_.server.standing->serves()) {
    return Reject(std::move(arrival), RejectCode::kNotPrimary,
                  context_.server.standing->elsewhere());
  }
  const ConnectRequest& request = arrival.request;
  if (request.qp_index >= kQueuePairsMax) {
    return Reject(std::move(arrival), RejectCode::kTooManyConnections,
                  absl::StrCat("a session has at most ", kQueuePairsMax, " queue pairs"));
  }
  if (request.session_token == 0) return Accept(std::move(arrival), nullptr);
  Session* session = context_.sessions.Find(request.session_token);
  if (session == nullptr) {
    return Reject(std::move(arrival), RejectCode::kSessionUnknown,
                  "the session expired, or is of an earlier run of the server");
  }
  if (!session->TakesKey(arrival.key)) {
    return Reject(std::move(arrival), RejectCode::kSessionUnknown, "the session is another key's");
  }
  if (request.qp_index == 0 && session->aside != nullptr) {
    // What its other connections still bring may be older than what this one does not bring, as the
    // client gave it up.
    session->aside.reset();
    closer_.CloseAllOf(session, "its client connects anew");
  }
  if (ServerConnection* old = context_.connections.FindQueuePair(session, request.qp_index)) {
    // The old queue pair must be gone before the client hears that it has a new one. Otherwise a
    // write or a lock from the old one could still arrive afterwards.
    closer_.Close(old, "its client connects anew");
    return Wait(std::move(arrival));
  }
  Accept(std::move(arrival), session);
}

void Acceptor::Wait(Arrival arrival) {
  for (Arrival& older : waiting_) {
    if (older.request.session_token == arrival.request.session_token &&
        older.request.qp_index == arrival.request.qp_index) {
      std::swap(older, arrival);
      return Reject(std::move(arrival), RejectCode::kTooManyConnections,
                    "a later request of the same session took its place");
    }
  }
  waiting_.push_back(std::move(arrival));
}

void Acceptor::EndWait(const ServerConnection& connection) {
  for (Arrival& arrival : waiting_) {
    if (arrival.request.session_token != connection.session->token() ||
        arrival.request.qp_index != connection.qp_index) {
      continue;
    }
    arrivals_.push_back(std::move(arrival));
    std::swap(arrival, waiting_.back());
    return waiting_.pop_back();
  }
}

ConnectionOptions Acceptor::OptionsForConnection(uint32_t rail) const {
  const RailQueues& queues = context_.rails[rail];
  ConnectionOptions options{.caps = context_.server.rails[rail].device.caps};
  options.queue_pair = {.pd = context_.server.rails[rail].pd,
                        .send_cq = queues.cq->get(),
                        .recv_cq = queues.cq->get(),
                        .srq = queues.receives->srq(),
                        .send_wrs = queues.send_places,
                        .inline_bytes = kInlineBytesWanted};
  return options;
}

Grant Acceptor::GrantFor(const ServerConnection& connection, bool resumed) const {
  Grant grant = context_.server.grant;
  grant.region_rkey = context_.server.rails[connection.rail].region_rkey;
  grant.index = context_.server.store.superblock().index;
  // The client READs by the grant of its first connection only.
  uint64_t& generation = connection.session->index_generation;
  if (connection.qp_index == 0 || generation == 0) generation = grant.index.generation;
  grant.connection_id = connection.holder;
  grant.session_token = connection.session->token();
  grant.session_id = connection.session->id();
  grant.credits = connection.session->credits();
  grant.resumed = resumed;
  grant.silence_ms = static_cast<uint16_t>(context_.options.silence_ns_max / kNsPerMs);
  grant.time_ms = context_.server.store.Now(context_.now.server_time).ms();
  if (context_.server.standing != nullptr) {
    grant.history = context_.server.standing->history();
    grant.primary_lease_ms = context_.server.standing->LeaseLeftMs(context_.server.boot.Now());
    // A grant has no room to say for which maps its lease holds. A heartbeat's reply has.
    if (context_.server.standing->partitions().leases_from() != 0) grant.primary_lease_ms = 0;
  }
  if (connection.session->read_only()) grant.features |= kGrantReadOnly;
  const bool lock_device = IsOfLockRail(connection);
  if (!lock_device && context_.server.lock_mode() == LockMode::kNicCas)
    grant.lock_mode = static_cast<uint8_t>(LockMode::kRpcLoopback);
  const bool told = lock_device && !connection.session->read_only();
  grant.lock_address = told ? context_.lock_place->address : 0;
  grant.lock_rkey = told ? context_.lock_place->rkey : 0;
  return grant;
}

bool Acceptor::Swaps(const ServerConnection& connection) const {
  return context_.server.lock_mode() == LockMode::kNicCas && IsOfLockRail(connection) &&
         !connection.session->read_only();
}

// Atomics of two devices are not atomic with each other, so only the clients of one swap.
bool Acceptor::IsOfLockRail(const ServerConnection& connection) const {
  return context_.lock_place &&
         context_.server.OneDevice(connection.rail, context_.lock_place->rail);
}

// A refused request leaves nothing behind. It makes no session, so no absent client's session has
// to make room for it.
void Acceptor::Accept(Arrival arrival, Session* session) {
  if (session == nullptr && !context_.sessions.HasRoom()) {
    return Reject(
        std::move(arrival), RejectCode::kTooManyConnections,
        absl::StrCat("the server serves ", context_.sessions.size(), " sessions already"));
  }
  const RailQueues& queues = context_.rails[arrival.rail];
  if (context_.connections.size() >= context_.options.connections_max ||
      !queues.cq->Reserve(queues.send_places).ok()) {
    return Reject(std::move(arrival), RejectCode::kTooManyConnections,
                  absl::StrCat("the server serves ", context_.connections.size(),
                               " connections already and has no room for more"));
  }
  if (!queues.receives->Reserve(uint64_t{context_.unanswered_max} *
                                (context_.connections.size() + 1)))
    context_.rails[arrival.rail].lost = true;
  const std::string peer = arrival.incoming.peer().ToString();
  auto rdma = context_.server.listener.BeginAccept(
      std::move(arrival.incoming), OptionsForConnection(arrival.rail), arrival.name);
  if (!rdma.ok()) {
    context_.counters.refused_connections.Add(1);
    LogRefusal(&context_.server.log.refused_connections, context_.now.boot, peer,
               std::string(rdma.status().message()));
    queues.cq->Release(queues.send_places);
    return context_.server.connection_ids.GiveBack(arrival.connection);
  }
  const bool resumed = session != nullptr;
  ServerConnection* connection = Add(arrival, session, *std::move(rdma));
  connection->swaps = Swaps(*connection);
  if (connection->qp_index == 0) TakeLocksOver(connection);
  context_.server.connection_ids.Describe(connection->id, connection->session->id(), peer);
  Grant grant = GrantFor(*connection, resumed);
  grant.version = connection->version;
  if (arrival.key != nullptr) SignGrant(arrival.key->key, arrival.request, &grant);
  // Only clients that swap lock words themselves get a queue pair that takes atomics. From others
  // the device refuses them, whatever addresses and rkeys they know.
  const PeerRights rights = connection->swaps ? PeerRights::kReadAtomic : PeerRights::kRead;
  if (absl::Status status =
          context_.server.listener.FinishAccept(connection->rdma.get(), BytesOf(grant), rights);
      !status.ok()) {
    const std::string why(status.message());
    return closer_.Close(connection, why);
  }
  context_.server.log.connections.Came(
      context_.now.boot,
      absl::StrCat("session ", connection->session->id(), resumed ? " resumed" : "",
                   ": connection ", connection->id, " from ", peer, ", queue pair ",
                   connection->qp_index, KeyText(arrival.key.get())));
}

// A late swap of a client's own NIC is told from one of the next connection by the id alone. So
// locks are kept only until a client swaps.
void Acceptor::TakeLocksOver(ServerConnection* connection) {
  const uint32_t holder = context_.kept_holders.Take(connection->session->token());
  if (holder == 0) return;
  connection->holder = holder;
  connection->keeps_locks = !connection->swaps;
}

ServerConnection* Acceptor::Add(const Arrival& arrival, Session* session,
                                std::unique_ptr<Connection> rdma) {
  if (session == nullptr) {
    session = context_.sessions.Create(context_.now.boot, arrival.key);
  }
  const uint32_t id = arrival.connection;
  auto connection =
      std::make_unique<ServerConnection>(id, arrival.request.qp_index, arrival.rail, session,
                                         context_.rails[arrival.rail].send_places, std::move(rdma));
  connection->name = arrival.name;
  connection->version = ChosenVersion(arrival.request).value_or(kProtocolVersionMax);
  connection->since = context_.now.boot;
  connection->heard = connection->untaken_since = context_.now.boot;
  ServerConnection* raw = context_.connections.Add(std::move(connection));
  context_.server.rail_board.Came(arrival.rail);
  context_.sessions.Attach(session);
  context_.timers.TickBy(silence_.Next());
  return raw;
}

void Acceptor::OnNotice(const Notice& notice) {
  ServerConnection* connection = context_.connections.Find(ConnectionOfName(notice.name));
  if (connection == nullptr || connection->name != notice.name) {
    if (notice.type != Notice::Type::kGone) return;
    for (Arrival& arrival : arrivals_) arrival.gone |= arrival.name == notice.name;
    for (Arrival& arrival : waiting_) arrival.gone |= arrival.name == notice.name;
    return;
  }
  switch (notice.type) {
    case Notice::Type::kEstablished:
      connection->heard = context_.now.boot;
      connection->session->established = true;
      break;
    case Notice::Type::kGone:
      closer_.Close(connection, "disconnected");
      break;
    case Notice::Type::kIndexChanged:
    case Notice::Type::kKeysAnnounced:
    case Notice::Type::kRailLost:
      break;  // of no connection
  }
}

}  // namespace gannet
