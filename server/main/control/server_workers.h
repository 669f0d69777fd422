#ifndef GANNET_SERVER_MAIN_CONTROL_SERVER_WORKERS_H_
#define GANNET_SERVER_MAIN_CONTROL_SERVER_WORKERS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/boot_time.h"
#include "common/protocol/connect.h"
#include "common/protocol/message.h"
#include "server/rpc/inbox.h"
#include "server/rpc/server_context.h"
#include "server/rpc/worker.h"

namespace gannet {

// The workers of a server, and the context that they share.
//
// Thread safety: each worker belongs to one thread. TellLog and destruction to the connection
// thread. All others from any thread.
class ServerWorkers {
 public:
  // Makes as many as the context says. The errors are those of Worker::Create.
  static absl::StatusOr<std::unique_ptr<ServerWorkers>> Create(
      std::unique_ptr<ServerContext> context, const WorkerOptions& each);
  // Destroys the workers. What they shared stays. REQUIRES: as Worker's destructor.
  void Destroy() { workers_.clear(); }
  ServerWorkers(const ServerWorkers&) = delete;
  ServerWorkers& operator=(const ServerWorkers&) = delete;

  const std::vector<std::unique_ptr<Worker>>& all() const { return workers_; }
  ServerContext& context() const { return *context_; }

  // Returns the worker of the request's session, or if it has none yet, that with the fewest
  // connections.
  Worker& For(const ConnectRequest& request) const;
  void Notify(const Notice& notice) const;
  // Wakes all, because writes that wait may be published.
  void Wake() const;
  // Tells all to close their connections.
  void BeginClosing() const;
  // Logs what they noted of clients, a line for many.
  void TellLog(BootTime now);

  // Requests of clients so far.
  uint64_t requests() const;
  // The oldest map by which one of them decides.
  uint64_t map_revision() const;
  // The oldest index that a client of theirs may still READ.
  uint64_t index_generation() const;
  // The last announcement of keys that are to be leased of which all of them know.
  uint64_t announcement() const;
  void AddTo(StatsReply* stats) const;

 private:
  explicit ServerWorkers(std::unique_ptr<ServerContext> context) : context_(std::move(context)) {}

  const std::unique_ptr<ServerContext> context_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_SERVER_WORKERS_H_
