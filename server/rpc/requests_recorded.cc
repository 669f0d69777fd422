// Requests of a store that records its changes, in a journal or elsewhere.

#include "server/rpc/serve_waiting.h"

namespace gannet {

// Serves updates together, and the requests between them one by one. An update that could not be
// with others, as another thread has its lock, is the first one of the next ones, and waits for it.
void Requests::ServeAtOnce(std::span<const Received> received) {
  while (!received.empty()) {
    size_t served = 0;
    while (served < received.size() && ServeUpdate<Updates::kRecorded>(received[served])) ++served;
    recorded_updates_.Make();
    if (served == 0) {
      OnMessage(received[0].connection, received[0].message());
      served = 1;
    }
    received = received.subspan(served);
  }
}

void Requests::ServeRecorded(std::span<const Received> received) {
  if (store_.leases() != nullptr) [[unlikely]]
    return ServeLeased(received);
  const bool all = ServesAllKeys(standing_);
  if (!writes_.waits()) return ServeAtOnce(received);
  all ? ServeWaiting<true, false>(received) : ServeWaiting<false, false>(received);
}

}  // namespace gannet
