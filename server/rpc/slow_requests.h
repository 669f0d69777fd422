#ifndef GANNET_SERVER_RPC_SLOW_REQUESTS_H_
#define GANNET_SERVER_RPC_SLOW_REQUESTS_H_

#include <cstdint>
#include <string_view>

#include "common/base/boot_time.h"
#include "common/base/data_path_checks.h"
#include "common/protocol/message.h"
#include "server/rpc/now.h"
#include "server/rpc/server_connection.h"
#include "server/rpc/server_context.h"

namespace gannet {

// Finds the requests of one worker that take long. Requests that are served one after the other
// share a look at the clock. Owner thread only.
class SlowRequests {
 public:
  // Both outlive this. `now` is the time of the Poll.
  SlowRequests(ServerContext& server, const Now& now)
      : log_(server.slow_log ? &*server.slow_log : nullptr),
        connection_ids_(server.connection_ids),
        now_(now) {}

  bool timed() const { return log_ != nullptr; }
  // Forgets the last look at the clock, because time passed since.
  void BeginBatch() { until_ = BootTime(); }
  // Returns when the request begins. REQUIRES: timed().
  BootTime Begin() const {
    GANNET_CHECK_DATA_PATH(timed(), "requests are not timed");
    return until_ != BootTime() ? until_ : log_->Now();
  }
  // REQUIRES: timed().
  void End(const ServerConnection& connection, const RequestView& request, BootTime began) {
    GANNET_CHECK_DATA_PATH(timed(), "requests are not timed");
    until_ = log_->Now();
    NoteIfSlow(connection, request.header, request.key, until_ - began);
  }
  // A request took so long.
  void NoteIfSlow(const ServerConnection& connection, const RequestHeader& header,
                  std::string_view key, int64_t ns) const;

 private:
  SlowLog* const log_;  // null: nothing is timed
  const ConnectionIds& connection_ids_;
  const Now& now_;
  BootTime until_;  // the last look at the clock in this batch; BootTime(): none
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SLOW_REQUESTS_H_
