#ifndef GANNET_CLIENT_SESSION_INDEX_WATCH_H_
#define GANNET_CLIENT_SESSION_INDEX_WATCH_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "client/session/client_connection.h"
#include "client/session/session_memory.h"
#include "common/lookup/index_view.h"
#include "common/protocol/index_news.h"

namespace gannet {

// What a session knows of an index that grows, and what its heartbeats tell of that. An index is
// acknowledged once every READ is done that was posted while lookups could begin at an older one.
//
// One owner thread.
class IndexWatch {
 public:
  // A connection was made, and lookups begin at this index.
  void Restart(const IndexGeometry& index) {
    *this = {};
    known_.acknowledged = known_.newest = current_ = static_cast<uint32_t>(index.generation);
  }
  // A lookup found that a home's keys went to an index that it does not know.
  void Want() { wanted_ = true; }
  // Returns whether a heartbeat should go out at once.
  bool HeartbeatDue() const { return !asked_ && (wanted_ || unsaid_); }
  void OnHeartbeatSent() {
    asked_ = true;
    unsaid_ = false;
  }
  void OnHeartbeatAnswered() { asked_ = wanted_ = false; }
  // Takes note of what the server told. From now on lookups begin at news.index.
  void OnNews(const IndexNews& news) {
    known_.newest = static_cast<uint32_t>(news.newest_generation());
    const auto generation = static_cast<uint32_t>(news.index.generation);
    marked_ &= generation == current_;
    current_ = generation;
  }
  // Call it now and then. REQUIRES: nothing is queued that is not posted.
  void LookAt(std::span<const ClientConnection> connections) {
    if (known_.acknowledged == current_) return;
    if (!marked_) {
      for (const ClientConnection& it : connections) marks_[it.index] = it.work.posted();
      marks_end_ = connections.size();
      marked_ = true;
    }
    for (const ClientConnection& it : connections.first(marks_end_)) {
      if (!it.work.IsDone(marks_[it.index])) return;
    }
    known_.acknowledged = current_;
    unsaid_ = true;
  }
  // READs went from a connection that broke to others.
  void OnReadsMoved() { marked_ = false; }
  bool WaitsForReads() const { return known_.acknowledged != current_; }
  IndexKnown known() const { return known_; }

 private:
  IndexKnown known_;
  uint32_t current_ = 0;  // generation at which lookups begin
  std::array<uint32_t, SessionMemory::kConnectionsMax> marks_{};  // positions of works
  size_t marks_end_ = 0;  // connections that had been made then
  bool marked_ = false;
  bool wanted_ = false;
  bool asked_ = false;   // a heartbeat is under way
  bool unsaid_ = false;  // acknowledged since the last heartbeat
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_INDEX_WATCH_H_
