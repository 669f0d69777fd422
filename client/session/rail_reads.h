#ifndef GANNET_CLIENT_SESSION_RAIL_READS_H_
#define GANNET_CLIENT_SESSION_RAIL_READS_H_

#include <algorithm>
#include <cstdint>
#include <deque>

#include "client/session/client_connections.h"
#include "client/session/kept_reads.h"
#include "client/session/session_memory.h"
#include "client/session/session_terms.h"

namespace gannet {

// Which connection carries a READ if the server has several rails, and the READs of connections
// that broke alone. One owner thread.
class RailReads {
 public:
  // Both outlive this.
  RailReads(const SessionTerms* terms, const ClientConnections* connections)
      : terms_(terms), connections_(connections) {}

  // The first connection was made: it is the only one.
  void Restart() {
    several_ = false;
    next_ = turn_left_ = 0;
  }
  // How many READs a connection takes in a turn, if so many are to be posted. With one rail, too.
  uint32_t ReadsPerTurn() const { return std::max(terms_->read_depth, kReadsPerTurnMin); }
  // There are several rails.
  void Use() { several_ = true; }
  bool several() const { return several_; }
  // READs were seen to wait for requests, which go by one connection of each rail.
  void KeepApart() { apart_ = true; }

  // Returns the connection for one READ of so many bytes; nullptr: none has room. The connections
  // take turns. `open`: that of the chain that is being built, if the chain has room; it goes on
  // with its turn.
  ClientConnection* Choose(ClientConnection* open, uint64_t bytes, ClientConnections& connections);
  // Whether the chain that is being built takes more.
  bool GoesOn() const { return several_ && turn_left_ > 0; }
  // How many bytes of a long value one READ brings: each connection brings its part.
  uint32_t StripeBytes(uint32_t value_bytes) const;

  // The connection broke, and is flushed: its READs are to be posted to others.
  void TakeLost(ClientConnection& connection);
  std::deque<KeptReads::Read>& lost() { return lost_; }
  const std::deque<KeptReads::Read>& lost() const { return lost_; }

 private:
  static constexpr uint32_t kReadsPerTurnMin = 16;
  // From so many bytes on a value is READ in stripes, which are multiples of pages.
  static constexpr uint32_t kStripedBytesMin = 1 << 20;
  static constexpr uint32_t kStripeStep = 4096;
  static constexpr uint32_t kStripeBytesMin = kStripedBytesMin / SessionMemory::kConnectionsMax;

  bool MayCarry(const ClientConnection& connection) const;

  const SessionTerms* const terms_;
  const ClientConnections* const connections_;
  bool several_ = false;
  bool apart_ = false;
  uint32_t next_ = 0;                 // the connection whose turn is next
  uint32_t turn_left_ = 0;            // READs that the chain's connection may still take
  std::deque<KeptReads::Read> lost_;  // in the order of posting
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_RAIL_READS_H_
