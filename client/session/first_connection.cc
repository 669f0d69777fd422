// From an address to a grant, and again after a break.

#include "client/session/first_connection.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/session/primary_lease_watch.h"
#include "common/auth/handshake.h"
#include "common/protocol/message.h"
#include "common/protocol/not_primary.h"
#include "common/rdma/address.h"

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

FirstConnection::FirstConnection(const Dependencies& given)
    : given_(given),
      attempts_({.addresses = given.options->addresses,
                 .reconnect = given.options->reconnect,
                 .group = given.options->group,
                 .lease_ns = PrimaryLeaseWatch::kLengthNsUsual,
                 .names = given.options->names}),
      maker_({.options = given.options, .memory = given.memory, .connections = given.connections}) {
}

FirstConnection::Step FirstConnection::Begin(int64_t now_ns) {
  maker_.TakeKey();
  const int64_t timeout_ns = attempts_.AttemptNs(now_ns, given_.options->connect_timeout_ns);
  absl::Status status = maker_.Start(attempts_.address(), 0, now_ns + timeout_ns);
  return status.ok() ? Step::kUnderWay : Fail({.why = std::move(status)});
}

FirstConnection::Step FirstConnection::Poll(int64_t now_ns) {
  ClientConnection& first = given_.connections->first();
  switch (first.connector->Poll(now_ns)) {
    case Connector::Step::kResolving:
    case Connector::Step::kConnecting:
      break;
    case Connector::Step::kResolved:
      if (absl::Status status = maker_.Configure(first); !status.ok()) {
        return Fail({.why = std::move(status)});
      }
      break;
    case Connector::Step::kEstablished:
      return OnEstablished(now_ns);
    case Connector::Step::kClosed:
    case Connector::Step::kFailed:
      return OnClosed(*first.connector);
  }
  return Step::kUnderWay;
}

FirstConnection::Step FirstConnection::OnClosed(const Connector& connector) {
  const std::string& endpoint = given_.options->endpoint;
  ConnectAttempts::Failure failure{.why = connector.status()};
  if (failure.why.ok()) {
    failure.why = absl::UnavailableError(absl::StrCat(endpoint, ": closed by the server"));
  }
  if (connector.refused()) {
    failure.why = RefusalStatus(connector.private_data(), endpoint, failure.why, &failure.code);
    if (failure.code == RejectCode::kNotPrimary) {
      failure.primary = NamedPrimary(connector.private_data());
    }
  }
  return Fail(std::move(failure));
}

// Ends the attempt. Fills in what the caller does not know.
FirstConnection::Step FirstConnection::Fail(ConnectAttempts::Failure failure) {
  const ClientConnections& connections = *given_.connections;
  if (attempts_.IsNews(failure.code))
    given_.options->Log(!attempts_.was_connected(), std::string(failure.why.message()));
  failure.answered = !connections.empty() && connections.first().connector->answered();
  // The server forgot the session, or it is another run of the server: ask for a new session.
  failure.session_forgotten = failure.code == RejectCode::kSessionUnknown && maker_.token() != 0;
  if (failure.session_forgotten) maker_.set_token(0);
  attempts_.OnFailed(std::move(failure));
  return Step::kFailed;
}

FirstConnection::Step FirstConnection::OnEstablished(int64_t now_ns) {
  ClientConnection& first = given_.connections->first();
  const absl::StatusOr<Grant> grant = maker_.TakeGrant(first);
  if (!grant.ok()) return Fail({.why = grant.status()});
  given_.terms->read_depth = first.rdma().depth().issued;
  if (given_.terms->read_depth == 0) {
    return Fail({.why = absl::FailedPreconditionError(
                     absl::StrCat(given_.options->endpoint,
                                  ": no RDMA READs on this connection (negotiated depth 0)"))});
  }
  if (absl::Status status = given_.reports->OnNamed(NameToUse(*grant)); !status.ok()) {
    return Fail({.why = std::move(status)});
  }
  first.Open(*grant);
  AdoptGrant(*grant, now_ns);
  return Step::kMade;
}

void FirstConnection::AdoptGrant(const Grant& grant, int64_t now_ns) {
  const SessionOptions& options = *given_.options;
  SessionTerms& terms = *given_.terms;
  comeback_ = HowItCameBack(grant);
  // A member that took over knows the sessions of the former primary.
  resumed_ = comeback_ == Comeback::kResumed ||
             (comeback_ == Comeback::kFailedOver && grant.resumed && maker_.token() != 0);
  terms.grant = grant;
  terms.view = IndexView::Of(grant);
  terms.eager_bytes_max = std::min<uint32_t>(grant.message_bytes_max, kMessageBytesMax);
  terms.authenticated = maker_.has_key();
  terms.lock_by_nic = !terms.read_only() &&
                      static_cast<LockMode>(grant.lock_mode) == LockMode::kNicCas &&
                      (*given_.memory)->first->device.caps.has_atomics() && options.nic_locks;
  maker_.set_token(grant.session_token);
  if (attempts_.unreachable()) options.Log(false, absl::StrCat(options.endpoint, ": connected"));
  attempts_.OnConnected(grant.history != 0, now_ns);
}

// REQUIRES: the terms are still the last connection's.
Comeback FirstConnection::HowItCameBack(const Grant& grant) const {
  if (!attempts_.was_connected()) return Comeback::kFirst;
  const Grant& last = given_.terms->grant;
  if (grant.incarnation != last.incarnation) {
    const bool same_items = grant.history != 0 && grant.history == last.history;
    return same_items ? Comeback::kFailedOver : Comeback::kNewIncarnation;
  }
  return grant.resumed && maker_.token() != 0 ? Comeback::kResumed : Comeback::kNewSession;
}

}  // namespace gannet
