// The control path of ClientSession: from an address to a grant, and again after a break.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/session/client_session.h"
#include "common/auth/handshake.h"
#include "common/protocol/not_primary.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// Returns the name by which keys find the server. A group's members have names of their own, but
// the same items: the history names these.
std::string NameToUse(const Grant& grant) {
  if (grant.history == 0) return std::string(NameOf(grant));
  return absl::StrCat("group-", absl::Hex(grant.history, absl::kZeroPad16));
}

// Returns the address of the primary that a reject names, if it can be used without asking DNS,
// which may block. A name is left to the list of addresses.
std::optional<SocketAddress> NamedPrimary(std::span<const std::byte> private_data) {
  const absl::StatusOr<Reject> reject = DecodeReject(private_data);
  if (!reject.ok()) return std::nullopt;
  const std::optional<NotPrimary> elsewhere = ParseNotPrimary(RejectReason(*reject));
  if (!elsewhere.has_value()) return std::nullopt;
  return NumericAddress(elsewhere->primary, kDefaultPort);
}

}  // namespace

void ClientSession::BeginConnect(int64_t now_ns) {
  phase_.Set(Phase::kConnecting);
  maker_.TakeKey();
  const int64_t timeout_ns = attempts_.AttemptNs(now_ns, options_.connect_timeout_ns);
  if (absl::Status status = maker_.Start(attempts_.address(), now_ns + timeout_ns); !status.ok()) {
    FailAttempt({.why = std::move(status)});
  }
}

void ClientSession::PollConnecting(int64_t now_ns) {
  Connector& connector = *connections_.first().connector;
  switch (connector.Poll(now_ns)) {
    case Connector::Step::kResolving:
    case Connector::Step::kConnecting:
      return;
    case Connector::Step::kResolved:
      if (absl::Status status = maker_.Configure(connections_.first()); !status.ok()) {
        FailAttempt({.why = std::move(status)});
      }
      return;
    case Connector::Step::kEstablished:
      return OnEstablished(now_ns);
    case Connector::Step::kClosed:
    case Connector::Step::kFailed:
      return OnConnectFailed(connector);
  }
}

void ClientSession::OnConnectFailed(const Connector& connector) {
  ConnectAttempts::Failure failure{.why = connector.status()};
  if (failure.why.ok()) {
    failure.why = absl::UnavailableError(absl::StrCat(endpoint(), ": closed by the server"));
  }
  if (connector.refused()) {
    failure.why = RefusalStatus(connector.private_data(), endpoint(), failure.why, &failure.code);
    if (failure.code == RejectCode::kNotPrimary) {
      failure.primary = NamedPrimary(connector.private_data());
    }
  }
  FailAttempt(std::move(failure));
}

// Gives up this attempt to connect. Fills in what the caller does not know.
void ClientSession::FailAttempt(ConnectAttempts::Failure failure) {
  if (attempts_.IsNews(failure.code))
    options_.Log(!was_ready(), std::string(failure.why.message()));
  failure.answered = !connections_.empty() && connections_.first().connector->answered();
  // The server forgot the session, or it is another run of the server: ask for a new session.
  failure.session_forgotten = failure.code == RejectCode::kSessionUnknown && maker_.token() != 0;
  if (failure.session_forgotten) maker_.set_token(0);
  attempts_.OnFailed(std::move(failure));
  BeginDrain();
}

void ClientSession::OnEstablished(int64_t now_ns) {
  ClientConnection& first = connections_.first();
  const absl::StatusOr<Grant> grant = maker_.TakeGrant(first);
  if (!grant.ok()) return FailAttempt({.why = grant.status()});
  terms_.read_depth = first.rdma().depth().issued;
  if (terms_.read_depth == 0) {
    return FailAttempt(
        {.why = absl::FailedPreconditionError(
             absl::StrCat(endpoint(), ": no RDMA READs on this connection (negotiated depth 0)"))});
  }
  if (absl::Status status = reports_.OnNamed(NameToUse(*grant)); !status.ok()) {
    return FailAttempt({.why = std::move(status)});
  }
  first.Open();
  AdoptGrant(*grant, now_ns);
}

void ClientSession::AdoptGrant(const Grant& grant, int64_t now_ns) {
  ClientConnection& first = connections_.first();
  const Comeback comeback = HowItCameBack(grant);
  // A member that took over knows the sessions of the former primary.
  const bool resumed = comeback == Comeback::kResumed ||
                       (comeback == Comeback::kFailedOver && grant.resumed && maker_.token() != 0);
  terms_.grant = grant;
  terms_.view = IndexView::Of(grant);
  terms_.eager_bytes_max = std::min<uint32_t>(grant.message_bytes_max, kMessageBytesMax);
  terms_.authenticated = maker_.has_key();
  terms_.lock_by_nic = !terms_.read_only() &&
                       static_cast<LockMode>(grant.lock_mode) == LockMode::kNicCas &&
                       memory_->device.caps.has_atomics() && options_.nic_locks;
  maker_.set_token(grant.session_token);
  if (unreachable()) options_.Log(false, absl::StrCat(endpoint(), ": connected"));
  attempts_.OnConnected(grant.history != 0, now_ns);
  phase_.Set(Phase::kReady);
  next_control_ns_ = now_ns;
  lease_.Restart(grant, first.asked_ns, now_ns);
  watched_.Restart(now_ns, Liveness::WatchStepNs(terms_.silence_ns()));
  first.liveness.Restart(now_ns, watched_, terms_.silence_ns());
  sends_.Restart();
  heartbeats_.Restart(now_ns);
  requests_.Restart();
  std::vector<uint32_t> abandoned;
  if (resumed) {
    requests_.Resend(now_ns);
  } else {
    requests_.BeginAnew(grant.credits, &abandoned);
  }
  if (ready()) reports_.OnReady(comeback, abandoned);
}

// REQUIRES: terms_.grant is still the last connection's.
Comeback ClientSession::HowItCameBack(const Grant& grant) const {
  if (!was_ready()) return Comeback::kFirst;
  if (grant.incarnation != terms_.grant.incarnation) {
    const bool same_items = grant.history != 0 && grant.history == terms_.grant.history;
    return same_items ? Comeback::kFailedOver : Comeback::kNewIncarnation;
  }
  return grant.resumed && maker_.token() != 0 ? Comeback::kResumed : Comeback::kNewSession;
}

}  // namespace gannet
