#include "client/session/client_connections.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace gannet {

ClientConnection* ClientConnections::FindOther(uint32_t id) {
  const auto found = std::ranges::find(all_, id, &ClientConnection::id);
  return found != all_.end() ? &*found : nullptr;
}

bool ClientConnections::CarriesRequests(const ClientConnection& it) const {
  if (!it.ready()) return false;
  for (const ClientConnection& other : all_) {
    if (other.ready() && other.rail == it.rail) return &other == &it;
  }
  return false;
}

ClientConnection& ClientConnections::Add(std::unique_ptr<Connector> connector) {
  ClientConnection& connection = all_.emplace_back();
  return Begin(connection, size() - 1, std::move(connector));
}

ClientConnection& ClientConnections::Renew(ClientConnection& over,
                                           std::unique_ptr<Connector> connector) {
  GANNET_CHECK(over.phase == ClientConnection::Phase::kOver && over.rdma().drained(),
               "the connection is not flushed");
  const uint32_t index = over.index;
  over = ClientConnection();
  return Begin(over, index, std::move(connector));
}

ClientConnection& ClientConnections::Begin(ClientConnection& connection, uint32_t index,
                                           std::unique_ptr<Connector> connector) {
  connection.id = next_id_++ & WrId::kOwnerMask;
  connection.index = index;
  connection.connector = std::move(connector);
  ++version_;
  return connection;
}

// The first one is asked for last: with it all are given up.
void ClientConnections::BreakThoseOf(SessionDevice* device, SessionPhase* phase,
                                     const absl::Status& why) {
  device->lost = true;
  for (size_t i = all_.size(); i-- > 0 && phase->ready();) {
    if (all_[i].device == device && all_[i].ready()) phase->BreakOne(all_[i], why);
  }
}

ClientConnection* ClientConnections::FindDead(const WatchedTime& watched, int64_t grace_ns) {
  const auto dead = std::ranges::find_if(all_, [&](const ClientConnection& it) {
    return it.ready() && it.liveness.PeerDead(watched, grace_ns);
  });
  return dead != all_.end() ? &*dead : nullptr;
}

bool ClientConnections::ExpectAnswers() const {
  return std::ranges::any_of(
      all_, [](const ClientConnection& it) { return !it.ready() || it.liveness.awaits_answer(); });
}

bool ClientConnections::HaveOtherThanMessages() const {
  return std::ranges::any_of(all_, [](const ClientConnection& it) {
    return it.ready() && it.work.HasOtherThanMessages();
  });
}

bool ClientConnections::HaveReadBehindMessage() const {
  return std::ranges::any_of(all_, [](const ClientConnection& it) {
    return it.ready() && it.work.HasReadBehindMessage();
  });
}

void ClientConnections::BeginDrain() {
  for (ClientConnection& connection : all_) connection.BeginDrain();
}

bool ClientConnections::LookDrained(bool nothing_new, bool late) {
  bool drained = true;
  for (const ClientConnection& it : all_) drained &= it.rdma().LookDrained(nothing_new, late);
  return drained;
}

bool ClientConnections::DrainsTell() const {
  return std::ranges::all_of(all_, [](const ClientConnection& it) {
    return it.rdma().drained() || it.rdma().drain_completes();
  });
}

}  // namespace gannet
