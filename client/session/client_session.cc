// One server for a client, as a state machine: down, connecting, ready, draining, and down again.
// Its parts do the work (client_session.h); here is what goes on in each phase, and in which order.
// Whatever goes wrong ends in GiveUp, which drains all connections: nothing is posted any more, and
// the session is down only when every queue pair is flushed, or was given up.

#include "client/session/client_session.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/auth/handshake.h"
#include "common/protocol/not_primary.h"
#include "common/rdma/status.h"

namespace gannet {

ClientSession::ClientSession(Options options, SessionOwner* owner)
    : options_(std::move(options)),
      reports_(options_.number, owner),
      attempts_({.addresses = options_.addresses,
                 .reconnect = options_.reconnect,
                 .group = options_.group,
                 .lease_ns = PrimaryLeaseWatch::kLengthNsUsual,
                 .names = options_.names}),
      maker_({.options = &options_, .memory = &memory_, .connections = &connections_}),
      sends_({.options = &options_,
              .phase = &phase_,
              .reports = &reports_,
              .terms = &terms_,
              .memory = &memory_,
              .connections = &connections_,
              .usage = &news_.usage(),
              .watched = &watched_}),
      requests_({.reports = &reports_, .memory = &memory_, .sends = &sends_, .watched = &watched_}),
      heartbeats_({.options = &options_,
                   .phase = &phase_,
                   .reports = &reports_,
                   .terms = &terms_,
                   .memory = &memory_,
                   .connections = &connections_,
                   .lease = &lease_,
                   .news = &news_,
                   .sends = &sends_}),
      completions_({.options = &options_,
                    .phase = &phase_,
                    .reports = &reports_,
                    .memory = &memory_,
                    .connections = &connections_,
                    .lease = &lease_,
                    .requests = &requests_,
                    .heartbeats = &heartbeats_,
                    .watched = &watched_}),
      joining_({.options = &options_,
                .terms = &terms_,
                .attempts = &attempts_,
                .connections = &connections_,
                .maker = &maker_,
                .sends = &sends_,
                .watched = &watched_}) {}

ClientSession::~ClientSession() {
  reports_.End();
  TellLast();
  if (phase_.value() != Phase::kDown && phase_.value() != Phase::kDraining) BeginDrain();
  while (phase_.value() == Phase::kDraining) PollDraining(options_.clock.get().MonotonicNs());
}

// Sends the report that the next heartbeat would carry, and waits until the server's device has it:
// closing drops what is not there yet. A dead server never has it, so this does not wait for long.
void ClientSession::TellLast() {
  if (!BeginToTellLast()) return;
  int64_t now_ns = options_.clock.get().MonotonicNs();
  const int64_t give_up_ns = now_ns + kLastReportNsMax;
  // A test's clock may stand still.
  for (uint32_t looks = 0; looks < kLooksAtStillClock && now_ns < give_up_ns;) {
    LookAtConnections();
    Poll(now_ns);
    if (!ready() || HasToldLast()) return;
    sched_yield();  // the server may want this core
    const int64_t before_ns = std::exchange(now_ns, options_.clock.get().MonotonicNs());
    looks = now_ns == before_ns ? looks + 1 : 0;
  }
}

bool ClientSession::BeginToTellLast() {
  if (!ready() || !news_.usage().HasNews()) return false;
  joining_.Stop();
  news_.usage().Hasten();
  return true;
}

bool ClientSession::HasToldLast() const {
  return !news_.usage().HasNews() && connections_.first().work.in_flight() == 0;
}

void ClientSession::BeginEnd(int64_t now_ns) {
  reports_.End();
  tell_until_ns_ = now_ns + kLastReportNsMax;
  if (!BeginToTellLast()) tell_until_ns_ = now_ns;
}

bool ClientSession::PollEnd(int64_t now_ns) {
  if (ready() && now_ns < tell_until_ns_) {
    LookAtConnections();
    Poll(now_ns);
  }
  const bool told = !ready() || now_ns >= tell_until_ns_ || HasToldLast();
  const bool open = ready() || phase_.value() == Phase::kConnecting;
  if (open && told) BeginDrain();
  if (phase_.value() == Phase::kDraining) PollDraining(now_ns);
  return phase_.value() == Phase::kDown;
}

bool ClientSession::Poll(int64_t now_ns) {
  if (ready()) [[likely]] {
    PollReady(now_ns);
    return ready();
  }
  switch (phase_.value()) {
    case Phase::kReady:
      break;  // see above
    case Phase::kDown:
      if (now_ns >= attempts_.next_ns()) BeginConnect(now_ns);
      return false;
    case Phase::kConnecting:
      PollConnecting(now_ns);
      return false;
    case Phase::kDraining:
      PollDraining(now_ns);
      return false;
  }
  return false;
}

inline void ClientSession::PollReady(int64_t now_ns) {
  const bool control = now_ns >= next_control_ns_;
  if (control) {  // before anything is heard
    watched_.Look(now_ns);
    if (lease_.on()) heartbeats_.AskForLease(now_ns, HasWork());
    sends_.LookForMixing(!requests_.empty());
  }
  // Posts READs that were begun just now. If they are quick, they complete in this Poll.
  sends_.Post();
  if (ready()) completions_.Poll(now_ns);
  if (lease_.holds()) LookAtConnections();  // the next Poll asks for the lease
  if (control && ready()) PollControl(now_ns);
}

// Does what costs a system call each, and so is not done in every Poll.
void ClientSession::PollControl(int64_t now_ns) {
  next_control_ns_ = now_ns + kControlNs;
  for (ClientConnection& connection : connections_) {
    const Connector::Step step = connection.connector->Poll(now_ns);
    if (connection.ready() && step >= Connector::Step::kClosed) {
      return Break(absl::UnavailableError(
          absl::StrCat(endpoint(), ": the server closed the connection, or died")));
    }
  }
  joining_.Poll(now_ns);
  // Here, because the owner's requests take all credits that are left after a Poll.
  if (requests_.asks_for_map() && CanSendRequest()) requests_.SendMapQuestion(now_ns);
  if (requests_.asks_for_item_leases() && CanSendRequest())
    requests_.SendItemLeasesQuestion(now_ns);
  CheckSilence(now_ns);
  if (ready()) heartbeats_.SendDue(now_ns);
}

// Call it after the completions were taken, so that a server is judged only after it could be
// heard. If more completions wait than one Poll takes, the server gets the time of another look.
void ClientSession::CheckSilence(int64_t now_ns) {
  const int64_t grace_ns = completions_.all_taken() ? 0 : watched_.step_max_ns();
  if (connections_.AnyDead(watched_, grace_ns)) {
    return Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the server is silent for ", grant().silence_ms, " ms")));
  }
  if (requests_.Stuck(terms_.silence_ns() + grace_ns)) {
    return Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the server answers heartbeats, but no requests")));
  }
  if (lease_.on() && completions_.all_taken() && lease_.GivesUp(now_ns, HasWork())) {
    Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the primary's lease is over, and it has no other")));
  }
}

// Returns whether operations are under way.
bool ClientSession::HasWork() const {
  return lease_.holds() || completions_.completed() > 0 || !sends_.empty() || !requests_.empty() ||
         connections_.HaveOtherThanMessages();
}

void ClientSession::GiveUp(absl::Status why) {
  options_.Log(true, std::string(why.message()));
  attempts_.OnBroken(std::move(why), lease_.length_ns());
  report_lost_ = true;
  BeginDrain();
}

// From here on nothing is posted. The session drains until every connection is flushed.
void ClientSession::BeginDrain() {
  phase_.Set(Phase::kDraining);
  drain_until_ns_ = 0;
  lease_.Disbelieve({connections_.begin(), connections_.end()});
  sends_.Stop();
  connections_.BeginDrain();
}

void ClientSession::PollDraining(int64_t now_ns) {
  if (drain_until_ns_ == 0) drain_until_ns_ = now_ns + kDrainNsMax;
  const bool nothing_new = completions_.PollDraining(now_ns) == 0;
  // A queue pair that the device does not flush in time is destroyed as it is.
  if (!connections_.LookDrained(nothing_new, now_ns > drain_until_ns_)) return;
  connections_.Clear();
  phase_.Set(Phase::kDown);
  attempts_.ScheduleNext(now_ns);
  sends_.ForgetQueued();
  const bool lost = std::exchange(report_lost_, false);
  if (lost || down()) reports_.OnLost();
}

int64_t ClientSession::IdleNs(int64_t now_ns, bool somebody_waits) const {
  const auto until = [now_ns](int64_t ns) { return std::max<int64_t>(ns - now_ns, 0); };
  switch (phase_.value()) {
    case Phase::kReady:
      return ReadyIdleNs(now_ns, somebody_waits);
    case Phase::kDown:
      return dead() ? INT64_MAX : until(attempts_.next_ns());
    case Phase::kConnecting:
      return until(connections_.first().connector->deadline_ns());
    case Phase::kDraining:
      return connections_.DrainsTell() ? kDrainLookNs : 0;
  }
  return 0;
}

int64_t ClientSession::ReadyIdleNs(int64_t now_ns, bool somebody_waits) const {
  if (!sends_.chain_empty() || !completions_.all_taken()) return 0;
  if (joining_.Wanted() || requests_.asks_for_map() || requests_.asks_for_item_leases())
    return std::max<int64_t>(next_control_ns_ - now_ns, 0);
  int64_t idle_ns = lease_.on() && HasWork() ? lease_.IdleNs(now_ns) : INT64_MAX;
  for (const ClientConnection& connection : connections_) {
    if (connection.ready()) {
      idle_ns = std::min(idle_ns, connection.liveness.IdleNs(now_ns, somebody_waits));
    } else if (connection.phase == ClientConnection::Phase::kConnecting) {
      idle_ns =
          std::min(idle_ns, std::max<int64_t>(connection.connector->deadline_ns() - now_ns, 0));
    }
  }
  return idle_ns;
}

void ClientSession::SetServerSet(uint64_t hash) {
  if (memory_ != nullptr) memory_->SetServerSet(hash);
}

uint32_t ClientSession::busy() const {
  if (memory_ == nullptr) return sends_.queued();
  return sends_.queued() + requests_.unanswered() + memory_->items.lent() + memory_->values.lent() +
         memory_->replies.lent();
}

bool ClientSession::ExpectsCompletions() const {
  return !ready() || busy() > 0 || connections_.ExpectAnswers();
}

void ClientSession::Arm() {
  if (memory_ == nullptr) return;
  if (absl::Status status = memory_->completions->Arm(); !status.ok()) Break(std::move(status));
}

// From an address to a grant, and again after a break.

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
  if (options_.item_leases && (grant.features & kGrantItemLeases) != 0)
    requests_.AskForItemLeases();
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
