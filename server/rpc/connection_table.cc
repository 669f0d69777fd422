#include "server/rpc/connection_table.h"

#include <algorithm>
#include <utility>

namespace gannet {

void ConnectionsByNumber::Remove(const ServerConnection& connection) {
  by_number_.erase(connection.qp_number);
  const uint32_t place = connection.qp_number % kRecent;
  if (recent_[place] != &connection) return;
  recent_[place] = nullptr;
  recent_numbers_[place] = kNoNumber;
}

ServerConnection* ConnectionsByNumber::FindOwnerInMap(const ibv_wc& completion) {
  const auto it = by_number_.find(completion.qp_num);
  if (it == by_number_.end()) return nullptr;
  recent_[completion.qp_num % kRecent] = it->second;
  recent_numbers_[completion.qp_num % kRecent] = completion.qp_num;
  return it->second;
}

ServerConnection* ConnectionTable::Add(std::unique_ptr<ServerConnection> connection) {
  ServerConnection* const raw = connection.get();
  of_rail(raw->rail).Add(raw);
  by_id_[raw->id] = std::move(connection);
  raw->accounted_bytes = raw->MemoryBytes();
  connection_bytes_ += raw->accounted_bytes;
  CountMaps();
  return raw;
}

void ConnectionTable::Remove(ServerConnection* connection) {
  of_rail(connection->rail).Remove(*connection);
  connection_bytes_ -= connection->accounted_bytes;
  const uint32_t id = connection->id;
  by_id_.erase(id);
  CountMaps();
}

void ConnectionTable::CountMaps() {
  // absl's tables have one control byte for each place.
  map_bytes_ = by_id_.capacity() * (sizeof(*by_id_.begin()) + 1);
  for (const ConnectionsByNumber& rail : of_rail_) map_bytes_ += rail.MemoryBytes();
}

ServerConnection* ConnectionTable::FindHolder(uint32_t id) const {
  ServerConnection* const own = Find(id);
  if (own != nullptr) return own->holder == id ? own : nullptr;
  const auto it =
      std::ranges::find_if(by_id_, [id](const auto& entry) { return entry.second->holder == id; });
  return it == by_id_.end() ? nullptr : it->second.get();
}

ServerConnection* ConnectionTable::FindQueuePair(const Session* session, uint16_t qp_index) const {
  for (const auto& [id, connection] : by_id_) {
    if (connection->session == session && connection->qp_index == qp_index) {
      return connection.get();
    }
  }
  return nullptr;
}

ServerConnection* ConnectionTable::FindExecutor(const ServerConnection& asking,
                                                uint64_t sequence) const {
  for (const auto& [id, other] : by_id_) {
    if (other.get() != &asking && other->session == asking.session &&
        other->IsInProgress(sequence)) {
      return other.get();
    }
  }
  return nullptr;
}

}  // namespace gannet
