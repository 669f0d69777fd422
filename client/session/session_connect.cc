// The control path of ClientSession: from an address to a grant, and again after a break.

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/session/client_session.h"
#include "common/auth/handshake.h"
#include "common/base/status_macros.h"
#include "common/protocol/not_primary.h"
#include "common/rdma/device.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

constexpr uint32_t kInlineBytesWanted = 256;

// FailedPrecondition: the server is reached through another device than the user `wanted`.
absl::Status CheckDevice(const Device& device, const std::string& wanted,
                         const std::string& endpoint) {
  const bool soft = device.kind == DeviceKind::kSoftverbs;
  if (wanted == "auto" || wanted == device.name || (wanted == "soft" && soft)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("the way to ", endpoint,
                                                    " leads through the device ", device.name,
                                                    ", not through \"", wanted, "\" as asked for"));
}

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
  phase_ = Phase::kConnecting;
  TakeKey();
  if (absl::Status status = StartConnection(now_ns); !status.ok())
    FailAttempt({.why = std::move(status)});
}

// Reads the key again, because it may have been changed since the last connection. If the file is
// wrong now, the key stays as it was.
void ClientSession::TakeKey() {
  if (options_.auth_file == nullptr) return;
  if (options_.auth_file->Changed()) {
    const absl::Status status = options_.auth_file->Reload();
    if (!status.ok()) Log(true, absl::StrCat(endpoint(), ": ", std::string(status.message())));
  }
  key_ = options_.auth_file->keys().front();
}

// Starts the session's next connection, to the current address.
absl::Status ClientSession::StartConnection(int64_t now_ns) {
  const int64_t timeout_ns = connections_.empty()
                                 ? attempts_.AttemptNs(now_ns, options_.connect_timeout_ns)
                                 : options_.connect_timeout_ns;
  GANNET_ASSIGN_OR_RETURN(auto connector, Connector::Start({.to = attempts_.address(),
                                                            .deadline_ns = now_ns + timeout_ns}));
  const auto index = static_cast<uint32_t>(connections_.size());
  ClientConnection& connection = connections_.emplace_back();
  connection.id = next_connection_id_++ & WrId::kOwnerMask;
  connection.index = index;
  connection.connector = std::move(connector);
  ++fds_version_;
  return absl::OkStatus();
}

void ClientSession::PollConnecting(int64_t now_ns) {
  Connector& connector = *connections_[0].connector;
  switch (connector.Poll(now_ns)) {
    case Connector::Step::kResolving:
    case Connector::Step::kConnecting:
      return;
    case Connector::Step::kResolved:
      if (absl::Status status = ConfigureConnection(connections_[0]); !status.ok()) {
        FailAttempt({.why = std::move(status)});
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
absl::Status ClientSession::ConfigureConnection(ClientConnection& connection) {
  Connector& connector = *connection.connector;
  GANNET_RETURN_IF_ERROR(MakeMemory(connector.verbs()));
  const DeviceCaps& caps = memory_->device.caps;
  const uint32_t first_receive = SessionMemory::FirstReceive(connection.index);
  const uint32_t receives = SessionMemory::FirstReceive(connection.index + 1) - first_receive;
  const uint32_t sends = std::min(caps.max_qp_wr, kSendWrs);
  GANNET_RETURN_IF_ERROR(memory_->completions->Reserve(sends + 1 + receives));
  connection.reserved = sends + 1 + receives;
  ibv_cq* cq = memory_->completions->get();
  GANNET_RETURN_IF_ERROR(connector.CreateConnection(
      {.queue_pair = {.pd = memory_->domains->pd(memory_->domain),
                      .send_cq = cq,
                      .recv_cq = cq,
                      .send_wrs = sends,
                      .recv_wrs = receives,
                      .send_sges = memory_->pieces_max(),
                      .inline_bytes = std::min(caps.max_inline_data, kInlineBytesWanted)},
       .caps = caps}));
  // One entry of the send queue stays free for the work request that BeginClose drains with.
  const uint32_t room = connector.connection()->limits().send_wrs - 1;
  connection.work = InFlightWork(std::bit_floor(std::max(room, 1u)));
  for (uint32_t i = 0; i < receives; ++i) connection.used_receives.push_back(first_receive + i);
  if (!connection.PostReceives(*memory_)) {
    return absl::InternalError("the device refuses receives");
  }
  const int64_t asked_ns = options_.clock->MonotonicNs();
  if (connection.index == 0) asked_ns_ = asked_ns;
  ConnectRequest& request = connection.request;
  request = MakeConnectRequest(token_, static_cast<uint16_t>(connection.index),
                               Mix64(static_cast<uint64_t>(asked_ns) + connection.id), WallMs());
  if (key_) {
    AuthenticateRequest(*key_, attempts_.address().NetworkBytes(), &request);
  }
  return connector.Connect(std::as_bytes(std::span(&request, 1)));
}

absl::Status ClientSession::MakeMemory(ibv_context* verbs) {
  if (memory_ != nullptr) {
    if (memory_->device.verbs == verbs) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "the way to ", endpoint(), " leads through another device than before; connect anew"));
  }
  GANNET_ASSIGN_OR_RETURN(const Device device, DescribeDevice(verbs));
  GANNET_RETURN_IF_ERROR(CheckDevice(device, options_.device, endpoint()));
  const uint32_t sends = std::min(device.caps.max_qp_wr, kSendWrs);
  const uint32_t completions =
      (options_.connections_max + 1) * (sends + 2) + SessionMemory::kReceives + 64;
  GANNET_ASSIGN_OR_RETURN(
      memory_, SessionMemory::Create(device, options_.domains, options_.ops, completions));
  ++fds_version_;
  return absl::OkStatus();
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
  if (attempts_.IsNews(failure.code)) Log(!was_ready(), std::string(failure.why.message()));
  failure.answered = !connections_.empty() && connections_[0].connector->answered();
  // The server forgot the session, or it is another run of the server: ask for a new session.
  failure.session_forgotten = failure.code == RejectCode::kSessionUnknown && token_ != 0;
  if (failure.session_forgotten) token_ = 0;
  attempts_.OnFailed(std::move(failure));
  BeginDrain();
}

// Returns the grant if it is the server's, and one that this client can use.
absl::StatusOr<Grant> ClientSession::TakeGrant(const ClientConnection& connection) const {
  const std::span<const std::byte> private_data = connection.connector->private_data();
  if (key_) {
    GANNET_RETURN_IF_ERROR(CheckGrantMac(private_data, endpoint(), *key_, connection.request));
  }
  return CheckGrant(private_data, endpoint());
}

void ClientSession::OnFirstEstablished(int64_t now_ns) {
  ClientConnection& first = connections_[0];
  const absl::StatusOr<Grant> grant = TakeGrant(first);
  if (!grant.ok()) return FailAttempt({.why = grant.status()});
  terms_.read_depth = first.connector->connection()->depth().issued;
  if (terms_.read_depth == 0) {
    return FailAttempt(
        {.why = absl::FailedPreconditionError(
             absl::StrCat(endpoint(), ": no RDMA READs on this connection (negotiated depth 0)"))});
  }
  if (absl::Status status = owner_->OnNamed(options_.number, NameToUse(*grant)); !status.ok()) {
    return FailAttempt({.why = std::move(status)});
  }
  first.phase = ClientConnection::Phase::kReady;
  AdoptGrant(*grant, now_ns);
}

void ClientSession::AdoptGrant(const Grant& grant, int64_t now_ns) {
  const Comeback comeback = HowItCameBack(grant);
  // A member that took over knows the sessions of the former primary.
  const bool resumed = comeback == Comeback::kResumed ||
                       (comeback == Comeback::kFailedOver && grant.resumed && token_ != 0);
  terms_.grant = grant;
  terms_.view = IndexView::Of(grant);
  index_watch_.Restart(grant.index);
  terms_.eager_bytes_max = std::min<uint32_t>(grant.message_bytes_max, kMessageBytesMax);
  terms_.authenticated = key_.has_value();
  terms_.lock_by_nic = !terms_.read_only() &&
                       static_cast<LockMode>(grant.lock_mode) == LockMode::kNicCas &&
                       memory_->device.caps.has_atomics() && options_.nic_locks;
  token_ = grant.session_token;
  chain_.SetRegion(grant.region_address, grant.region_rkey, memory_->op_buffers.lkey());
  if (unreachable()) Log(false, absl::StrCat(endpoint(), ": connected"));
  attempts_.OnConnected(grant.history != 0);
  phase_ = Phase::kReady;
  lease_.Restart(grant, asked_ns_, now_ns);
  server_time_.Forget();
  if (options_.server_clock) server_time_.OnTold(grant.time_ms, asked_ns_, now_ns);
  watched_.Restart(now_ns, Liveness::WatchStepNs(terms_.silence_ns()));
  request_watch_.Restart(watched_);
  connections_[0].liveness.Restart(now_ns, watched_, terms_.silence_ns());
  news_.Restart(grant, now_ns, Liveness::HeartbeatNs(terms_.silence_ns()));
  next_read_connection_ = 0;
  next_control_ns_ = now_ns;
  std::vector<uint32_t> abandoned;
  if (resumed) {
    ResendUnanswered(now_ns);
  } else {
    AbandonUnanswered(&abandoned);
    window_.Restart(std::min(grant.credits, RequestWindow::kCreditsMax));
  }
  if (ready()) owner_->OnReady(options_.number, comeback, abandoned);
}

// REQUIRES: terms_.grant is still the last connection's.
Comeback ClientSession::HowItCameBack(const Grant& grant) const {
  if (!was_ready()) return Comeback::kFirst;
  if (grant.incarnation != terms_.grant.incarnation) {
    const bool same_items = grant.history != 0 && grant.history == terms_.grant.history;
    return same_items ? Comeback::kFailedOver : Comeback::kNewIncarnation;
  }
  return grant.resumed && token_ != 0 ? Comeback::kResumed : Comeback::kNewSession;
}

// The server answers from its record what it did before. A request that nobody waits for any more
// is not sent again. So a request that the server cannot answer holds up only one connection.
void ClientSession::ResendUnanswered(int64_t now_ns) {
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    if (entry.op == kInvalidOp) {
      memory_->ReturnLent(entry);
      window_.End(entry);
      return;
    }
    AddRequest(entry, now_ns);
  });
  PostChain();
}

void ClientSession::AbandonUnanswered(std::vector<uint32_t>* abandoned) {
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    if (entry.op != kInvalidOp) abandoned->push_back(entry.op);
    memory_->ReturnLent(entry);
    window_.End(entry);
  });
}

// Makes further connections, one after the other, as many as the READs wanted in flight need, and
// one more if they are kept apart from requests. The session does without one that fails.
void ClientSession::PollJoining(int64_t now_ns) {
  if (connections_.back().phase == ClientConnection::Phase::kConnecting) {
    return PollLastJoining(now_ns);
  }
  if (!WantsConnection()) return;
  if (absl::Status status = StartConnection(now_ns); !status.ok()) {
    Log(false, std::string(status.message()));
    may_join_ = false;
  }
}

void ClientSession::PollLastJoining(int64_t now_ns) {
  using Phase = ClientConnection::Phase;
  ClientConnection& last = connections_.back();
  const Connector::Step step = last.connector->Poll(now_ns);
  if (step == Connector::Step::kResolved && !ConfigureConnection(last).ok()) {
    last.phase = Phase::kFailed;
  } else if (step == Connector::Step::kEstablished) {
    const absl::StatusOr<Grant> joined = TakeGrant(last);
    const bool same = joined.ok() && joined->incarnation == grant().incarnation &&
                      joined->session_token == grant().session_token;
    last.phase = same ? Phase::kReady : Phase::kFailed;
    last.liveness.Restart(now_ns, watched_, terms_.silence_ns());
  } else if (step >= Connector::Step::kClosed) {
    last.phase = Phase::kFailed;
  }
  if (last.phase == Phase::kFailed) {
    Log(false, absl::StrCat(endpoint(), ": connection ", last.index,
                            " could not join: ", std::string(last.connector->status().message())));
  }
}

// Returns whether the next connection should be started.
bool ClientSession::WantsConnection() const {
  if (!may_join_ || !connections_.back().ready()) return false;
  const uint32_t needed = (options_.reads_wanted + terms_.read_depth - 1) / terms_.read_depth;
  const uint32_t for_reads = std::clamp(needed, 1u, options_.connections_max);
  return connections_.size() < std::min(for_reads + (mixes_ ? 1 : 0), kConnectionsMax);
}

}  // namespace gannet
