#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/auth/handshake_mac.h"
#include "glog/logging.h"
#include "server/rpc/work_kind.h"
#include "server/rpc/worker.h"

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

void Worker::Reject(Arrival arrival, RejectCode code, std::string_view reason) {
  counters_.refused_connections.Add(1);
  node_->LogRefusal(&node_->log->refused_connections, now_.monotonic_ns,
                    arrival.incoming.peer().ToString(), reason);
  const struct Reject reject = NewReject(code, reason);
  node_->listener->Reject(std::move(arrival.incoming), BytesOf(reject));
  node_->connection_ids->GiveBack(arrival.connection);
}

// Destroys the request with the arrival.
void Worker::GiveUp(Arrival arrival) { node_->connection_ids->GiveBack(arrival.connection); }

void Worker::OnArrival(Arrival arrival) {
  if (arrival.gone) return GiveUp(std::move(arrival));
  if (closing_) {
    return Reject(std::move(arrival), RejectCode::kShuttingDown, "the server is shutting down");
  }
  const ConnectRequest& request = arrival.request;
  if (request.qp_index >= kQueuePairsMax) {
    return Reject(std::move(arrival), RejectCode::kTooManyConnections,
                  absl::StrCat("a session has at most ", kQueuePairsMax, " queue pairs"));
  }
  if (request.session_token == 0) return Accept(std::move(arrival), nullptr);
  Session* session = sessions_.Find(request.session_token);
  if (session == nullptr) {
    return Reject(std::move(arrival), RejectCode::kSessionUnknown,
                  "the session expired, or is of an earlier run of the server");
  }
  if (session->key != arrival.key) {
    return Reject(std::move(arrival), RejectCode::kSessionUnknown, "the session is another key's");
  }
  if (ServerConnection* old = FindQueuePair(session, request.qp_index)) {
    // The old queue pair must be gone before the client hears that it has a new one. Otherwise a
    // write or a lock from the old one could still arrive afterwards.
    CloseConnection(old, "its client connects anew");
    return Wait(std::move(arrival));
  }
  Accept(std::move(arrival), session);
}

void Worker::Wait(Arrival arrival) {
  for (Arrival& older : waiting_arrivals_) {
    if (older.request.session_token == arrival.request.session_token &&
        older.request.qp_index == arrival.request.qp_index) {
      std::swap(older, arrival);
      return Reject(std::move(arrival), RejectCode::kTooManyConnections,
                    "a later request of the same session took its place");
    }
  }
  waiting_arrivals_.push_back(std::move(arrival));
}

void Worker::EndWait(const ServerConnection& connection) {
  for (Arrival& arrival : waiting_arrivals_) {
    if (arrival.request.session_token != connection.session->token() ||
        arrival.request.qp_index != connection.qp_index) {
      continue;
    }
    arrivals_.push_back(std::move(arrival));
    std::swap(arrival, waiting_arrivals_.back());
    return waiting_arrivals_.pop_back();
  }
}

ConnectionOptions Worker::OptionsForConnection() const {
  ConnectionOptions options{.caps = node_->device.caps};
  options.queue_pair = {.pd = node_->pd,
                        .send_cq = cq_->get(),
                        .recv_cq = cq_->get(),
                        .srq = receives_->srq(),
                        .send_wrs = send_places_,
                        .inline_bytes = kInlineBytesWanted};
  return options;
}

Grant Worker::GrantFor(const ServerConnection& connection, bool resumed) const {
  Grant grant = node_->grant;
  grant.index = node_->store->superblock().index;
  // The client READs by the grant of its first connection only.
  uint64_t& generation = connection.session->index_generation;
  if (connection.qp_index == 0 || generation == 0) generation = grant.index.generation;
  grant.connection_id = connection.id;
  grant.session_token = connection.session->token();
  grant.session_id = connection.session->id();
  grant.credits = connection.session->credits();
  grant.resumed = resumed;
  grant.silence_ms = static_cast<uint16_t>(options_.silence_ns_max / kNsPerMs);
  grant.time_ms = store_->NowMs(now_.wall_ms);
  if (connection.session->read_only()) {
    grant.features |= kGrantReadOnly;
    grant.lock_address = 0;
    grant.lock_rkey = 0;
  }
  return grant;
}

// Only clients that swap lock words themselves get a queue pair that takes atomics. From others the
// device refuses them, whatever addresses and rkeys they know.
PeerRights Worker::RightsOf(const Session& session) const {
  const bool swaps = node_->lock_mode() == LockMode::kNicCas && !session.read_only();
  return swaps ? PeerRights::kReadAtomic : PeerRights::kRead;
}

// A refused request leaves nothing behind. It makes no session, so no absent client's session has
// to make room for it.
void Worker::Accept(Arrival arrival, Session* session) {
  if (session == nullptr && !sessions_.HasRoom()) {
    return Reject(std::move(arrival), RejectCode::kTooManyConnections,
                  absl::StrCat("the server serves ", sessions_.size(), " sessions already"));
  }
  if (connections_.size() >= options_.connections_max || !cq_->Reserve(send_places_).ok()) {
    return Reject(std::move(arrival), RejectCode::kTooManyConnections,
                  absl::StrCat("the server serves ", connections_.size(),
                               " connections already and has no room for more"));
  }
  if (!receives_->Reserve(uint64_t{unanswered_max_} * (connections_.size() + 1))) failed_ = true;
  const std::string peer = arrival.incoming.peer().ToString();
  auto rdma = node_->listener->BeginAccept(std::move(arrival.incoming), OptionsForConnection(),
                                           arrival.name);
  if (!rdma.ok()) {
    counters_.refused_connections.Add(1);
    node_->LogRefusal(&node_->log->refused_connections, now_.monotonic_ns, peer,
                      std::string(rdma.status().message()));
    cq_->Release(send_places_);
    return node_->connection_ids->GiveBack(arrival.connection);
  }
  const bool resumed = session != nullptr;
  ServerConnection* connection = Add(arrival, session, *std::move(rdma));
  node_->connection_ids->Describe(connection->id, connection->session->id(), peer);
  Grant grant = GrantFor(*connection, resumed);
  if (arrival.key != nullptr) SignGrant(arrival.key->key, arrival.request, &grant);
  if (absl::Status status = node_->listener->FinishAccept(connection->rdma.get(), BytesOf(grant),
                                                          RightsOf(*connection->session));
      !status.ok()) {
    const std::string why(status.message());
    return CloseConnection(connection, why);
  }
  node_->log->connections.Came(
      now_.monotonic_ns,
      absl::StrCat("session ", connection->session->id(), resumed ? " resumed" : "",
                   ": connection ", connection->id, " from ", peer, ", queue pair ",
                   connection->qp_index, KeyText(arrival.key.get())));
}

ServerConnection* Worker::Add(const Arrival& arrival, Session* session,
                              std::unique_ptr<Connection> rdma) {
  if (session == nullptr) {
    session = sessions_.Create(now_.monotonic_ns);
    session->key = arrival.key;
  }
  const uint32_t id = arrival.connection;
  auto connection = std::make_unique<ServerConnection>(id, arrival.request.qp_index, session,
                                                       send_places_, std::move(rdma));
  connection->name = arrival.name;
  connection->since_ns = now_.monotonic_ns;
  connection->heard_ns = connection->untaken_since_ns = now_.monotonic_ns;
  ServerConnection* raw = connection.get();
  by_qp_number_[raw->qp_number] = raw;
  connections_[id] = std::move(connection);
  raw->accounted_bytes = raw->MemoryBytes();
  connection_bytes_ += raw->accounted_bytes;
  sessions_.Attach(session);
  TickBy(NextTickNs());
  return raw;
}

void Worker::OnNotice(const Notice& notice) {
  if (notice.type == Notice::Type::kIndexChanged) return TellIndexGeneration();
  ServerConnection* connection = Find(ConnectionOfName(notice.name));
  if (connection == nullptr || connection->name != notice.name) {
    if (notice.type != Notice::Type::kGone) return;
    for (Arrival& arrival : arrivals_) arrival.gone |= arrival.name == notice.name;
    for (Arrival& arrival : waiting_arrivals_) arrival.gone |= arrival.name == notice.name;
    return;
  }
  switch (notice.type) {
    case Notice::Type::kEstablished:
      connection->heard_ns = now_.monotonic_ns;
      connection->session->established = true;
      break;
    case Notice::Type::kGone:
      CloseConnection(connection, "disconnected");
      break;
    case Notice::Type::kIndexChanged:
      break;  // handled above
  }
}

ServerConnection* Worker::Find(uint32_t connection_id) {
  auto it = connections_.find(connection_id);
  return it == connections_.end() ? nullptr : it->second.get();
}

ServerConnection* Worker::FindOwnerInMap(const ibv_wc& completion) {
  auto it = by_qp_number_.find(completion.qp_num);
  if (it == by_qp_number_.end()) return nullptr;
  recent_[completion.qp_num % kRecent] = it->second;
  return it->second;
}

ServerConnection* Worker::FindQueuePair(const Session* session, uint16_t qp_index) {
  for (const auto& [id, connection] : connections_) {
    if (connection->session == session && connection->qp_index == qp_index) {
      return connection.get();
    }
  }
  return nullptr;
}

void Worker::CloseConnection(ServerConnection* connection, std::string_view why) {
  if (connection->closing) return;
  node_->log->connections.Went(now_.monotonic_ns,
                               absl::StrCat("closing connection ", connection->id, " of session ",
                                            connection->session->id(), ": ", std::string(why)));
  connection->closing = true;
  connection->ordinary = connection->direct = false;
  connection->closing_since_ns = now_.monotonic_ns;
  // These requests are neither applied nor answered. They are executed if the client sends them
  // again on another connection. A READ under way keeps its reservation until its flush.
  for (uint64_t sequence : connection->in_progress) connection->session->Forget(sequence);
  connection->in_progress.clear();
  connection->puts_waiting.clear();
  large_gets_waiting_ -= connection->gets_waiting.size();
  connection->gets_waiting.clear();
  const uint64_t drain = PackWorkId(WorkKind::kDrain, connection->id, 0);
  if (!connection->rdma->BeginClose(drain)) drained_.push_back(connection->id);
}

void Worker::CloseAll() {
  for (const auto& [id, connection] : connections_) {
    CloseConnection(connection.get(), "the server is shutting down");
  }
  for (Arrival& arrival : std::exchange(waiting_arrivals_, {})) {
    arrivals_.push_back(std::move(arrival));
  }
}

void Worker::FinishClosing() {
  if (drained_.empty()) return;
  for (uint32_t id : std::exchange(drained_, {})) {
    if (ServerConnection* connection = Find(id)) Destroy(connection);
  }
  if (!replacing_waits_.empty()) {
    // A destroyed connection may have held the buffer that others wait for.
    ServeReplacing();
    batch_.Flush();
  }
}

void Worker::Destroy(ServerConnection* connection) {
  const uint32_t id = connection->id;
  // Releases the last work in flight and the work that was never posted. The queue pair is
  // destroyed first, so that the device cannot do any of it any more.
  connection->rdma.reset();
  connection->send_queue.CompleteAll(
      [&](Resource resource) { Release(connection, resource, /*ok=*/false); });
  by_qp_number_.erase(connection->qp_number);
  ServerConnection*& recent = recent_[connection->qp_number % kRecent];
  if (recent == connection) recent = nullptr;
  cq_->Release(send_places_);
  node_->connection_ids->Retire(id);
  janitor_->Hasten(now_.monotonic_ns);
  EndWait(*connection);
  if (connection->session->connections == 1 && connection->session->server_set != 0) {
    node_->server_sets->Forget(connection->session->id());
    connection->session->server_set = 0;
  }
  sessions_.Detach(connection->session, now_.monotonic_ns);
  TickBy(now_.monotonic_ns);  // the next Tick includes the session's expiry
  connection_bytes_ -= connection->accounted_bytes;
  connections_.erase(id);
}

}  // namespace gannet
