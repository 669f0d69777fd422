#ifndef GANNET_SERVER_MEMORY_STORE_TAKEN_OVER_H_
#define GANNET_SERVER_MEMORY_STORE_TAKEN_OVER_H_

#include "common/base/server_time.h"
#include "server/memory/recovery/survey.h"

namespace gannet {

// What a store took over from the process that had the memory file before.
struct TakenOver {
  bool stopped_in_order = false;  // otherwise that process was killed
  SurveyCounts counts;
  double seconds = 0;
  ServerTime clock;  // where the server's clock was at least; ServerTime(): unknown
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_TAKEN_OVER_H_
