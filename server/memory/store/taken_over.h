#ifndef GANNET_SERVER_MEMORY_STORE_TAKEN_OVER_H_
#define GANNET_SERVER_MEMORY_STORE_TAKEN_OVER_H_

#include "server/memory/recovery/survey.h"

namespace gannet {

// What a store took over from the process that had the memory file before.
struct TakenOver {
  bool stopped_in_order = false;  // otherwise that process was killed
  SurveyCounts counts;
  double seconds = 0;
  uint64_t clock_ms = 0;  // where the server's clock was at least; 0: unknown
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_TAKEN_OVER_H_
