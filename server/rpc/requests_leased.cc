// Requests of a store that leases items: an update of a key that may be leased takes the general
// path, and so does each one that is recorded.

#include "server/rpc/serve_update.h"

namespace gannet {

void Requests::ServeLeased(std::span<const Received> received) {
  const bool records = store_.records();
  for (const Received& request : received) {
    if (records || !ServeUpdate<Updates::kLeased>(request)) {
      OnMessage(request.connection, request.message());
    }
  }
  if (store_.evicts() && !records) NoteUpdates(received);
}

}  // namespace gannet
