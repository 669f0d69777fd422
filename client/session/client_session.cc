#include "client/session/client_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet {

ClientSession::ClientSession(Options options, SessionOwner* owner)
    : options_(std::move(options)),
      owner_(owner),
      reads_(4 * options_.ops),
      ordered_(4 * options_.ops),
      requests_(options_.ops),
      chain_(options_.signal_every) {
  links_.reserve(kQueuePairsMax);
}

ClientSession::~ClientSession() {
  closing_ = true;
  if (phase_ != Phase::kDown && phase_ != Phase::kDraining) BeginDrain();
  while (phase_ == Phase::kDraining) PollDraining(options_.clock->MonotonicNs());
}

void ClientSession::Poll(int64_t now_ns) {
  switch (phase_) {
    case Phase::kReady: {
      const bool control = now_ns >= next_control_ns_;
      if (control) watched_.Look(now_ns);  // before anything is heard
      // READs that were begun just now: where they are quick, they complete in the same Poll.
      PostChain();
      if (ready()) PollCompletions(now_ns);
      if (control && ready()) PollControl(now_ns);
      if (ready()) Flush(now_ns);
      return;
    }
    case Phase::kDown:
      if (now_ns >= retry_ns_) BeginConnect(now_ns);
      return;
    case Phase::kConnecting:
      PollConnecting(now_ns);
      return;
    case Phase::kDraining:
      PollDraining(now_ns);
      return;
  }
}

// What need not be looked at in every Poll: a system call each.
void ClientSession::PollControl(int64_t now_ns) {
  next_control_ns_ = now_ns + kControlNs;
  for (Link& link : links_) {
    const Connector::Step step = link.connector->Poll(now_ns);
    if (link.phase == Link::Phase::kReady && step >= Connector::Step::kClosed) {
      return Break(absl::UnavailableError(
          absl::StrCat(endpoint(), ": the server closed the connection, or died")));
    }
  }
  PollJoining(now_ns);
  CheckSilence();
  if (ready()) SendHeartbeats(now_ns);
}

// After the completions were read: whoever is judged had the chance to be heard. Where more of them
// wait than one Poll reads, the server gets another look's time.
void ClientSession::CheckSilence() {
  const int64_t grace_ns = all_read_ ? 0 : watched_.step_max_ns();
  const auto dead = [&](const Link& link) {
    return link.phase == Link::Phase::kReady && link.liveness.PeerDead(watched_, grace_ns);
  };
  if (std::any_of(links_.begin(), links_.end(), dead)) {
    return Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the server is silent for ", grant_.silence_ms, " ms")));
  }
  if (request_watch_.Stuck(window_, watched_, silence_ns() + grace_ns)) {
    Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the server answers heartbeats, but no requests")));
  }
}

void ClientSession::Break(absl::Status why) {
  if (phase_ != Phase::kReady) return;
  status_ = std::move(why);
  Log(true, std::string(status_.message()));
  report_lost_ = true;
  BeginDrain();
}

// Nothing is posted from here on. `phase_` is draining until every queue pair is flushed.
void ClientSession::BeginDrain() {
  phase_ = Phase::kDraining;
  drain_until_ns_ = 0;
  chain_.Clear();
  for (Link& link : links_) {
    if (link.connector->connection() == nullptr) {
      link.phase = Link::Phase::kDrained;
      continue;
    }
    const WrId id{static_cast<uint8_t>(LinkWork::kDrain), link.owner, 0};
    link.drain_completes = link.connector->connection()->BeginClose(id.Pack());
    link.phase = Link::Phase::kDraining;
  }
}

void ClientSession::PollDraining(int64_t now_ns) {
  if (drain_until_ns_ == 0) drain_until_ns_ = now_ns + kDrainNsMax;
  std::array<ibv_wc, 32> completions;
  const size_t n = memory_ == nullptr ? 0 : memory_->completions->Poll(completions);
  for (size_t i = 0; i < n; ++i) OnCompletion(completions[i], now_ns);
  bool drained = true;
  for (Link& link : links_) {
    if (link.phase != Link::Phase::kDraining) continue;
    // A queue pair that the device will not flush is destroyed as it is.
    const bool over = (n == 0 && !link.drain_completes) || now_ns > drain_until_ns_;
    if (over) link.phase = Link::Phase::kDrained;
    drained &= over;
  }
  if (!drained) return;
  DestroyLinks();
  phase_ = Phase::kDown;
  retry_ns_ = NextAttemptNs(now_ns);
  reads_.Clear();
  ordered_.Clear();
  const bool lost = std::exchange(report_lost_, false);
  if ((lost || down()) && !closing_) owner_->OnLost(options_.number);
}

// The server's next address at once; the first one again after a pause.
int64_t ClientSession::NextAttemptNs(int64_t now_ns) {
  // One that is starting answered already: it is not a connection that broke.
  const bool again = options_.reconnect || (!was_ready_ && (tried_ > 0 || starting()));
  if (!again) return kNever;
  return tried_ > 0 ? now_ns : now_ns + backoff_.NextNs(Mix64(static_cast<uint64_t>(now_ns)));
}

int64_t ClientSession::IdleNs(int64_t now_ns, bool somebody_waits) const {
  switch (phase_) {
    case Phase::kReady:
      return ReadyIdleNs(now_ns, somebody_waits);
    case Phase::kDown:
      return retry_ns_ == kNever ? kNever : std::max<int64_t>(retry_ns_ - now_ns, 0);
    case Phase::kConnecting:
      return std::max<int64_t>(links_[0].connector->deadline_ns() - now_ns, 0);
    case Phase::kDraining:
      return DrainsByItself() ? kDrainLookNs : 0;
  }
  return 0;
}

int64_t ClientSession::ReadyIdleNs(int64_t now_ns, bool somebody_waits) const {
  if (HasSomethingToPost() || !all_read_) return 0;
  if (WantsLink()) return std::max<int64_t>(next_control_ns_ - now_ns, 0);
  int64_t idle_ns = kNever;
  for (const Link& link : links_) {
    if (link.phase == Link::Phase::kReady) {
      idle_ns = std::min(idle_ns, link.liveness.IdleNs(now_ns, somebody_waits));
    } else if (link.phase == Link::Phase::kConnecting) {
      idle_ns = std::min(idle_ns, std::max<int64_t>(link.connector->deadline_ns() - now_ns, 0));
    }
  }
  return idle_ns;
}

// Each queue pair that is drained has a completion to come.
bool ClientSession::DrainsByItself() const {
  return std::ranges::all_of(links_, [](const Link& link) {
    return link.phase != Link::Phase::kDraining || link.drain_completes;
  });
}

void ClientSession::SetServerSet(uint64_t hash) {
  if (memory_ != nullptr) memory_->SetServerSet(hash);
}

void ClientSession::DestroyLinks() {
  for (Link& link : links_) {
    if (link.reserved > 0) memory_->completions->Release(link.reserved);
  }
  links_.clear();
  ++fds_version_;
}

uint32_t ClientSession::busy() const {
  const uint32_t queued = reads_.size() + ordered_.size() + (requests_.empty() ? 0 : 1);
  if (memory_ == nullptr) return queued;
  return queued + window_.unanswered() + memory_->items.lent() + memory_->values.lent() +
         memory_->replies.lent();
}

bool ClientSession::ExpectsCompletions() const {
  if (phase_ != Phase::kReady || busy() > 0) return true;
  return std::ranges::any_of(links_, [](const Link& link) {
    return link.phase != Link::Phase::kReady || link.liveness.awaits_answer();
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
