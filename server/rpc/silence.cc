#include "server/rpc/silence.h"

#include <algorithm>

#include "common/protocol/limits.h"
#include "glog/logging.h"

namespace gannet {
namespace {

// A closing queue pair that is not flushed after this time is destroyed all the same.
constexpr int64_t kFlushNsMax = 10'000'000'000;
// While there are connections, so many Checks run within the time after which a silent peer is
// dead. So the worker notices if it was stalled for a part of that time.
constexpr int64_t kTicksPerSilence = kMessagesPerSilence;
// A request is set aside for so long at most. Its client finds out within a silence that the
// connection of those before it is dead, and sends them again.
constexpr int64_t kAsideSilences = 3;

}  // namespace

BootTime Silence::Next() const {
  BootTime next =
      context_.sessions.size() > 0 ? context_.sessions.next_expiry() : BootTime::Never();
  next = std::min(next, context_.kept_holders.next());
  for (const auto& [id, connection] : context_.connections) {
    next =
        std::min(next, connection->closing ? connection->closing_since + kFlushNsMax
                                           : connection->heard + context_.options.silence_ns_max);
  }
  if (context_.connections.empty()) return next;
  return std::min(next, context_.now.boot + context_.options.silence_ns_max / kTicksPerSilence);
}

void Silence::Forgive(int64_t gap_ns) {
  for (const auto& [id, connection] : context_.connections) {
    connection->heard = std::min(connection->heard + gap_ns, context_.now.boot);
    connection->untaken_since = std::min(connection->untaken_since + gap_ns, context_.now.boot);
  }
}

void Silence::Check() {
  for (const auto& [id, connection] : context_.connections) {
    if (connection->closing) {
      if (context_.now.boot - connection->closing_since < kFlushNsMax) continue;
      LOG(ERROR) << "connection " << id << " was not flushed in time; destroying it";
      closer_.OnDrained(id);
    } else if (connection->session->revoked()) {
      closer_.Close(connection.get(), "its key is valid no longer");
    } else if (WaitsTooLong(*connection)) {
      closer_.Close(connection.get(), "the numbers before its requests do not come");
    } else if (context_.now.boot - connection->heard >= context_.options.silence_ns_max) {
      closer_.Close(connection.get(), "the peer is silent");
    } else {
      CheckTaking(connection.get());
    }
  }
}

bool Silence::WaitsTooLong(const ServerConnection& connection) const {
  const RequestsAside* const aside = connection.session->aside.get();
  if (aside == nullptr || aside->empty()) return false;
  const BootTime since = aside->WaitsSince(connection.id);
  return since != BootTime::Never() &&
         context_.now.boot - since >= kAsideSilences * context_.options.silence_ns_max;
}

void Silence::CheckTaking(ServerConnection* connection) {
  SendQueueUse& queue = connection->send_queue;
  const bool awaits = queue.AwaitsSignaled();
  if (awaits && queue.done() == connection->done_seen) {
    if (context_.now.boot - connection->untaken_since < context_.options.silence_ns_max) return;
    return closer_.Close(connection, "the peer takes no replies");
  }
  connection->done_seen = queue.done();
  connection->untaken_since = context_.now.boot;
  // Only a signaled send will tell whether the peer took the sends in the queue. So the next reply
  // is signaled, which at the latest is the reply to a heartbeat.
  if (!awaits && queue.in_queue() > 0) queue.SignalNext();
}

}  // namespace gannet
