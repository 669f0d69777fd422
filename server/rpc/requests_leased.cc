// Requests of a store that leases items: an update of a key that may be leased takes the general
// path. So does each one that is recorded and published at once.

#include "server/rpc/serve_waiting.h"

namespace gannet {

void Requests::ServeLeased(std::span<const Received> received) {
  if (writes_.waits()) {
    return ServesAllKeys(standing_) ? ServeWaiting<true, true>(received)
                                    : ServeWaiting<false, true>(received);
  }
  const bool records = store_.records();
  for (const Received& request : received) {
    if (records || !ServeUpdate<Updates::kLeased>(request)) {
      OnMessage(request.connection, request.message());
    }
  }
  if (store_.evicts() && !records) NoteUpdates(received);
}

}  // namespace gannet
