#ifndef GANNET_CLIENT_SESSION_CLIENT_CONNECTIONS_H_
#define GANNET_CLIENT_SESSION_CLIENT_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/session/client_connection.h"
#include "client/session/session_memory.h"
#include "client/session/session_phase.h"
#include "common/rdma/connector.h"

namespace gannet {

// The connections of a session. The first one is made alone, and the others join it. They never
// move, because a chain of work requests points to one. One owner thread.
class ClientConnections {
 public:
  ClientConnections() { all_.reserve(SessionMemory::kConnectionsMax); }

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  bool empty() const { return all_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(all_.size()); }
  ClientConnection& operator[](size_t i) { return all_[i]; }
  // These REQUIRE that there is one.
  ClientConnection& first() { return all_.front(); }
  const ClientConnection& first() const { return all_.front(); }
  ClientConnection& last() { return all_.back(); }
  const ClientConnection& last() const { return all_.back(); }

  // Returns the connection whose work requests have this id; nullptr if it was an earlier one's.
  ClientConnection* Find(uint32_t id) {
    // Replies come over the first, and most sessions have no other.
    if (!all_.empty() && all_.front().id == id) [[likely]]
      return &all_.front();
    return FindOther(id);
  }

  // Returns whether requests may go by this connection: it is the first one of its rail that is
  // ready.
  bool CarriesRequests(const ClientConnection& it) const;
  // Adds a connection that is being made.
  ClientConnection& Add(std::unique_ptr<Connector> connector);
  // Makes `over` anew, at its place. REQUIRES: it is flushed.
  ClientConnection& Renew(ClientConnection& over, std::unique_ptr<Connector> connector);
  // The device is lost: breaks the connections through it.
  void BreakThoseOf(SessionDevice* device, SessionPhase* phase, const absl::Status& why);
  // Returns a connection that may be given up because its server is silent; nullptr: there is none.
  ClientConnection* FindDead(const WatchedTime& watched, int64_t grace_ns);
  // Returns whether one is being made or closed, or has an answer outstanding.
  bool ExpectAnswers() const;
  // Returns whether anything but messages is in flight.
  bool HaveOtherThanMessages() const;
  // Returns whether a READ in flight waits for a message that was posted before it.
  bool HaveReadBehindMessage() const;
  // Posts the receives that were used. Returns a connection whose device refuses; nullptr: none
  // does.
  ClientConnection* PostReceives() {
    for (ClientConnection& it : all_) {
      if (!it.rdma().PostReceives()) return &it;
    }
    return nullptr;
  }

  // Closes them all.
  void BeginDrain();
  // Returns whether all are flushed. A queue pair whose flush tells nothing is taken to be flushed
  // if there was `nothing_new` in the completion queue. If it is too `late`, all are.
  bool LookDrained(bool nothing_new, bool late);
  // Returns whether a completion will tell of each that is not flushed yet.
  bool DrainsTell() const;
  // Destroys them. REQUIRES: drained.
  void Clear() {
    all_.clear();
    ++version_;
  }

  // Changes whenever one is added, or they are destroyed.
  uint64_t version() const { return version_; }

 private:
  ClientConnection* FindOther(uint32_t id);
  ClientConnection& Begin(ClientConnection& connection, uint32_t index,
                          std::unique_ptr<Connector> connector);

  std::vector<ClientConnection> all_;
  uint32_t next_id_ = 1;
  uint64_t version_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CLIENT_CONNECTIONS_H_
