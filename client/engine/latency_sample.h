#ifndef GANNET_CLIENT_ENGINE_LATENCY_SAMPLE_H_
#define GANNET_CLIENT_ENGINE_LATENCY_SAMPLE_H_

#include <cstdint>

#include "client/engine/op.h"
#include "common/base/client_clock.h"
#include "common/base/clock.h"
#include "common/protocol/client_report.h"

namespace gannet {

// The sample of latencies that a client tells its servers: of one operation at a time, so that none
// of the others costs a look at the clock.
//
// One owner thread.
class LatencySample {
 public:
  // Returns whether the first operation that this Poll starts should be taken.
  bool Due(int64_t now_ns) const { return now_ns >= next_ns_; }
  void Begin(const Op& op, int64_t now_ns);
  // Returns whether one was taken and has not ended.
  bool running() const { return op_ != nullptr; }
  // If that operation is over, tells how long it took: from the Poll that started it to the end of
  // the Poll that ended it, which is now. REQUIRES: running().
  void EndIfOver(const ClientClock& clock);
  // The servers have other addresses now. What runs is not told of.
  void OnServersMoved() {
    op_ = nullptr;
    next_ns_ = 0;
  }

 private:
  static constexpr int64_t kPeriodNs = 8 * kNsPerMs;  // one operation at most

  const Op* op_ = nullptr;  // its slot; nullptr: none
  LatencyKind kind_{};
  EngineServer* server_ = nullptr;
  int64_t began_ns_ = 0;
  int64_t next_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_LATENCY_SAMPLE_H_
