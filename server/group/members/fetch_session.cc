// A client's session without requests: it connects, READs, and sends heartbeats. Whatever fails
// ends it; its owner begins another one. The end waits, for a bounded time, until the device has
// flushed what is in flight.

#include "server/group/members/fetch_session.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/auth/handshake.h"
#include "common/auth/handshake_mac.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// A server that is heard after so much of its silence, or later, is looked at in steps of this
// share of it.
constexpr int64_t kLooksPerSilence = 6;

}  // namespace

absl::StatusOr<std::unique_ptr<FetchSession>> FetchSession::Begin(const Options& options,
                                                                  BootTime now) {
  std::unique_ptr<FetchSession> made(new FetchSession(options));
  if (options.keys != nullptr) {
    // A file that is wrong now leaves the keys as they were.
    if (options.keys->Changed()) options.keys->Reload().IgnoreError();
    made->key_ = options.keys->keys().front();
  }
  GANNET_ASSIGN_OR_RETURN(
      made->connector_, Connector::Start({.to = options.server,
                                          .device = options.device.verbs,
                                          .deadline_ns = (now + options.connect_timeout_ns).ns()}));
  return made;
}

FetchSession::~FetchSession() {
  if (connector_ == nullptr) return;
  Connection* const connection = connector_->connection();
  DrainAll(completions_.get(), {&connection, 1}, kDrainNsMax, options_.idle);
}

void FetchSession::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void FetchSession::Poll(BootTime now) {
  done_.clear();
  completed_ = false;
  if (!status_.ok()) return;
  if (!connection().connected()) return PollConnecting(now);
  PollCompletions(now);
  if (status_.ok()) PollControl(now);
}

void FetchSession::PollConnecting(BootTime now) {
  switch (connector_->Poll(now.ns())) {
    case Connector::Step::kResolving:
    case Connector::Step::kConnecting:
      return;
    case Connector::Step::kResolved:
      if (absl::Status status = Configure(); !status.ok()) Fail(std::move(status));
      return;
    case Connector::Step::kEstablished:
      return OnEstablished(now);
    case Connector::Step::kClosed:
    case Connector::Step::kFailed:
      return OnConnectFailed();
  }
}

// The address is resolved: makes the queue pair, posts its receives, and asks the server.
absl::Status FetchSession::Configure() {
  constexpr uint32_t kSends = kReadsMax + kHeartbeats;
  GANNET_ASSIGN_OR_RETURN(completions_,
                          CompletionQueue::Create(options_.device.verbs, kSends + 1 + kReceives,
                                                  /*with_channel=*/true));
  GANNET_ASSIGN_OR_RETURN(
      messages_, RegisteredBuffer::Create(options_.pd, kReceives * uint64_t{kMessageBytesMax} +
                                                           kHeartbeats * sizeof(RequestHeader)));
  GANNET_RETURN_IF_ERROR(
      connector_->CreateConnection({.queue_pair = {.pd = options_.pd, .send_wrs = kSends},
                                    .caps = options_.device.caps,
                                    .completions = completions_.get(),
                                    .receives = {.first = messages_.Sge(0, kMessageBytesMax),
                                                 .count = kReceives,
                                                 .id = {static_cast<uint8_t>(Work::kReceive)}}}));
  request_ = MakeConnectRequest(/*session_token=*/0, /*qp_index=*/0, UnpredictableNonce(),
                                options_.wall.Now());
  AuthenticateRequest(key_, options_.server.NetworkBytes(), &request_);
  return connector_->Connect(std::as_bytes(std::span(&request_, 1)));
}

void FetchSession::OnConnectFailed() {
  RejectCode code{};
  absl::Status status = connector_->status();
  if (status.ok())
    status = absl::UnavailableError(absl::StrCat(server(), ": closed by the server"));
  if (connector_->refused()) {
    status = RefusalStatus(connector_->private_data(), server(), status, &code);
  }
  Fail(std::move(status));
}

void FetchSession::OnEstablished(BootTime now) {
  absl::StatusOr<Grant> grant = TakeGrant(connector_->private_data(), server(), key_, request_);
  if (!grant.ok()) return Fail(grant.status());
  if (connection().depth().issued == 0) {
    return Fail(absl::FailedPreconditionError(
        absl::StrCat(server(), ": no RDMA READs on this connection (negotiated depth 0)")));
  }
  grant_ = *grant;
  view_ = IndexView::Of(grant_);
  acknowledged_ = newest_ = static_cast<uint32_t>(grant_.index.generation);
  sent_at_ = looked_at_ = next_control_ = now;
  connection().Open();
}

void FetchSession::PollCompletions(BootTime now) {
  std::array<ibv_wc, kReadsMax> completions;
  const size_t n = completions_->Poll(completions);
  completed_ = n > 0;
  for (size_t i = 0; i < n && status_.ok(); ++i) OnCompletion(completions[i], now);
  if (completions_->broken()) {
    Fail(absl::UnavailableError(absl::StrCat(server(), ": the device lost its completions")));
  }
}

void FetchSession::OnCompletion(const ibv_wc& completion, BootTime now) {
  if (completion.status != IBV_WC_SUCCESS) {
    return Fail(CompletionStatus(completion, absl::StrCat(server(), ": connection broken")));
  }
  const WrId id = WrId::Unpack(completion.wr_id);
  switch (static_cast<Work>(id.kind)) {
    case Work::kRead:
      --in_flight_;
      done_.push_back(id.slot);
      return;
    case Work::kSend:
      --sends_in_flight_;
      return;
    case Work::kReceive:
      silent_ns_ = 0;
      looked_at_ = now;
      OnMessage(connection().Message(id.slot, completion.byte_len));
      connection().Recycle(id.slot);
      if (!connection().PostReceives()) {
        Fail(absl::UnavailableError(absl::StrCat(server(), ": the device refuses receives")));
      }
      return;
  }
}

void FetchSession::OnMessage(std::span<const std::byte> message) {
  ReplyView reply;
  if (message.size() > kMessageBytesMax || !DecodeReply(message, &reply)) {
    return Fail(absl::UnavailableError(absl::StrCat(server(), " sent what is no reply")));
  }
  if (reply.header.opcode != static_cast<uint8_t>(Opcode::kHeartbeat) || answered_ == sent_) return;
  ++answered_;
  index_wanted_ = false;
  const std::optional<IndexNews> news = IndexNews::Decode(reply.value, view_.region_bytes);
  if (!news || news->index.generation < view_.index.generation) return;
  view_.index = news->index;
  view_.next = news->next;
  newest_ = static_cast<uint32_t>(news->newest_generation());
}

void FetchSession::PollControl(BootTime now) {
  const bool asks = (index_wanted_ || unsaid_) && sent_ == answered_;
  if (now < next_control_ && !asks) return;
  next_control_ = now + kControlNs;
  if (connector_->Poll(now.ns()) >= Connector::Step::kClosed) {
    return Fail(absl::UnavailableError(
        absl::StrCat(server(), ": the server closed the connection, or died")));
  }
  if (sent_ != answered_) {
    silent_ns_ += std::clamp<int64_t>(now - looked_at_, 0, silence_ns() / kLooksPerSilence);
    if (silent_ns_ > silence_ns()) {
      return Fail(absl::UnavailableError(
          absl::StrCat(server(), ": the server is silent for ", grant_.silence_ms, " ms")));
    }
  }
  looked_at_ = now;
  if ((asks || now >= HeartbeatDue()) && MayAsk()) SendHeartbeat(now);
}

void FetchSession::SendHeartbeat(BootTime now) {
  RequestHeader heartbeat{};
  heartbeat.opcode = static_cast<uint8_t>(Opcode::kHeartbeat);
  heartbeat.heartbeat.index_acknowledged = acknowledged_;
  heartbeat.heartbeat.index_newest = newest_;
  const uint64_t offset =
      kReceives * uint64_t{kMessageBytesMax} + sent_ % kHeartbeats * sizeof(RequestHeader);
  std::memcpy(messages_.data() + offset, &heartbeat, sizeof(heartbeat));
  ibv_sge sge = messages_.Sge(offset, sizeof(heartbeat));
  ibv_send_wr send = SendRequest(WrId{.kind = static_cast<uint8_t>(Work::kSend)}.Pack(), &sge,
                                 unsigned{IBV_SEND_SIGNALED} | connection().send_flags());
  if (connection().Post(&send) != PostResult::kPosted) {
    return Fail(absl::UnavailableError(absl::StrCat(server(), ": the device refused a heartbeat")));
  }
  unsaid_ = false;
  ++sent_;
  ++sends_in_flight_;
  sent_at_ = now;
}

void FetchSession::AddRead(uint32_t tag, uint64_t offset, uint32_t bytes, std::byte* to,
                           uint32_t lkey) {
  GANNET_CHECK(room() > 0, "room for a READ");
  sges_[chained_] = {reinterpret_cast<uint64_t>(to), bytes, lkey};
  chain_[chained_] = ReadRequest(
      WrId{.kind = static_cast<uint8_t>(Work::kRead), .slot = tag}.Pack(), &sges_[chained_],
      grant_.region_address + offset, grant_.region_rkey, IBV_SEND_SIGNALED);
  if (chained_ > 0) chain_[chained_ - 1].next = &chain_[chained_];
  ++chained_;
}

void FetchSession::Post() {
  if (chained_ == 0 || !ready()) return;
  in_flight_ += std::exchange(chained_, 0);
  if (connection().Post(chain_.data()) != PostResult::kPosted) {
    Fail(absl::UnavailableError(absl::StrCat(server(), ": the device refused a chain")));
  }
}

void FetchSession::Arm() {
  if (!ready()) return;
  completions_->TakeEvent();
  if (absl::Status status = completions_->Arm(); !status.ok()) Fail(std::move(status));
}

BootTime FetchSession::deadline() const {
  if (!connection().connected()) return BootTime::FromNs(connector_->deadline_ns());
  BootTime deadline = BootTime::Never();
  if (MayAsk()) deadline = HeartbeatDue();
  if (sent_ != answered_) {
    deadline = std::min(deadline, looked_at_ + silence_ns() / kLooksPerSilence);
  }
  return deadline;
}

}  // namespace gannet
