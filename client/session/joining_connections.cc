#include "client/session/joining_connections.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace gannet {

void JoiningConnections::Poll(int64_t now_ns) {
  GANNET_CHECK(given_.connections->first().ready(), "there is nothing to join");
  if (BeingMade()) return PollLast(now_ns);
  if (!Wanted()) return;
  const absl::Status status =
      given_.maker->Start(given_.attempts->address(), now_ns + given_.options->connect_timeout_ns);
  if (status.ok()) return;
  given_.options->Log(false, std::string(status.message()));
  Stop();
}

void JoiningConnections::PollLast(int64_t now_ns) {
  using Phase = ClientConnection::Phase;
  ClientConnection& last = given_.connections->last();
  const SessionTerms& terms = *given_.terms;
  const Connector::Step step = last.connector->Poll(now_ns);
  if (step == Connector::Step::kResolved && !given_.maker->Configure(last).ok()) {
    last.phase = Phase::kOver;
  } else if (step == Connector::Step::kEstablished) {
    const absl::StatusOr<Grant> joined = given_.maker->TakeGrant(last);
    const bool same = joined.ok() && joined->incarnation == terms.grant.incarnation &&
                      joined->session_token == terms.grant.session_token;
    last.phase = Phase::kOver;
    if (same) last.Open();
    last.liveness.Restart(now_ns, *given_.watched, terms.silence_ns());
  } else if (step >= Connector::Step::kClosed) {
    last.phase = Phase::kOver;
  }
  if (last.phase == Phase::kOver) {
    given_.options->Log(
        false, absl::StrCat(given_.options->endpoint, ": connection ", last.index,
                            " could not join: ", std::string(last.connector->status().message())));
  }
}

bool JoiningConnections::Wanted() const {
  if (stopped_ || !given_.connections->last().ready()) return false;
  const uint32_t depth = given_.terms->read_depth;
  const uint32_t needed = (given_.options->reads_wanted + depth - 1) / depth;
  const uint32_t for_reads = std::clamp(needed, 1u, given_.options->connections_max);
  return given_.connections->size() <
         std::min(for_reads + (given_.sends->mixes() ? 1 : 0), SessionMemory::kConnectionsMax);
}

}  // namespace gannet
