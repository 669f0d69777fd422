// Requests of a store that records its changes, in a journal or elsewhere.

#include "server/rpc/serve_update.h"

namespace gannet {

// The fast path makes a change at once, so writes that wait for the disk do not take it.
void Requests::ServeRecorded(std::span<const Received> received) {
  const bool at_once = !given_.writes->waits();
  for (const Received& request : received) {
    if (at_once && ServeUpdate<true>(request)) continue;
    OnMessage(request.connection, request.message());
  }
  if (at_once && given_.store->evicts()) NoteUpdates(received);
}

}  // namespace gannet
