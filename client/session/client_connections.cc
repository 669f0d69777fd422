#include "client/session/client_connections.h"

#include <algorithm>
#include <utility>

namespace gannet {

ClientConnection* ClientConnections::FindOther(uint32_t id) {
  const auto found = std::ranges::find(all_, id, &ClientConnection::id);
  return found != all_.end() ? &*found : nullptr;
}

ClientConnection& ClientConnections::Add(std::unique_ptr<Connector> connector) {
  const uint32_t index = size();
  ClientConnection& connection = all_.emplace_back();
  connection.id = next_id_++ & WrId::kOwnerMask;
  connection.index = index;
  connection.connector = std::move(connector);
  ++version_;
  return connection;
}

bool ClientConnections::AnyDead(const WatchedTime& watched, int64_t grace_ns) const {
  return std::ranges::any_of(all_, [&](const ClientConnection& it) {
    return it.ready() && it.liveness.PeerDead(watched, grace_ns);
  });
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
