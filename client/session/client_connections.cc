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
  using Phase = ClientConnection::Phase;
  bool drained = true;
  for (ClientConnection& connection : all_) {
    if (connection.phase != Phase::kDraining) continue;
    const bool over = (nothing_new && !connection.drain_completes) || late;
    if (over) connection.phase = Phase::kDrained;
    drained &= over;
  }
  return drained;
}

bool ClientConnections::DrainsTell() const {
  return std::ranges::all_of(all_, [](const ClientConnection& it) {
    return it.phase != ClientConnection::Phase::kDraining || it.drain_completes;
  });
}

void ClientConnections::Clear(const SessionMemory* memory) {
  for (const ClientConnection& connection : all_) {
    if (connection.reserved > 0) memory->completions->Release(connection.reserved);
  }
  all_.clear();
  ++version_;
}

}  // namespace gannet
