#ifndef GANNET_SERVER_RPC_SLOW_REQUESTS_H_
#define GANNET_SERVER_RPC_SLOW_REQUESTS_H_

#include <cstdint>
#include <string_view>

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
  void BeginBatch() { until_ns_ = 0; }
  // Returns when the request begins. REQUIRES: timed().
  int64_t Begin() const {
    GANNET_CHECK_DATA_PATH(timed(), "requests are not timed");
    return until_ns_ != 0 ? until_ns_ : log_->NowNs();
  }
  // REQUIRES: timed().
  void End(const ServerConnection& connection, const RequestView& request, int64_t began_ns) {
    GANNET_CHECK_DATA_PATH(timed(), "requests are not timed");
    until_ns_ = log_->NowNs();
    NoteIfSlow(connection, request.header, request.key, until_ns_ - began_ns);
  }
  // A request took so long.
  void NoteIfSlow(const ServerConnection& connection, const RequestHeader& header,
                  std::string_view key, int64_t ns) const;

 private:
  SlowLog* const log_;  // null: nothing is timed
  const ConnectionIds& connection_ids_;
  const Now& now_;
  int64_t until_ns_ = 0;  // the last look at the clock in this batch; 0 = none
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SLOW_REQUESTS_H_
