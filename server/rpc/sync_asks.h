#ifndef GANNET_SERVER_RPC_SYNC_ASKS_H_
#define GANNET_SERVER_RPC_SYNC_ASKS_H_

#include <cstdint>

namespace gannet {

// Decides when a worker whose replies wait for the disk asks for a sync. A sync costs much more
// than to record a write, and serves all writes that are recorded when it begins.
//
// 1. The requests that are there are served first, but not for more than kPutOffsMax Polls.
// 2. It asks once for each sync. While a sync runs, other writes are recorded. The worker asks
//    again when it has published and answered what that sync brought, since by then some of those
//    clients have sent more.
//
// A sync that brings nothing is not asked for again: the disk's thread tries by itself.
// One owner thread.
class SyncAsks {
 public:
  static constexpr uint32_t kPutOffsMax = 16;

  // Call it at the end of a Poll, if replies wait. `safe`: what was on disk when the Poll
  // published.
  bool Asks(uint64_t safe, bool more_requests_wait) {
    if (asked_ && safe == safe_when_asked_) return false;
    asked_ = false;
    if (more_requests_wait && ++put_offs_ < kPutOffsMax) return false;
    put_offs_ = 0;
    asked_ = true;
    safe_when_asked_ = safe;
    return true;
  }

 private:
  bool asked_ = false;
  uint64_t safe_when_asked_ = 0;
  uint32_t put_offs_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SYNC_ASKS_H_
