#ifndef GANNET_SERVER_CONTROL_SERVER_WORKERS_H_
#define GANNET_SERVER_CONTROL_SERVER_WORKERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/connect.h"
#include "common/protocol/message.h"
#include "server/changes/change_stream.h"
#include "server/rpc/shared_by_workers.h"
#include "server/rpc/worker.h"

namespace gannet {

// The workers of a server, and what they share.
//
// Thread safety: each worker belongs to one thread. TellLog and destruction to the connection
// thread. All others from any thread.
class ServerWorkers {
 public:
  struct Options {
    uint32_t count = 1;
    Worker::Options each;                    // without `index` and `workers`
    int64_t slow_ns = 0;                     // as that of Server::Options
    ChangeStream* hears_sessions = nullptr;  // null: nobody does
  };
  // Adds to `given` what is the workers' alone. The errors are those of Worker::Create.
  static absl::StatusOr<std::unique_ptr<ServerWorkers>> Create(const Options& options,
                                                               SharedByWorkers given);
  // Destroys the workers. What they shared stays. REQUIRES: as Worker's destructor.
  void Destroy() { workers_.clear(); }
  ServerWorkers(const ServerWorkers&) = delete;
  ServerWorkers& operator=(const ServerWorkers&) = delete;

  const std::vector<std::unique_ptr<Worker>>& all() const { return workers_; }
  const SharedByWorkers& shared() const { return shared_; }
  ConnectionIds& connection_ids() { return connection_ids_; }
  ServerLog& log() { return log_; }

  // Returns the worker of the request's session, or if it has none yet, that with the fewest
  // connections.
  Worker& For(const ConnectRequest& request) const;
  void Notify(const Notice& notice) const;
  // Tells all to close their connections.
  void BeginClosing() const;
  // Logs what they noted of clients, a line for many.
  void TellLog(int64_t now_ns);

  // Requests of clients so far.
  uint64_t requests() const;
  // The oldest map by which one of them decides.
  uint64_t map_revision() const;
  // The oldest index that a client of theirs may still READ.
  uint64_t index_generation() const;
  void AddTo(StatsReply* stats) const;

 private:
  explicit ServerWorkers(SharedByWorkers given) : shared_(std::move(given)) {}

  ConnectionIds connection_ids_;
  ServerSets server_sets_;
  std::optional<SessionStream> session_stream_;
  std::optional<LockLeases> leases_;
  ServerLog log_;
  std::optional<ClientBoard> board_;
  std::optional<SlowLog> slow_log_;
  SharedByWorkers shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CONTROL_SERVER_WORKERS_H_
