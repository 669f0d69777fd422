#include "tests/client/engine/fake_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/words.h"
#include "common/layout/item_lease_header.h"
#include "common/rdma/device.h"
#include "common/rdma/queue_pair.h"
#include "tests/common/protocol/encode_reply.h"

namespace gannet {
namespace {

enum Kind : uint8_t { kReceive = 1, kSend = 2, kDrain = 3 };

constexpr uint32_t kMessages = 128;  // of each peer, each way
constexpr uint32_t kLockWords = 1024;
constexpr uint32_t kPeersMax = 16;

template <class T>
T Must(absl::StatusOr<T> result) {
  GANNET_CHECK(result.ok(), result.status().ToString().c_str());
  return *std::move(result);
}

}  // namespace

struct FakeServer::Peer {
  uint64_t number = 0;
  RegisteredBuffer messages;
  std::unique_ptr<Connection> connection;
  uint32_t next_send = 0;
  bool closing = false;
};

FakeServer::FakeServer() : device_(Must(OpenDevice(kSoftverbsDeviceName))), grant_(NewGrant()) {
  ibv_context* verbs = device_.verbs;
  pd_.reset(ibv_alloc_pd(verbs));
  GANNET_CHECK(pd_ != nullptr, "no protection domain");
  cq_ = Must(CompletionQueue::Create(verbs, kPeersMax * 2 * (kMessages + 1), false));
  memory_ = Must(RegisteredBuffer::Create(pd_.get(), HandMadeRegion::kBytes, RemoteAccess::kRead));
  locks_ = Must(SharedMemory::Create({.bytes = kLockWords * 8, .remote_write = true}));
  locks_mr_ = Must(RegisterMemory(pd_.get(), locks_->bytes(), RemoteAccess::kReadAtomic));
  listener_ = Must(Listener::Create(Must(ResolveAll("127.0.0.1:0", 0)).front()));
  grant_.incarnation = region_.view().incarnation;
  grant_.region_address = memory_.address();
  grant_.region_bytes = HandMadeRegion::kBytes;
  grant_.region_rkey = memory_.rkey();
  grant_.lock_address = reinterpret_cast<uint64_t>(locks_->bytes().data());
  grant_.lock_rkey = locks_mr_->rkey;
  grant_.lock_words = kLockWords;
  grant_.session_token = 77;
  grant_.hash_seed = region_.view().hash_seed;
  grant_.index = region_.view().index;
  grant_.message_bytes_max = kMessageBytesMax;
  grant_.value_bytes_max = kValueBytesMax;
  grant_.credits = kCreditsDefault;
  grant_.lock_mode = static_cast<uint8_t>(LockMode::kNicCas);
  PublishRegion();
}

FakeServer::~FakeServer() {
  for (auto& [number, peer] : peers_) {
    peer->connection->BeginDrain(WrId{.kind = kDrain}.Pack());
  }
  std::array<ibv_wc, 32> completions;
  while (cq_->Poll(completions) > 0) {
  }
}

std::string FakeServer::endpoint() const { return listener_->address().ToString(); }

void FakeServer::PublishRegion() {
  std::memcpy(memory_.data(), region_.at(0), HandMadeRegion::kBytes);
}

// Clients change the words, as other threads would.
uint64_t FakeServer::lock_word(uint64_t i) const {
  auto* words = reinterpret_cast<uint64_t*>(locks_->bytes().data());
  return std::atomic_ref(words[i]).load(std::memory_order_acquire);
}

void FakeServer::set_lock_word(uint64_t i, uint64_t word) {
  auto* words = reinterpret_cast<uint64_t*>(locks_->bytes().data());
  std::atomic_ref(words[i]).store(word, std::memory_order_release);
}

size_t FakeServer::Count(Opcode opcode) const {
  return static_cast<size_t>(std::ranges::count(requests_, opcode, &Request::opcode));
}

ReplyHeader FakeServer::ReplyTo(const Request& request, ReplyStatus status) {
  ReplyHeader reply{};
  reply.opcode = request.header.opcode;
  reply.status = static_cast<uint8_t>(status);
  reply.sequence = request.header.sequence;
  return reply;
}

void FakeServer::AnswerNow(const Request& request, ReplyStatus status) {
  AnswerNow(request, ReplyTo(request, status));
}

void FakeServer::AnswerNow(const Request& request, const ReplyHeader& reply) {
  const auto it = peers_.find(request.connection);
  if (it != peers_.end()) Send(*it->second, reply, {});
}

void FakeServer::Step() {
  while (std::optional<ListenerEvent> event = listener_->Poll()) {
    if (event->type == ListenerEvent::Type::kRequest) {
      Accept(*std::move(event->request));
    } else if (event->type != ListenerEvent::Type::kEstablished) {
      auto it = peers_.find(event->connection);
      if (it == peers_.end()) continue;
      it->second->closing = true;
      it->second->connection->BeginDrain(WrId{.kind = kDrain}.Pack());
    }
  }
  std::array<ibv_wc, 32> completions;
  const size_t n = cq_->Poll(completions);
  for (size_t i = 0; i < n; ++i) OnCompletion(completions[i]);
}

void FakeServer::BreakAll() {
  for (auto& [number, peer] : peers_) {
    if (std::exchange(peer->closing, true)) continue;
    peer->connection->BeginDrain(WrId{.kind = kDrain}.Pack());
  }
}

void FakeServer::Accept(IncomingRequest incoming) {
  const ConnectRequest request = Must(DecodeConnectRequest(incoming.private_data()));
  if (not_primary.has_value()) {
    ++refused_;
    const Reject reject = NewReject(RejectCode::kNotPrimary, *not_primary);
    return listener_->Reject(std::move(incoming), std::as_bytes(std::span(&reject, 1)));
  }
  GANNET_CHECK(peers_.size() < kPeersMax, "too many connections for a fake server");
  auto peer = std::make_unique<Peer>();
  peer->number = next_connection_++;
  peer->messages =
      Must(RegisteredBuffer::Create(pd_.get(), 2 * kMessages * uint64_t{kMessageBytesMax}));
  const ConnectionOptions options{.queue_pair = {.pd = pd_.get(),
                                                 .send_cq = cq_->get(),
                                                 .recv_cq = cq_->get(),
                                                 .send_wrs = kMessages,
                                                 .recv_wrs = kMessages},
                                  .caps = device_.caps};
  peer->connection = Must(listener_->BeginAccept(std::move(incoming), options, peer->number));
  for (uint32_t slot = 0; slot < kMessages; ++slot) PostReceive(*peer, slot);
  Grant grant = grant_;
  grant.connection_id = static_cast<uint32_t>(peer->number);
  grant.session_id = 1;
  grant.resumed = request.session_token != 0;
  grant.time_ms = time_ms();
  grant.primary_lease_ms = lease_left_ms();
  if (alter_grant) alter_grant(request, &grant);
  accepted_ += request.qp_index == 0;
  const absl::Status status = listener_->FinishAccept(
      peer->connection.get(), std::as_bytes(std::span(&grant, 1)), PeerRights::kReadAtomic);
  GANNET_CHECK(status.ok(), status.ToString().c_str());
  peers_[peer->number] = std::move(peer);
}

void FakeServer::OnCompletion(const ibv_wc& completion) {
  const WrId id = WrId::Unpack(completion.wr_id);
  const auto it = peers_.find(id.owner);
  if (completion.status != IBV_WC_SUCCESS || id.kind != kReceive || it == peers_.end()) return;
  Peer& peer = *it->second;
  if (peer.closing) return;
  const std::byte* message = peer.messages.data() + uint64_t{id.slot} * kMessageBytesMax;
  OnRequest(peer, {message, completion.byte_len});
  PostReceive(peer, id.slot);
}

void FakeServer::OnRequest(Peer& peer, std::span<const std::byte> message) {
  RequestView view;
  GANNET_CHECK(!DecodeRequest(message, &view).has_value(), "the client sent a wrong request");
  const Request request{view.header, std::string(view.key), peer.number};
  if (request.opcode() == Opcode::kHeartbeat) {
    ++heartbeats_;
    if (!answers_heartbeats) return;
    ReplyHeader reply = ReplyTo(request);
    reply.clock.time_ms = time_ms();
    reply.primary_lease_ms = lease_left_ms();
    reply.clock.leases_from = leases_from;
    return Send(peer, reply, {});
  }
  if (request.opcode() == Opcode::kMap) return TellMap(peer, request);
  if (request.opcode() == Opcode::kItemLeases) return TellItemLeases(peer, request);
  requests_.push_back(request);
  if (!answer) return;
  const std::optional<ReplyHeader> reply = answer(request);
  if (reply.has_value()) Send(peer, *reply, value_);
}

void FakeServer::LeaseItems(uint32_t words, uint32_t lease_ms) {
  leases_ = Must(RegisteredBuffer::Create(pd_.get(), ItemLeaseBytes(words), RemoteAccess::kRead));
  item_leases_ = {.address = leases_.address(),
                  .rkey = leases_.rkey(),
                  .words = words,
                  .lease_ms = lease_ms,
                  .reserved = {}};
  grant_.features |= kGrantItemLeases;
}

void FakeServer::SetLeaseHeader(uint64_t generation, uint64_t end_ms) {
  ItemLeaseHeader header{.checksum = 0, .generation = generation, .end_ms = end_ms, .reserved = {}};
  header.checksum = ItemLeaseChecksum(header, grant_.incarnation);
  StoreWords(leases_.data(), &header, sizeof(header));
}

void FakeServer::SetLeaseWord(uint32_t place, uint64_t word) {
  StoreWord(leases_.data() + ItemLeaseBytes(place), word);
}

void FakeServer::TellItemLeases(Peer& peer, const Request& request) {
  ++asked_for_leases_;
  Send(peer, ReplyTo(request),
       {reinterpret_cast<const char*>(&item_leases_), sizeof(item_leases_)});
}

void FakeServer::TellMap(Peer& peer, const Request& request) {
  constexpr size_t kPiece = kMessageBytesMax - sizeof(ReplyHeader);
  const uint64_t from = request.header.list.position;
  asked_for_map_ += from == 0;
  if (map.empty()) return Send(peer, ReplyTo(request, ReplyStatus::kNotFound), {});
  ReplyHeader reply = ReplyTo(request);
  const std::string piece = map.substr(std::min<size_t>(from, map.size()), kPiece);
  if (from + piece.size() < map.size()) reply.list.next = from + piece.size();
  Send(peer, reply, piece);
}

void FakeServer::Send(Peer& peer, const ReplyHeader& reply, std::string_view value) {
  const uint64_t offset = uint64_t{kMessages + peer.next_send++ % kMessages} * kMessageBytesMax;
  ReplyHeader header = reply;
  header.value_bytes = static_cast<uint32_t>(value.size());
  const size_t bytes =
      EncodeReply(header, value, {peer.messages.data() + offset, kMessageBytesMax});
  ibv_sge sge = peer.messages.Sge(offset, static_cast<uint32_t>(bytes));
  const auto owner = static_cast<uint32_t>(peer.number);
  ibv_send_wr send =
      SendRequest(WrId{.kind = kSend, .owner = owner}.Pack(), &sge, IBV_SEND_SIGNALED);
  PostSend(peer.connection->qp(), &send);
}

void FakeServer::PostReceive(Peer& peer, uint32_t slot) {
  ibv_sge sge = peer.messages.Sge(uint64_t{slot} * kMessageBytesMax, kMessageBytesMax);
  const auto owner = static_cast<uint32_t>(peer.number);
  ibv_recv_wr receive{.wr_id = WrId{.kind = kReceive, .owner = owner, .slot = slot}.Pack(),
                      .sg_list = &sge,
                      .num_sge = 1};
  gannet::PostReceive(peer.connection->qp(), &receive);
}

}  // namespace gannet
