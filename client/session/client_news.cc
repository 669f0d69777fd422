#include "client/session/client_news.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/protocol/client_report.h"
#include "common/protocol/message.h"
#include "common/protocol/touch.h"

namespace gannet {

void ClientNews::Restart(const Grant& grant, int64_t now_ns, int64_t period_ns) {
  using enum TouchLog::Wanted;
  const TouchLog::Wanted some = (grant.features & kGrantSamplesTouches) != 0 ? kSamples : kAll;
  touches_.Restart((grant.features & kGrantEvicts) != 0 ? some : kNothing);
  usage_.Restart((grant.features & kGrantTakesReports) != 0, now_ns, period_ns);
  heartbeat_ = 0;
}

bool ClientNews::CanSend(const ClientConnection& first, int64_t now_ns) const {
  const Liveness& liveness = first.liveness;
  const bool reports = usage_.Due(now_ns);
  if (touches_.touches().empty() && !reports) return false;
  if (!first.ready() || first.work.room() == 0) return false;
  if (static_cast<int32_t>(liveness.heartbeats_answered() - heartbeat_) < 0) return false;
  if (liveness.heartbeats_sent() - liveness.heartbeats_answered() == Liveness::kHeartbeatsMax) {
    return false;
  }
  return reports || touches_.worth_a_message() || liveness.HeartbeatDue(now_ns);
}

// Touches that do not fit beside a report are dropped, as any that find no room.
uint32_t ClientNews::Take(int64_t now_ns, std::span<ClientConnection> connections,
                          RequestHeader heartbeat, std::span<std::byte> message) {
  GANNET_CHECK(message.size() >= kMessageBytesMax, "no room for a message");
  const std::span payload = message.subspan(sizeof(RequestHeader));
  // Work requests are counted anyway, so READs cost nothing more.
  for (ClientConnection& it : connections) {
    usage_.Posted(it.work.posted() - std::exchange(it.told_of, it.work.posted()));
  }
  const size_t report = usage_.Due(now_ns) ? usage_.Take(now_ns, payload) : 0;
  std::span<const std::byte> touches = std::as_bytes(touches_.touches());
  touches = touches.first(std::min(touches.size(), payload.size() - report));
  std::copy(touches.begin(), touches.end(), payload.begin() + static_cast<ptrdiff_t>(report));
  touches_.Clear();
  heartbeat.heartbeat.report_bytes = static_cast<uint32_t>(report);
  heartbeat.value_bytes = static_cast<uint32_t>(report + touches.size());
  std::memcpy(message.data(), &heartbeat, sizeof(heartbeat));
  return static_cast<uint32_t>(sizeof(heartbeat) + heartbeat.value_bytes);
}

}  // namespace gannet
