// One connection at a time: which one is wanted next follows from what there is (NextWanted), so
// nothing is remembered but when a rail may be tried again.

#include "client/session/joining_connections.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace gannet {
namespace {

using Phase = ClientConnection::Phase;

}  // namespace

void JoiningConnections::Poll(int64_t now_ns) {
  GANNET_CHECK(given_.connections->first().ready(), "there is nothing to join");
  if (ClientConnection* const making = FindBeingMade()) return GoOn(*making, now_ns);
  const Wanted next = NextWanted();
  if (next.due_ns > now_ns) return;
  int64_t timeout_ns = given_.options->connect_timeout_ns;
  if (given_.rails->several()) timeout_ns = std::min(timeout_ns, ServerRails::kAttemptNsMax);
  const absl::Status status = given_.maker->Start((*given_.rails)[next.rail].address, next.rail,
                                                  now_ns + timeout_ns, FindPlace());
  if (!status.ok()) OnFailed(next.rail, now_ns, std::string(status.message()));
}

void JoiningConnections::GoOn(ClientConnection& connection, int64_t now_ns) {
  const SessionTerms& terms = *given_.terms;
  const bool several = given_.rails->several();
  const Connector::Step step = connection.connector->Poll(now_ns);
  absl::Status why = connection.connector->status();
  if (step == Connector::Step::kResolved) {
    why = given_.maker->Configure(connection);
    if (!why.ok()) connection.phase = Phase::kOver;
  } else if (step == Connector::Step::kEstablished) {
    const absl::StatusOr<Grant> joined = given_.maker->TakeGrant(connection);
    const bool same = joined.ok() && joined->incarnation == terms.grant.incarnation &&
                      joined->session_token == terms.grant.session_token;
    connection.phase = Phase::kOver;
    if (same) {
      connection.Open(*joined);
      if (several) connection.kept_reads.Restart(connection.work.room());
      ServerRails::Rail& rail = (*given_.rails)[connection.rail];
      rail.reached = true;
      rail.told = false;
    }
    connection.liveness.Restart(now_ns, *given_.watched, terms.silence_ns());
  } else if (step >= Connector::Step::kClosed) {
    connection.phase = Phase::kOver;
  }
  if (connection.phase != Phase::kOver) return;
  if (several) {
    connection.over_ns = now_ns;
    connection.BeginDrain();
  }
  OnFailed(connection.rail, now_ns,
           absl::StrCat(given_.options->endpoint, ": connection ", connection.index, " to ",
                        connection.to.ToString(), " could not join: ", std::string(why.message())));
}

void JoiningConnections::OnFailed(uint32_t rail, int64_t now_ns, const std::string& why) {
  ServerRails::Rail& of = (*given_.rails)[rail];
  if (!given_.rails->several()) {
    of.next_ns = kNever;
    return given_.options->Log(false, why);
  }
  of.next_ns = now_ns + (of.reached ? ServerRails::kRetryNs : ServerRails::kRetryUnreachedNs);
  if (!std::exchange(of.told, true)) given_.options->Log(false, why);
}

ClientConnection* JoiningConnections::FindBeingMade() const {
  const auto found =
      std::ranges::find(*given_.connections, Phase::kConnecting, &ClientConnection::phase);
  return found != given_.connections->end() ? &*found : nullptr;
}

ClientConnection* JoiningConnections::FindPlace() const {
  const auto over = std::ranges::find_if(*given_.connections, [](const ClientConnection& it) {
    return it.phase == Phase::kOver && it.rdma().drained();
  });
  return over != given_.connections->end() ? &*over : nullptr;
}

JoiningConnections::Wanted JoiningConnections::NextWanted() const {
  if (stopped_ || given_.rails->awaited() || BeingMade()) return {};
  if (given_.connections->size() == SessionMemory::kConnectionsMax && FindPlace() == nullptr)
    return {};
  Wanted next;
  for (uint32_t rail = 0; rail < given_.rails->size(); ++rail) {
    const auto there = std::ranges::count_if(*given_.connections, [&](const ClientConnection& it) {
      return it.rail == rail && it.phase != Phase::kOver;
    });
    const int64_t due_ns = (*given_.rails)[rail].next_ns;
    if (there < WantedByEach() && due_ns < next.due_ns) next = {.due_ns = due_ns, .rail = rail};
  }
  return next;
}

// How many connections there are to be by each rail.
uint32_t JoiningConnections::WantedByEach() const {
  const auto share = [](uint32_t all, uint32_t of) { return (all + of - 1) / of; };
  const uint32_t rails = given_.rails->size();
  const uint32_t needed = share(given_.options->reads_wanted, given_.terms->read_depth);
  const uint32_t for_reads = std::clamp(needed, 1u, given_.options->connections_max);
  return std::min(share(for_reads, rails) + (given_.sends->mixes() ? 1 : 0),
                  SessionMemory::kConnectionsMax);
}

}  // namespace gannet
