#include "client/session/session_waits.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace gannet {
namespace {

int64_t Until(int64_t ns, int64_t now_ns) { return std::max<int64_t>(ns - now_ns, 0); }

}  // namespace

void SessionWaits::Arm() {
  if (*given_.memory == nullptr) return;
  for (const std::unique_ptr<SessionDevice>& it : (*given_.memory)->devices) {
    if (it->lost) continue;
    const absl::Status status = it->completions->Arm();
    if (!status.ok()) given_.connections->BreakThoseOf(it.get(), given_.phase, status);
  }
}

int64_t SessionWaits::IdleNs(int64_t now_ns, bool somebody_waits) const {
  const int64_t next_attempt_ns = given_.attempts->next_ns();
  switch (given_.phase->value()) {
    case SessionPhase::Value::kReady:
      return ReadyIdleNs(now_ns, somebody_waits);
    case SessionPhase::Value::kDown:
      return next_attempt_ns == ConnectAttempts::kNever ? INT64_MAX
                                                        : Until(next_attempt_ns, now_ns);
    case SessionPhase::Value::kConnecting:
      return Until(given_.connections->first().connector->deadline_ns(), now_ns);
    case SessionPhase::Value::kDraining:
      return given_.connections->DrainsTell() ? kDrainLookNs : 0;
  }
  return 0;
}

int64_t SessionWaits::ReadyIdleNs(int64_t now_ns, bool somebody_waits) const {
  const SessionRequests& requests = *given_.requests;
  if (!given_.sends->chain_empty() || !given_.completions->all_taken()) return 0;
  if (requests.has_questions() || !given_.sends->rail_reads().lost().empty())
    return Until(next_control_ns_, now_ns);
  const PrimaryLeaseWatch& lease = *given_.lease;
  int64_t idle_ns = lease.on() && HasWork() ? lease.IdleNs(now_ns) : INT64_MAX;
  const int64_t joins_ns = given_.joining->DueNs();
  if (joins_ns != JoiningConnections::kNever)
    idle_ns = std::min(idle_ns, Until(std::max(joins_ns, next_control_ns_), now_ns));
  for (const ClientConnection& connection : *given_.connections) {
    if (connection.ready()) {
      idle_ns = std::min(idle_ns, connection.liveness.IdleNs(now_ns, somebody_waits));
    } else if (connection.phase == ClientConnection::Phase::kConnecting) {
      idle_ns = std::min(idle_ns, Until(connection.connector->deadline_ns(), now_ns));
    } else if (connection.over_ns != 0) {  // its READs wait for it to be flushed, or for a look
      idle_ns = std::min(
          idle_ns, connection.rdma().drained() ? Until(next_control_ns_, now_ns) : kDrainLookNs);
    }
  }
  return idle_ns;
}

bool SessionWaits::ExpectsCompletions() const {
  return !given_.phase->ready() || busy() > 0 || given_.connections->ExpectAnswers();
}

bool SessionWaits::in_motion() const {
  if (given_.phase->ready()) return given_.joining->BeingMade();
  return given_.phase->value() != SessionPhase::Value::kDown;
}

bool SessionWaits::HasWork() const {
  return given_.lease->holds() || given_.completions->completed() > 0 || !given_.sends->empty() ||
         !given_.requests->empty() || given_.connections->HaveOtherThanMessages();
}

uint32_t SessionWaits::busy() const {
  const SessionMemory* const memory = given_.memory->get();
  if (memory == nullptr) return given_.sends->queued();
  return given_.sends->queued() + given_.requests->unanswered() + memory->items.lent() +
         memory->values.lent() + memory->replies.lent();
}

}  // namespace gannet
