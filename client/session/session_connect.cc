// The control path of ClientSession: from an address to a grant, and again after a break.

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/session/client_session.h"
#include "client/session/handshake.h"
#include "common/base/status_macros.h"
#include "common/rdma/device.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

constexpr uint32_t kInlineBytesWanted = 256;

}  // namespace

void ClientSession::BeginConnect(int64_t now_ns) {
  phase_ = Phase::kConnecting;
  if (absl::Status status = StartLink(0, now_ns); !status.ok()) {
    GiveUpAttempt(std::move(status));
  }
}

// Starts a connection to the current address as the session's queue pair `index`.
absl::Status ClientSession::StartLink(uint32_t index, int64_t now_ns) {
  const SocketAddress& to = options_.addresses[address_];
  GANNET_ASSIGN_OR_RETURN(
      auto connector,
      Connector::Start({.to = to, .deadline_ns = now_ns + options_.connect_timeout_ns}));
  Link& link = links_.emplace_back();
  link.owner = next_owner_++ & WrId::kOwnerMask;
  link.index = index;
  link.connector = std::move(connector);
  ++fds_version_;
  return absl::OkStatus();
}

void ClientSession::PollConnecting(int64_t now_ns) {
  Connector& connector = *links_[0].connector;
  switch (connector.Poll(now_ns)) {
    case Connector::Step::kResolving:
    case Connector::Step::kConnecting:
      return;
    case Connector::Step::kResolved:
      if (absl::Status status = ConfigureLink(links_[0]); !status.ok()) {
        GiveUpAttempt(std::move(status));
      }
      return;
    case Connector::Step::kEstablished:
      return OnFirstEstablished(now_ns);
    case Connector::Step::kClosed:
    case Connector::Step::kFailed:
      return OnConnectFailed(connector);
  }
}

// The address is resolved, so the device is known: makes the queue pair, posts its receives, and
// asks the server.
absl::Status ClientSession::ConfigureLink(Link& link) {
  Connector& connector = *link.connector;
  GANNET_RETURN_IF_ERROR(MakeMemory(connector.verbs()));
  const DeviceCaps& caps = memory_->device.caps;
  const uint32_t receives =
      link.index == 0 ? SessionMemory::kFirstReceives : SessionMemory::kHeartbeatReceives;
  const uint32_t sends = std::min(caps.max_qp_wr, kSendWrs);
  GANNET_RETURN_IF_ERROR(memory_->completions->Reserve(sends + 1 + receives));
  link.reserved = sends + 1 + receives;
  ibv_cq* cq = memory_->completions->get();
  GANNET_RETURN_IF_ERROR(connector.CreateConnection(
      {.queue_pair = {.pd = memory_->pd.get(),
                      .send_cq = cq,
                      .recv_cq = cq,
                      .send_wrs = sends,
                      .recv_wrs = receives,
                      .inline_bytes = std::min(caps.max_inline_data, kInlineBytesWanted)},
       .caps = caps}));
  // One place stays free for the work request that BeginClose drains with.
  const uint32_t room = connector.connection()->limits().send_wrs - 1;
  link.work = InFlightWork(std::bit_floor(std::max(room, 1u)));
  const uint32_t first_receive =
      link.index == 0
          ? 0
          : SessionMemory::kFirstReceives + (link.index - 1) * SessionMemory::kHeartbeatReceives;
  for (uint32_t i = 0; i < receives; ++i) link.used_receives.push_back(first_receive + i);
  if (!PostReceives(link)) return absl::InternalError("the device refuses receives");
  const int64_t asked_ns = options_.clock->MonotonicNs();
  if (link.index == 0) asked_ns_ = asked_ns;
  const ConnectRequest request =
      MakeConnectRequest(token_, static_cast<uint16_t>(link.index),
                         Mix64(static_cast<uint64_t>(asked_ns) + link.owner), WallMs());
  return connector.Connect(std::as_bytes(std::span(&request, 1)));
}

absl::Status ClientSession::CheckDevice(const Device& device) const {
  const bool soft = device.kind == DeviceKind::kSoftverbs;
  if (options_.device == "auto" || options_.device == device.name ||
      (options_.device == "soft" && soft)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the way to ", endpoint(), " leads through the device ", device.name,
                   ", not through \"", options_.device, "\" as asked for"));
}

absl::Status ClientSession::MakeMemory(ibv_context* verbs) {
  if (memory_ != nullptr) {
    if (memory_->device.verbs == verbs) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "the way to ", endpoint(), " leads through another device than before; connect anew"));
  }
  GANNET_ASSIGN_OR_RETURN(const Device device, DescribeDevice(verbs));
  GANNET_RETURN_IF_ERROR(CheckDevice(device));
  const uint32_t sends = std::min(device.caps.max_qp_wr, kSendWrs);
  const uint32_t completions =
      options_.queue_pairs_max * (sends + 2) + SessionMemory::kReceives + 64;
  GANNET_ASSIGN_OR_RETURN(memory_, SessionMemory::Create(device, options_.ops, completions));
  ++fds_version_;
  return absl::OkStatus();
}

void ClientSession::OnConnectFailed(const Connector& connector) {
  RejectCode code{};
  absl::Status status = connector.status();
  if (status.ok()) {
    status = absl::UnavailableError(absl::StrCat(endpoint(), ": closed by the server"));
  }
  if (connector.refused()) {
    status = RefusalStatus(connector.private_data(), endpoint(), status, &code);
  }
  GiveUpAttempt(std::move(status), code);
}

void ClientSession::GiveUpAttempt(absl::Status why, RejectCode code) {
  // Later rounds have the same to say, unless the server refuses for another reason.
  if (!unreachable_ || code != refused_with_) Log(!was_ready_, std::string(why.message()));
  // What a server said tells more than that nobody is at another of its addresses.
  const bool spoke = links_.size() > 0 && links_[0].connector->answered();
  if (spoke || !spoke_) {
    status_ = std::move(why);
    refused_with_ = code;
    spoke_ = spoke;
  }
  const uint32_t addresses = static_cast<uint32_t>(options_.addresses.size());
  if (code == RejectCode::kSessionUnknown && token_ != 0) {
    token_ = 0;  // forgotten, or another server run: ask again, for a new one, at once
    backoff_.Reset();
  } else if (code == RejectCode::kStarting) {
    tried_ = addresses;  // this is its address
  } else {
    ++tried_;
    address_ = (address_ + 1) % addresses;
  }
  if (tried_ >= addresses) {
    tried_ = 0;
    unreachable_ = true;
    spoke_ = false;
  }
  BeginDrain();
}

void ClientSession::OnFirstEstablished(int64_t now_ns) {
  Link& link = links_[0];
  const absl::StatusOr<Grant> grant = CheckGrant(link.connector->private_data(), endpoint());
  if (!grant.ok()) return GiveUpAttempt(grant.status());
  read_depth_ = link.connector->connection()->depth().issued;
  if (read_depth_ == 0) {
    return GiveUpAttempt(absl::FailedPreconditionError(
        absl::StrCat(endpoint(), ": no RDMA READs on this connection (negotiated depth 0)")));
  }
  if (absl::Status status = owner_->OnNamed(options_.number, NameOf(*grant)); !status.ok()) {
    return GiveUpAttempt(std::move(status));
  }
  link.phase = Link::Phase::kReady;
  AdoptGrant(*grant, now_ns);
}

void ClientSession::AdoptGrant(const Grant& grant, int64_t now_ns) {
  Comeback comeback = Comeback::kFirst;
  if (was_ready_) {
    comeback = grant.incarnation != grant_.incarnation ? Comeback::kNewIncarnation
               : grant.resumed && token_ != 0          ? Comeback::kResumed
                                                       : Comeback::kNewSession;
  }
  grant_ = grant;
  view_ = IndexView::Of(grant);
  chain_.SetRegion(grant.region_address, grant.region_rkey, memory_->op_buffers.lkey());
  token_ = grant.session_token;
  eager_bytes_max_ = std::min(grant.message_bytes_max, kMessageBytesMax);
  lock_by_nic_ = static_cast<LockMode>(grant.lock_mode) == LockMode::kNicCas &&
                 memory_->device.caps.has_atomics() && options_.nic_locks;
  if (unreachable_) Log(false, absl::StrCat(endpoint(), ": connected"));
  was_ready_ = true;
  phase_ = Phase::kReady;
  status_ = absl::OkStatus();
  refused_with_ = {};
  spoke_ = false;
  tried_ = 0;
  unreachable_ = false;
  backoff_.Reset();
  server_time_.Forget();
  if (options_.server_clock) server_time_.OnTold(grant.time_ms, asked_ns_, now_ns);
  watched_.Restart(now_ns, Liveness::WatchStepNs(silence_ns()));
  request_watch_.Restart(watched_);
  links_[0].liveness.Restart(now_ns, watched_, silence_ns());
  next_read_link_ = 0;
  next_control_ns_ = now_ns;
  if (comeback == Comeback::kResumed) {
    ResendUnanswered(now_ns);
  } else {
    window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
      const RequestWindow::Entry abandoned = entry;
      window_.End(entry);
      ReturnLent(abandoned);
      if (abandoned.op != kNoOp) owner_->OnAbandoned(abandoned.op);
    });
    window_.Restart(std::min(grant.credits, RequestWindow::kCreditsMax));
  }
  if (ready()) owner_->OnReady(options_.number, comeback);
}

// Further queue pairs, one after the other, as many as the READs wanted in flight need. One that
// fails is done without.
void ClientSession::PollJoining(int64_t now_ns) {
  Link& last = links_.back();
  if (last.phase == Link::Phase::kConnecting) {
    const Connector::Step step = last.connector->Poll(now_ns);
    if (step == Connector::Step::kResolved && !ConfigureLink(last).ok()) {
      last.phase = Link::Phase::kFailed;
    } else if (step == Connector::Step::kEstablished) {
      const auto grant = CheckGrant(last.connector->private_data(), endpoint());
      const bool same = grant.ok() && grant->incarnation == grant_.incarnation &&
                        grant->session_token == grant_.session_token;
      last.phase = same ? Link::Phase::kReady : Link::Phase::kFailed;
      last.liveness.Restart(now_ns, watched_, silence_ns());
    } else if (step >= Connector::Step::kClosed) {
      last.phase = Link::Phase::kFailed;
    }
    if (last.phase == Link::Phase::kFailed) {
      Log(false, absl::StrCat(endpoint(), ": queue pair ", last.index, " could not join: ",
                              std::string(last.connector->status().message())));
    }
    return;
  }
  if (!WantsLink()) return;
  if (absl::Status status = StartLink(static_cast<uint32_t>(links_.size()), now_ns); !status.ok()) {
    Log(false, std::string(status.message()));
    options_.queue_pairs_max = static_cast<uint32_t>(links_.size());
  }
}

// The next queue pair is to be started.
bool ClientSession::WantsLink() const {
  if (links_.back().phase != Link::Phase::kReady) return false;
  const uint32_t needed = (options_.reads_wanted + read_depth_ - 1) / read_depth_;
  const uint32_t wanted =
      std::clamp(needed, 1u, std::min(options_.queue_pairs_max, kQueuePairsMax));
  return links_.size() < wanted;
}

}  // namespace gannet
