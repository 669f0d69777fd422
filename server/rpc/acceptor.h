#ifndef GANNET_SERVER_RPC_ACCEPTOR_H_
#define GANNET_SERVER_RPC_ACCEPTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/protocol/connect.h"
#include "common/rdma/completion.h"
#include "common/rdma/device.h"
#include "common/rdma/listener.h"
#include "server/replica/group_standing.h"
#include "server/rpc/connection_closer.h"
#include "server/rpc/connection_table.h"
#include "server/rpc/inbox.h"
#include "server/rpc/now.h"
#include "server/rpc/receive_buffers.h"
#include "server/rpc/server_log.h"
#include "server/rpc/silence.h"
#include "server/rpc/worker_counters.h"
#include "server/rpc/worker_timers.h"
#include "server/session/connection_ids.h"
#include "server/session/session_table.h"
#include "server/store/store.h"

namespace gannet {

// Accepts the connections of one worker, or rejects them, and takes what the connection thread
// notices of them. Owner thread only.
class Acceptor {
 public:
  struct Dependencies {  // outlive this
    const Device* device;
    ibv_pd* pd;
    Listener* listener;
    const Store* store;
    ConnectionIds* connection_ids;
    ServerLog* log;
    const Grant* grant;  // without the fields that differ between connections
    CompletionQueue* cq;
    ReceiveBuffers* receives;
    ConnectionTable* connections;
    SessionTable* sessions;
    ConnectionCloser* closer;
    const Silence* silence;
    WorkerCounters* counters;
    WorkerTimers* timers;
    const Now* now;
    const GroupStanding* standing;  // null: the server is in no group
    const std::function<int64_t()>* lease_now_ns;
  };
  struct Options {
    uint32_t connections_max;
    uint32_t send_places;     // of each connection's send queue
    uint32_t unanswered_max;  // requests of a connection
    int64_t silence_ns_max;
  };

  Acceptor(const Dependencies& given, const Options& options) : given_(given), options_(options) {}

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
  // Returns true if the device refused receives.
  bool failed() const { return failed_; }

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
  ConnectionOptions OptionsForConnection() const;
  Grant GrantFor(const ServerConnection& connection, bool resumed) const;
  PeerRights RightsOf(const Session& session) const;

  const Dependencies given_;
  const Options options_;
  std::deque<Arrival> arrivals_;  // each Poll looks at a few
  std::vector<Arrival> waiting_;  // wait for an old queue pair to be flushed
  bool closing_ = false;
  bool failed_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_ACCEPTOR_H_
