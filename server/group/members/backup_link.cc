// Connects twice, for messages and for the stream, takes the primary's messages, and fences. After
// BeginFence both queue pairs are in the error state; the link is over once they are flushed, and
// until then the primary could still WRITE.

#include "server/group/members/backup_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/auth/handshake.h"
#include "common/base/status_macros.h"
#include "common/protocol/versions.h"
#include "common/rdma/queue_pair.h"
#include "common/rdma/status.h"
#include "server/group/members/replica_request.h"

namespace gannet {
namespace {

constexpr uint32_t kCompletions = ControlMessages::kCompletionsMax + 8;

}  // namespace

// A file that is wrong now leaves the keys as they were.
std::optional<AuthKey> ReplicaKeyOf(AuthFile* file) {
  if (file == nullptr) return std::nullopt;
  if (file->Changed()) file->Reload().IgnoreError();
  const auto it = std::ranges::find_if(file->keys(), &AuthKey::replica);
  if (it == file->keys().end()) return std::nullopt;
  return *it;
}

absl::StatusOr<std::unique_ptr<BackupLink>> BackupLink::Start(const Options& options) {
  std::unique_ptr<BackupLink> link(new BackupLink(options));
  GANNET_ASSIGN_OR_RETURN(link->ring_, SharedMemory::Create({.name = "gannet-ring",
                                                             .bytes = options.ring_bytes,
                                                             .huge_pages = HugePages::kOff,
                                                             .remote_write = true}));
  const ibv_context* const only =
      options.devices.size() == 1 ? options.devices.front().verbs : nullptr;
  for (std::unique_ptr<Connector>& connector : link->connectors_) {
    GANNET_ASSIGN_OR_RETURN(
        connector,
        Connector::Start({.to = options.to, .device = only, .deadline_ns = options.deadline.ns()}));
  }
  return link;
}

void BackupLink::Fail(absl::Status why) {
  if (status_.ok()) status_ = std::move(why);
}

void BackupLink::Poll(BootTime now) {
  PollConnector(LinkConnection::kControl, now);
  PollConnector(LinkConnection::kStream, now);
  if (cq_ == nullptr) return;
  std::array<ibv_wc, 16> completions;
  while (const size_t n = cq_->Poll(completions)) {
    for (size_t i = 0; i < n; ++i) OnCompletion(completions[i]);
  }
  if (fencing()) {
    for (const auto& connector : connectors_) connector->connection()->LookDrained(true);
  }
  if (cq_->broken()) Fail(absl::UnavailableError("the device lost a completion queue"));
}

void BackupLink::PollConnector(LinkConnection which, BootTime now) {
  const auto i = static_cast<size_t>(which);
  Connector& connector = *connectors_[i];
  switch (connector.Poll(now.ns())) {
    case Connector::Step::kResolving:
    case Connector::Step::kConnecting:
      return;
    case Connector::Step::kResolved:
      if (fencing()) return;
      if (absl::Status status = Configure(which); !status.ok()) Fail(std::move(status));
      return;
    case Connector::Step::kEstablished:
      if (connector.connection()->state() != Connection::State::kConnecting) return;
      if (absl::Status status = CheckGrantMac(connector.private_data(), options_.endpoint,
                                              options_.key, requests_[i]);
          !status.ok()) {
        return Fail(std::move(status));
      }
      return connector.connection()->Open();
    case Connector::Step::kClosed:
      return Fail(absl::UnavailableError(absl::StrCat(options_.endpoint, " closed the link")));
    case Connector::Step::kFailed:
      if (connector.refused() && !refused_) {
        if (auto reject = DecodeReject(connector.private_data()); reject.ok()) refused_ = *reject;
      }
      return Fail(connector.status());
  }
}

// The address is resolved. What belongs to a device is made once it is known by which one the
// primary is reached.
absl::Status BackupLink::Configure(LinkConnection which) {
  const auto i = static_cast<size_t>(which);
  Connector& connector = *connectors_[i];
  if (device_ == nullptr) {
    const auto it = std::ranges::find(options_.devices, connector.verbs(), &Device::verbs);
    if (it == options_.devices.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the way to ", options_.endpoint, " leads through another device"));
    }
    pd_.reset(ibv_alloc_pd(it->verbs));
    if (pd_ == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
    GANNET_ASSIGN_OR_RETURN(cq_, CompletionQueue::Create(it->verbs, kCompletions, true));
    GANNET_ASSIGN_OR_RETURN(ring_mr_,
                            RegisterMemory(pd_.get(), ring_->bytes(), RemoteAccess::kReadWrite));
    GANNET_ASSIGN_OR_RETURN(messages_, ControlMessages::Create(pd_.get(), 0));
    device_ = &*it;
  }
  if (connector.verbs() != device_->verbs) {
    return absl::FailedPreconditionError(
        absl::StrCat("two ways lead to ", options_.endpoint, ", through different devices"));
  }
  const bool control = which == LinkConnection::kControl;
  GANNET_RETURN_IF_ERROR(connector.CreateConnection(
      {.queue_pair = {.pd = pd_.get(), .send_wrs = control ? ControlMessages::kPlaces : 1},
       .caps = device_->caps,
       .completions = cq_.get(),
       .receives = control ? messages_->receives() : ReceiveOptions{}}));
  requests_[i] = MakeReplicaRequest(which, options_.token, options_.wall.Now());
  AuthenticateRequest(options_.key, options_.to.NetworkBytes(), &requests_[i]);
  return connector.Connect(std::as_bytes(std::span(&requests_[i], 1)));
}

void BackupLink::OnCompletion(const ibv_wc& completion) {
  const WrId id = WrId::Unpack(completion.wr_id);
  const auto kind = static_cast<LinkWork>(id.kind);
  if (kind == LinkWork::kDrain) {
    if (id.slot < kConnections) connectors_[id.slot]->connection()->OnDrained();
    return;
  }
  if (completion.status != IBV_WC_SUCCESS) {
    return Fail(CompletionStatus(completion, "the link to the primary is broken"));
  }
  if (kind == LinkWork::kSend) return messages_->OnSent(id.slot);
  if (kind != LinkWork::kReceive || fencing()) return;
  bool broken = false;
  received_.push_back(ControlMessages::Take(control(), id.slot, completion.byte_len, &broken));
  if (broken) Fail(absl::UnavailableError("the device refuses receives"));
}

std::optional<BackupLink::Message> BackupLink::Take() {
  while (!received_.empty()) {
    const Message message = Decode(received_.front());
    received_.pop_front();
    const auto* const told = std::get_if<ToldBeacon>(&message);
    const auto* const ended = std::get_if<MoveEnded>(&message);
    const uint64_t epoch = told != nullptr    ? told->beacon.epoch
                           : ended != nullptr ? ended->epoch
                                              : welcome_.epoch;
    if (epoch == welcome_.epoch) return message;
  }
  return std::nullopt;
}

BackupLink::Message BackupLink::Decode(std::span<const std::byte> message) const {
  const std::optional<ReplicaKind> kind = KindOfReplicaMessage(message);
  if (kind == ReplicaKind::kWelcome && said_ == Said::kHello) {
    if (const auto welcome = DecodeReplicaWelcome(message); welcome.ok()) return *welcome;
  } else if (kind == ReplicaKind::kBeacon && welcomed()) {
    if (const auto beacon = DecodeBeacon(message); beacon.ok()) return ToldBeacon{*beacon, false};
  } else if (kind == ReplicaKind::kLastBeacon && welcomed()) {
    const auto beacon = DecodeLastBeacon(message);
    if (beacon.ok()) return ToldBeacon{*beacon, true};
  } else if (kind == ReplicaKind::kEnded && welcomed()) {
    if (const auto ended = DecodeMoveEnded(message); ended.ok()) return *ended;
  } else if (kind == ReplicaKind::kRefusal) {
    Refused refused;
    if (const auto refusal = DecodeReplicaRefusal(message); refusal.ok()) {
      refused.why = ReasonOf(*refusal);
    }
    return refused;
  }
  return OutOfPlace{kind};
}

absl::Status BackupLink::Accept(const ReplicaWelcome& welcome) {
  if (!kStreamVersions.Has(welcome.stream_version)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the stream of ", options_.endpoint, " has version ", welcome.stream_version));
  }
  welcome_ = welcome;
  said_ = Said::kWelcome;
  return absl::OkStatus();
}

void BackupLink::Answer(const Beacon& beacon, uint64_t applied, uint64_t consumed) {
  BeaconAnswer answer = NewBeaconAnswer();
  answer.epoch = beacon.epoch;
  answer.sequence = beacon.sequence;
  answer.applied = applied;
  answer.consumed = consumed;
  Send(answer);
}

std::string BackupLink::why() const {
  std::string reason = refused_ ? RejectReason(*refused_) : "";
  return reason.empty() ? std::string(status_.message()) : reason;
}

void BackupLink::SendBytes(std::span<const std::byte> message) {
  if (!open()) return;
  if (!messages_->Send(*control(), message)) {
    Fail(absl::UnavailableError("the device refuses a message to the primary"));
  }
}

void BackupLink::BeginFence() {
  if (fencing()) return;
  received_.clear();
  for (uint32_t i = 0; i < kConnections; ++i) {
    const WrId id = {.kind = static_cast<uint8_t>(LinkWork::kDrain), .owner = 0, .slot = i};
    connectors_[i]->connection()->BeginDrain(id.Pack());
  }
}

}  // namespace gannet
