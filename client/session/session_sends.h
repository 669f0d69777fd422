#ifndef GANNET_CLIENT_SESSION_SESSION_SENDS_H_
#define GANNET_CLIENT_SESSION_SESSION_SENDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "client/session/client_connections.h"
#include "client/session/fixed_ring.h"
#include "client/session/ordered_work.h"
#include "client/session/rail_reads.h"
#include "client/session/request_window.h"
#include "client/session/send_chain.h"
#include "client/session/session_memory.h"
#include "client/session/session_options.h"
#include "client/session/session_phase.h"
#include "client/session/session_reports.h"
#include "client/session/session_terms.h"
#include "client/session/usage_log.h"
#include "client/session/watched_time.h"
#include "common/base/data_path_checks.h"

namespace gannet {

// What a session posts. It builds chains of work requests, and chooses the connections they go to.
//
// Compare-and-swaps go over the first connection, and requests, unless the server takes them by
// several rails (request_rails.h); READs go over all. But a queue pair
// completes its work in the order in which it was posted. So a READ behind a request is done only
// when the server's device acknowledged the request, which a software device does when it gets a
// core. So a session that is found to have READs behind an unanswered request makes one connection
// more, and from then on posts no READs to the first.
//
// Any method that posts may break the connections (SessionPhase::Break). One owner thread.
class SessionSends {
 public:
  struct Dependencies {  // outlive this
    const SessionOptions* options;
    SessionPhase* phase;
    SessionReports* reports;
    const SessionTerms* terms;
    const std::unique_ptr<SessionMemory>* memory;
    ClientConnections* connections;
    UsageLog* usage;
    const WatchedTime* watched;
  };

  explicit SessionSends(const Dependencies& given)
      : given_(given), reads_(4 * given.options->ops), chain_(given.options->signal_every) {}

  // A connection was made, and the session's terms are known.
  void Restart();
  // Nothing is posted any more. What was queued is forgotten when all connections are flushed.
  void Stop() { chain_.Clear(); }
  void ForgetQueued() {
    reads_.Clear();
    rail_reads_.lost().clear();
  }

  // Adds a READ to the chain that is being built, or queues it if the chain has no room. REQUIRES:
  // the session is ready, or it was until a moment ago. In the latter case the READ is not posted,
  // and OnLost tells so when the connections are drained: answers that came before the loss are
  // reported meanwhile, and READs may follow from them.
  void QueueRead(const QueuedRead& read) {
    GANNET_CHECK_DATA_PATH(TellsOfReads(), "nobody would tell that the READ is lost");
    if (!chain_.TakesRead()) [[unlikely]] {
      if (!reads_.empty() || !OpenReads(read.op))
        return QueueOtherwise(read.local, read.offset, read.op, read.bytes, read.keys);
    }
    chain_.AddRead(read);
  }
  // Adds a READ of consecutive bytes, from `offset` on, that go into several pieces of memory, to
  // the chain that is being built. Returns false if there is no room now. REQUIRES:
  // as QueueRead; at most SessionMemory::pieces_max() pieces.
  bool TryReadInto(uint32_t op, uint64_t offset, std::span<const LocalPiece> pieces);

  // Returns whether the session is ready, and there is room for SendOrdered.
  bool CanSend() const {
    return given_.phase->ready() && given_.connections->first().work.room() > 0;
  }
  // REQUIRES: CanSend().
  void SendOrdered(const OrderedWork& work);
  // Posts a READ of memory other than the region: `read.offset` bytes behind `address`. `kind`:
  // kRead, or kOwnRead for one that no operation made. REQUIRES: CanSend().
  void SendReadOf(uint64_t address, uint32_t rkey, const QueuedRead& read,
                  InFlightWork::Kind kind = InFlightWork::Kind::kRead);

  // Adds a request that is in the window, for the first time or again. REQUIRES: the connection's
  // send queue has room.
  void AddRequest(ClientConnection& connection, RequestWindow::Entry& entry, std::byte* message,
                  int64_t now_ns);
  // Adds a message that will be answered. REQUIRES: the connection's send queue has room.
  void AddMessage(ClientConnection& connection, std::byte* data, uint32_t bytes, int64_t now_ns);

  // Several rails carry the READs from now on, until Restart. Each is kept until it is done.
  void UseRails() {
    Post();
    rail_reads_.Use();
  }
  RailReads& rail_reads() { return rail_reads_; }
  const RailReads& rail_reads() const { return rail_reads_; }
  // Posts as many of the READs that were lost with other connections as there is room for.
  void RepostLost();
  // Its chain, if there is one, is not posted any more.
  void DropChainOf(const ClientConnection& connection) {
    if (!chain_.empty() && chain_.connection() == &connection) chain_.Clear();
  }

  // Posts everything queued, in as few calls into the device as there are connections to use. If
  // `may_wait`, a chain of few READs may wait for those that follow from the `completed` work.
  void Flush(bool may_wait, size_t completed) {
    if (!empty()) FlushQueued(may_wait, completed);
  }
  // Rings one doorbell for the whole chain.
  void Post();

  // Takes note if READs wait for a request now.
  void LookForMixing(bool requests_unanswered) {
    mixes_ |= requests_unanswered && given_.connections->HaveReadBehindMessage();
    if (mixes_) rail_reads_.KeepApart();
  }
  // Returns whether READs were seen to wait for a request.
  bool mixes() const { return mixes_; }
  bool chain_empty() const { return chain_.empty(); }
  uint32_t queued() const {
    return reads_.size() + static_cast<uint32_t>(rail_reads_.lost().size());
  }
  bool empty() const { return chain_.empty() && reads_.empty(); }

 private:
  bool TellsOfReads() const { return given_.phase->ready() || given_.phase->loss(); }
  void FlushQueued(bool may_wait, size_t completed);
  // Takes a QueuedRead's fields, in registers: a READ that finds room is in no memory.
  [[gnu::noinline]] void QueueOtherwise(std::byte* local, uint64_t offset, uint32_t op,
                                        uint32_t bytes, const MemoryKeys* keys);
  bool OpenReads(uint32_t op);
  bool AddRailRead(const QueuedRead& read, std::span<const LocalPiece> pieces);
  bool OpenReadsOn(ClientConnection& connection, uint32_t share, uint32_t op);
  bool OthersWillJoin(size_t completed) const;
  bool OpenChain(ClientConnection& connection);

  const Dependencies given_;
  FixedRing<QueuedRead> reads_;                        // found no room in the chain
  SendChain chain_;                                    // being built
  RequestWindow::Entry* chain_end_request_ = nullptr;  // if the chain's last is an unsignaled one
  uint32_t next_read_connection_ = 0;
  bool mixes_ = false;
  RailReads rail_reads_{given_.terms, given_.connections};
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_SENDS_H_
