#ifndef GANNET_SERVER_RPC_CONNECTION_TABLE_H_
#define GANNET_SERVER_RPC_CONNECTION_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/rdma/completion.h"
#include "server/rpc/server_connection.h"

namespace gannet {

// A rail's connections of one worker, by the numbers of their queue pairs. Devices number these
// each for itself. Owner thread only.
class ConnectionsByNumber {
 public:
  ConnectionsByNumber() { recent_numbers_.fill(kNoNumber); }

  void Add(ServerConnection* connection) { by_number_[connection->qp_number] = connection; }
  void Remove(const ServerConnection& connection);

  // Returns the connection that a completion belongs to, or nullptr if it is gone. A queue pair
  // number is not reused before the last completion of the old queue pair was polled (invariant 4
  // of Worker).
  ServerConnection* FindOwner(const ibv_wc& completion) {
    const uint32_t place = completion.qp_num % kRecent;
    if (recent_numbers_[place] == completion.qp_num) [[likely]] {
      ServerConnection* const recent = recent_[place];
      // Nobody asks for kNoNumber. So the caller's check for nullptr costs nothing here.
      if (recent == nullptr) __builtin_unreachable();
      return recent;
    }
    return FindOwnerInMap(completion);
  }

  // The bytes of the map.
  size_t MemoryBytes() const {
    // absl's tables have one control byte for each place.
    return by_number_.capacity() * (sizeof(*by_number_.begin()) + 1);
  }

 private:
  static constexpr uint32_t kRecent = 1024;
  static constexpr uint32_t kNoNumber = UINT32_MAX;  // numbers of queue pairs have 24 bits

  ServerConnection* FindOwnerInMap(const ibv_wc& completion);

  absl::flat_hash_map<uint32_t, ServerConnection*> by_number_;
  // A direct-mapped cache of by_number_, by the low bits of the number. Devices number queue pairs
  // in a row, so a completion's owner is nearly always here. An empty place has kNoNumber.
  std::array<uint32_t, kRecent> recent_numbers_;
  std::array<ServerConnection*, kRecent> recent_{};
};

// The connections of one worker, by id, and those of each rail by queue pair. Owner thread only.
class ConnectionTable {
 public:
  explicit ConnectionTable(size_t rails) : of_rail_(rails) {}

  // The id and the queue pair must be of no other connection in the table.
  ServerConnection* Add(std::unique_ptr<ServerConnection> connection);
  // Destroys the connection.
  void Remove(ServerConnection* connection);

  // Returns nullptr if there is no such connection.
  ServerConnection* Find(uint32_t id) const {
    const auto it = by_id_.find(id);
    return it == by_id_.end() ? nullptr : it->second.get();
  }
  // Returns the connection whose client holds locks by this id, or nullptr. It looks through all if
  // no connection has the id.
  ServerConnection* FindHolder(uint32_t id) const;
  // As Find, but returns nullptr for a connection that is closing, too.
  ServerConnection* FindOpen(uint32_t id) const {
    ServerConnection* connection = Find(id);
    return connection == nullptr || connection->closing ? nullptr : connection;
  }
  // The connections of a rail. They stay where they are.
  ConnectionsByNumber& of_rail(uint32_t rail) { return of_rail_[rail]; }
  // Returns the session's connection of this index, or nullptr.
  ServerConnection* FindQueuePair(const Session* session, uint16_t qp_index) const;
  // Returns the connection, other than `asking`, on which the session's request of this number is
  // in progress. Returns nullptr if there is none.
  ServerConnection* FindExecutor(const ServerConnection& asking, uint64_t sequence) const;

  // Pairs of id and connection.
  auto begin() const { return by_id_.begin(); }
  auto end() const { return by_id_.end(); }
  size_t size() const { return by_id_.size(); }
  bool empty() const { return by_id_.empty(); }

  // The bytes of the connections, and of these maps.
  size_t MemoryBytes() const { return connection_bytes_ + map_bytes_; }

 private:
  void CountMaps();

  absl::flat_hash_map<uint32_t, std::unique_ptr<ServerConnection>> by_id_;
  std::vector<ConnectionsByNumber> of_rail_;
  size_t connection_bytes_ = 0;  // the sum of accounted_bytes
  size_t map_bytes_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_CONNECTION_TABLE_H_
