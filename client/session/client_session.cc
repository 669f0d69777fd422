// One server for a client, as a state machine: down, connecting, ready, draining, and down again.
// Its parts do the work (client_session.h); here is what goes on in each phase, and in which order.
// Whatever goes wrong ends in GiveUp, which drains all connections: nothing is posted any more, and
// the session is down only when every queue pair is flushed, or was given up.

#include "client/session/client_session.h"

#include <sched.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/session/liveness.h"
#include "common/rdma/connector.h"

namespace gannet {

ClientSession::ClientSession(Options options, SessionOwner* owner)
    : options_(std::move(options)),
      reports_(options_.number, owner),
      first_({.options = &options_,
              .reports = &reports_,
              .terms = &terms_,
              .memory = &memory_,
              .connections = &connections_}),
      sends_({.options = &options_,
              .phase = &phase_,
              .reports = &reports_,
              .terms = &terms_,
              .memory = &memory_,
              .connections = &connections_,
              .usage = &news_.usage(),
              .watched = &watched_}),
      requests_({.reports = &reports_,
                 .memory = &memory_,
                 .connections = &connections_,
                 .sends = &sends_,
                 .watched = &watched_}),
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
                .rails = &server_rails_,
                .connections = &connections_,
                .maker = &first_.maker(),
                .sends = &sends_,
                .watched = &watched_}),
      waits_({.phase = &phase_,
              .attempts = &first_.attempts(),
              .memory = &memory_,
              .connections = &connections_,
              .lease = &lease_,
              .sends = &sends_,
              .requests = &requests_,
              .completions = &completions_,
              .joining = &joining_}),
      rails_({.options = &options_,
              .phase = &phase_,
              .attempts = &first_.attempts(),
              .rails = &server_rails_,
              .connections = &connections_,
              .sends = &sends_,
              .requests = &requests_,
              .heartbeats = &heartbeats_,
              .completions = &completions_,
              .waits = &waits_}) {}

ClientSession::~ClientSession() {
  int64_t now_ns = options_.clock.get().MonotonicNs();
  BeginEnd(now_ns);
  uint32_t looks = 0;
  while (!PollEnd(now_ns)) {
    if (ready()) sched_yield();  // the server may want this core
    const int64_t before_ns = std::exchange(now_ns, options_.clock.get().MonotonicNs());
    looks = now_ns == before_ns ? looks + 1 : 0;
    if (looks == kLooksAtStillClock) tell_until_ns_ = now_ns;  // a test's clock may stand still
  }
}

void ClientSession::BeginEnd(int64_t now_ns) {
  reports_.End();
  tell_until_ns_ = now_ns;
  if (!ready() || !news_.usage().HasNews()) return;
  joining_.Stop();
  news_.usage().Hasten();
  tell_until_ns_ = now_ns + kLastReportNsMax;
}

// Sends the report that the next heartbeat would carry, and waits until the server's device has it:
// closing drops what is not there yet. A dead server never has it, so this does not wait for long.
bool ClientSession::PollEnd(int64_t now_ns) {
  if (ready() && now_ns < tell_until_ns_) {
    waits_.LookAtConnections();
    Poll(now_ns);
  }
  const bool told = !ready() || now_ns >= tell_until_ns_ ||
                    (!news_.usage().HasNews() && connections_.first().work.in_flight() == 0);
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
      if (now_ns >= attempts().next_ns()) {
        phase_.Set(Phase::kConnecting);
        if (first_.Begin(now_ns) == FirstConnection::Step::kFailed) BeginDrain();
      }
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

void ClientSession::PollConnecting(int64_t now_ns) {
  switch (first_.Poll(now_ns)) {
    case FirstConnection::Step::kUnderWay:
      return;
    case FirstConnection::Step::kFailed:
      return BeginDrain();
    case FirstConnection::Step::kMade:
      return BecomeReady(now_ns);
  }
}

void ClientSession::BecomeReady(int64_t now_ns) {
  ClientConnection& first = connections_.first();
  const Grant& grant = terms_.grant;
  phase_.Set(Phase::kReady);
  waits_.LookAtConnections();
  lease_.Restart(grant, first.asked_ns, now_ns);
  watched_.Restart(now_ns, Liveness::WatchStepNs(terms_.silence_ns()));
  first.liveness.Restart(now_ns, watched_, terms_.silence_ns());
  sends_.Restart();
  heartbeats_.Restart(now_ns);
  requests_.Restart();
  completions_.LookAtTerms();
  const bool asks_for_rails = options_.rails > 1 && (grant.features & kGrantRails) != 0;
  const bool in_order = (grant.features & kGrantOrdersRequests) != 0;
  if (asks_for_rails) requests_.AskForRails(in_order ? RailsAsk::kRailsInOrder : RailsAsk::kRails);
  rails_.Restart(first.to, asks_for_rails);
  terms_.may_keep_locks = asks_for_rails && in_order && !terms_.lock_by_nic;
  if (options_.item_leases && (grant.features & kGrantItemLeases) != 0)
    requests_.AskForItemLeases();
  std::vector<uint32_t> abandoned;
  if (first_.resumed()) {
    requests_.Resend(now_ns);
  } else {
    requests_.BeginAnew(grant.credits, &abandoned);
  }
  if (ready()) reports_.OnReady(first_.comeback(), abandoned);
}

inline void ClientSession::PollReady(int64_t now_ns) {
  const bool control = waits_.ControlDue(now_ns);
  if (control) {  // before anything is heard
    watched_.Look(now_ns);
    if (lease_.on()) heartbeats_.AskForLease(now_ns, waits_.HasWork());
    sends_.LookForMixing(!requests_.empty());
  }
  // Posts READs that were begun just now. If they are quick, they complete in this Poll.
  sends_.Post();
  if (ready()) completions_.Poll(now_ns);
  if (lease_.holds()) waits_.LookAtConnections();  // the next Poll asks for the lease
  if (control && ready()) PollControl(now_ns);
}

// Does what costs a system call each, and so is not done in every Poll.
void ClientSession::PollControl(int64_t now_ns) {
  waits_.OnControl(now_ns);
  for (ClientConnection& connection : connections_) {
    const Connector::Step step = connection.connector->Poll(now_ns);
    if (!connection.ready() || step < Connector::Step::kClosed) continue;
    phase_.BreakOne(connection, absl::UnavailableError(absl::StrCat(
                                    endpoint(), ": the server closed the connection, or died")));
    if (!ready()) return;
  }
  if (const auto told = requests_.TakeRails()) rails_.Learn(*told);
  rails_.Poll(now_ns);
  if (!ready()) return;
  joining_.Poll(now_ns);
  completions_.LookAtTerms();
  // Here, because the owner's requests take all credits that are left after a Poll.
  if (requests_.has_questions()) requests_.SendQuestions(now_ns);
  CheckSilence(now_ns);
  if (ready()) heartbeats_.SendDue(now_ns);
}

// Call it after the completions were taken, so that a server is judged only after it could be
// heard. If more completions wait than one Poll takes, the server gets the time of another look.
void ClientSession::CheckSilence(int64_t now_ns) {
  const int64_t grace_ns = completions_.all_taken() ? 0 : watched_.step_max_ns();
  while (ClientConnection* const dead = connections_.FindDead(watched_, grace_ns)) {
    phase_.BreakOne(*dead,
                    absl::UnavailableError(absl::StrCat(endpoint(), ": the server is silent for ",
                                                        grant().silence_ms, " ms")));
    if (!ready()) return;
  }
  if (requests_.Stuck(terms_.silence_ns() + grace_ns)) {
    return Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the server answers heartbeats, but no requests")));
  }
  if (lease_.on() && completions_.all_taken() && lease_.GivesUp(now_ns, waits_.HasWork())) {
    Break(absl::UnavailableError(
        absl::StrCat(endpoint(), ": the primary's lease is over, and it has no other")));
  }
}

void ClientSession::GiveUp(absl::Status why) {
  options_.Log(true, std::string(why.message()));
  first_.attempts().OnBroken(std::move(why), lease_.length_ns());
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
  first_.attempts().ScheduleNext(now_ns);
  sends_.ForgetQueued();
  if (phase_.TakeLoss() || down()) reports_.OnLost();
}

void ClientSession::SetServerSet(uint64_t hash) {
  if (memory_ != nullptr) memory_->SetServerSet(hash);
}

}  // namespace gannet
