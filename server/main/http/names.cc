#include "server/main/http/server_view.h"

namespace gannet {

const char* LatencyKindName(size_t kind) {
  constexpr const char* kNames[kLatencyKinds] = {"get", "write", "other"};
  return kind < kLatencyKinds ? kNames[kind] : "other";
}

}  // namespace gannet
