#include "client/session/client_session.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

// Hears what is of no interest to anybody.
class Nobody : public SessionOwner {
 public:
  void OnDoorbell(uint32_t) override {}
  void OnWorksDone(uint32_t, std::span<const InFlightWork::Work>, bool) override {}
  void OnReply(RequestWindow::Entry*, const ReplyView&) override {}
  absl::Status OnNamed(uint32_t, std::string_view) override { return absl::OkStatus(); }
  void OnReady(uint32_t, Comeback, std::span<const uint32_t>) override {}
  void OnLost(uint32_t) override {}
};

}  // namespace

ClientSession::ClientSession(Options options, SessionOwner* owner)
    : options_(std::move(options)),
      owner_(owner),
      attempts_({.addresses = options_.addresses,
                 .reconnect = options_.reconnect,
                 .group = options_.group,
                 .lease_ns = PrimaryLeaseWatch::kLengthNsUsual,
                 .names = options_.names}),
      reads_(4 * options_.ops),
      chain_(options_.signal_every) {
  connections_.reserve(kConnectionsMax);
}

ClientSession::~ClientSession() {
  closing_ = true;
  Nobody nobody;
  owner_ = &nobody;
  TellLast();
  if (phase_ != Phase::kDown && phase_ != Phase::kDraining) BeginDrain();
  while (phase_ == Phase::kDraining) PollDraining(options_.clock->MonotonicNs());
}

// Sends the report that the next heartbeat would carry, and waits until the server's device has it:
// closing drops what is not there yet. A dead server never has it, so this does not wait for long.
void ClientSession::TellLast() {
  if (!ready() || !news_.usage().HasNews()) return;
  may_join_ = false;
  news_.usage().Hasten();
  int64_t now_ns = options_.clock->MonotonicNs();
  const int64_t give_up_ns = now_ns + kLastReportNsMax;
  // A test's clock may stand still.
  for (uint32_t looks = 0; looks < kLooksAtStillClock && now_ns < give_up_ns;) {
    LookAtConnections();
    Poll(now_ns);
    if (!ready() || (!news_.usage().HasNews() && connections_[0].work.in_flight() == 0)) return;
    sched_yield();  // the server may want this core
    const int64_t before_ns = std::exchange(now_ns, options_.clock->MonotonicNs());
    looks = now_ns == before_ns ? looks + 1 : 0;
  }
}

bool ClientSession::Poll(int64_t now_ns) {
  switch (phase_) {
    case Phase::kReady: {
      const bool control = now_ns >= next_control_ns_;
      if (control) {  // before anything is heard
        watched_.Look(now_ns);
        if (lease_.on()) LookAtLease(now_ns);
        mixes_ |= !window_.empty() && connections_[0].work.HasReadBehindMessage();
      }
      // Posts READs that were begun just now. If they are quick, they complete in this Poll.
      PostChain();
      if (ready()) {
        lease_.on() ? PollCompletions<true>(now_ns) : PollCompletions<false>(now_ns);
      }
      if (control && ready()) PollControl(now_ns);
      return ready();
    }
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
  PollJoining(now_ns);
  CheckSilence(now_ns);
  if (ready()) SendHeartbeats(now_ns);
}

// Call it after the completions were read, so that a server is judged only after it could be heard.
// If more completions wait than one Poll reads, the server gets the time of another look.
void ClientSession::CheckSilence(int64_t now_ns) {
  const int64_t grace_ns = all_read_ ? 0 : watched_.step_max_ns();
  const auto dead = [&](const ClientConnection& connection) {
    return connection.ready() && connection.liveness.PeerDead(watched_, grace_ns);
  };
  if (std::any_of(connections_.begin(), connections_.end(), dead)) {
    return Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the server is silent for ", grant().silence_ms, " ms")));
  }
  if (request_watch_.Stuck(window_, watched_, terms_.silence_ns() + grace_ns)) {
    return Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the server answers heartbeats, but no requests")));
  }
  if (lease_.on() && all_read_ && lease_.GivesUp(now_ns, HasWork())) {
    Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the primary's lease is over, and it has no other")));
  }
}

void ClientSession::Break(absl::Status why) {
  if (!ready()) return;
  Log(true, std::string(why.message()));
  attempts_.OnBroken(std::move(why), lease_.length_ns());
  report_lost_ = true;
  BeginDrain();
}

// From here on nothing is posted. The session drains until every connection is flushed.
void ClientSession::BeginDrain() {
  phase_ = Phase::kDraining;
  drain_until_ns_ = 0;
  lease_.Disbelieve(connections_);
  chain_.Clear();
  for (ClientConnection& connection : connections_) connection.BeginDrain();
}

void ClientSession::PollDraining(int64_t now_ns) {
  using Drain = ClientConnection::Phase;
  if (drain_until_ns_ == 0) drain_until_ns_ = now_ns + kDrainNsMax;
  std::array<ibv_wc, 32> completions;
  const size_t n = memory_ == nullptr ? 0 : memory_->completions->Poll(completions);
  const bool believed = !lease_.on() || n == 0 || lease_.ValidAt(options_.clock->MonotonicNs());
  for (size_t i = 0; i < n; ++i) {
    if (believed || !HeldUntilBelieved(completions[i])) OnCompletion(completions[i], now_ns);
  }
  bool drained = true;
  for (ClientConnection& connection : connections_) {
    if (connection.phase != Drain::kDraining) continue;
    // A queue pair that the device does not flush in time is destroyed as it is.
    const bool over = (n == 0 && !connection.drain_completes) || now_ns > drain_until_ns_;
    if (over) connection.phase = Drain::kDrained;
    drained &= over;
  }
  if (!drained) return;
  DestroyConnections();
  phase_ = Phase::kDown;
  attempts_.ScheduleNext(now_ns);
  reads_.Clear();
  const bool lost = std::exchange(report_lost_, false);
  if ((lost || down()) && !closing_) owner_->OnLost(options_.number);
}

void ClientSession::DestroyConnections() {
  for (const ClientConnection& connection : connections_) {
    if (connection.reserved > 0) memory_->completions->Release(connection.reserved);
  }
  connections_.clear();
  ++fds_version_;
}

int64_t ClientSession::IdleNs(int64_t now_ns, bool somebody_waits) const {
  const auto until = [now_ns](int64_t ns) { return std::max<int64_t>(ns - now_ns, 0); };
  switch (phase_) {
    case Phase::kReady:
      return ReadyIdleNs(now_ns, somebody_waits);
    case Phase::kDown:
      return dead() ? INT64_MAX : until(attempts_.next_ns());
    case Phase::kConnecting:
      return until(connections_[0].connector->deadline_ns());
    case Phase::kDraining: {
      const bool by_itself = std::ranges::all_of(connections_, [](const ClientConnection& it) {
        return it.phase != ClientConnection::Phase::kDraining || it.drain_completes;
      });
      return by_itself ? kDrainLookNs : 0;
    }
  }
  return 0;
}

int64_t ClientSession::ReadyIdleNs(int64_t now_ns, bool somebody_waits) const {
  if (!chain_.empty() || !all_read_) return 0;
  if (WantsConnection()) return std::max<int64_t>(next_control_ns_ - now_ns, 0);
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

const RequestWindow::Entry* ClientSession::IgnoreAnswer(uint64_t sequence, uint32_t op) {
  RequestWindow::Entry* entry = window_.Find(sequence);
  if (entry == nullptr || entry->op != op) return nullptr;
  entry->op = kInvalidOp;
  return entry;
}

uint32_t ClientSession::busy() const {
  if (memory_ == nullptr) return reads_.size();
  return reads_.size() + window_.unanswered() + memory_->items.lent() + memory_->values.lent() +
         memory_->replies.lent();
}

bool ClientSession::ExpectsCompletions() const {
  if (!ready() || busy() > 0) return true;
  return std::ranges::any_of(connections_, [](const ClientConnection& it) {
    return !it.ready() || it.liveness.awaits_answer();
  });
}

void ClientSession::Arm() {
  if (memory_ == nullptr) return;
  if (absl::Status status = memory_->completions->Arm(); !status.ok()) Break(std::move(status));
}

void ClientSession::Log(bool error, const std::string& line) const {
  if (options_.log) options_.log(error, line);
}

}  // namespace gannet
