#ifndef GANNET_SERVER_RPC_ACCEPTOR_H_
#define GANNET_SERVER_RPC_ACCEPTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/protocol/connect.h"
#include "common/rdma/listener.h"
#include "server/rpc/connection_closer.h"
#include "server/rpc/inbox.h"
#include "server/rpc/silence.h"
#include "server/rpc/worker_context.h"

namespace gannet {

// Accepts the connections of one worker, or rejects them, and takes what the connection thread
// notices of them. Owner thread only.
class Acceptor {
 public:
  // All outlive this.
  Acceptor(WorkerContext& context, ConnectionCloser& closer, const Silence& silence)
      : context_(context), closer_(closer), silence_(silence) {}

  void Put(Arrival arrival) { arrivals_.push_back(std::move(arrival)); }
  // Looks at a few arrivals.
  void Poll();
  // Returns true if no arrival waits for Poll.
  bool idle() const { return arrivals_.empty(); }
  // The most arrivals to Put before the next Poll.
  size_t room() const { return idle() ? kArrivalsPerPoll : 0; }
  size_t waiting() const { return arrivals_.size() + waiting_.size(); }

  // A connection was established, or is gone.
  void OnNotice(const Notice& notice);
  // `connection` is about to be destroyed. The arrival that replaces it need not wait any more.
  void EndWait(const ServerConnection& connection);

  // From now on rejects all arrivals.
  void BeginClosing();
  bool closing() const { return closing_; }

 private:
  // To accept a client takes most of a millisecond, in which nobody is served.
  static constexpr size_t kArrivalsPerPoll = 4;

  void OnArrival(Arrival arrival);
  // Keeps the arrival until the queue pair that it replaces is flushed.
  void Wait(Arrival arrival);
  void GiveUp(Arrival arrival);
  // Makes a new session if `session` is null.
  void Accept(Arrival arrival, Session* session);
  // Adds the connection to the table. Makes a new session if `session` is null.
  ServerConnection* Add(const Arrival& arrival, Session* session, std::unique_ptr<Connection> rdma);
  void Reject(Arrival arrival, RejectCode code, std::string_view reason);
  ConnectionOptions OptionsForConnection(uint32_t rail) const;
  Grant GrantFor(const ServerConnection& connection, bool resumed) const;
  bool IsOfLockRail(const ServerConnection& connection) const;
  // Whether its client swaps lock words itself.
  bool Swaps(const ServerConnection& connection) const;
  // The session goes on with the locks that it kept, if it did.
  void TakeLocksOver(ServerConnection* connection);

  WorkerContext& context_;
  ConnectionCloser& closer_;
  const Silence& silence_;
  std::deque<Arrival> arrivals_;  // each Poll looks at a few
  std::vector<Arrival> waiting_;  // wait for an old queue pair to be flushed
  bool closing_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_ACCEPTOR_H_
