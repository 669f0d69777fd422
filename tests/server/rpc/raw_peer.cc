#include "tests/server/rpc/raw_peer.h"

#include <array>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/rdma/queue_pair.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

enum Kind : uint8_t { kReceive = 1, kSend = 2, kCas = 3, kDrain = 4 };

constexpr uint32_t kReceives = 128;
constexpr uint32_t kSends = 128;
constexpr uint64_t kLentBytes = 2 << 20;

template <class T>
T Must(absl::StatusOr<T> result) {
  GANNET_CHECK(result.ok(), result.status().ToString().c_str());
  return *std::move(result);
}

}  // namespace

RawPeer::RawPeer(SteppedServer* driver) : RawPeer(driver, TestDevice(), driver->address()) {}

RawPeer::RawPeer(SteppedServer* driver, const Device& device, const SocketAddress& to)
    : driver_(driver), device_(device), to_(to) {
  ibv_context* const verbs = device_.verbs;
  pd_.reset(ibv_alloc_pd(verbs));
  GANNET_CHECK(pd_ != nullptr, "no protection domain");
  cq_ = Must(CompletionQueue::Create(verbs, kReceives + kSends + 16, /*with_channel=*/false));
  receives_ = Must(RegisteredBuffer::Create(pd_.get(), kReceives * uint64_t{kMessageBytesMax}));
  sends_ = Must(RegisteredBuffer::Create(pd_.get(), (kSends + 1) * uint64_t{kMessageBytesMax}));
  lent_ = Must(RegisteredBuffer::Create(pd_.get(), kLentBytes, RemoteAccess::kReadWrite));
}

RawPeer::~RawPeer() {
  if (connector_ == nullptr) return;
  if (connector_->connection()->BeginDrain(WrId{.kind = kDrain}.Pack()) && !drained_) {
    EXPECT_TRUE(driver_->StepUntil([this] {
      silent_ = false;
      Poll();
      return drained_;
    }));
  }
}

bool RawPeer::Connect(std::span<const std::byte> private_data) {
  connector_ = Must(Connector::Start(
      {.to = to_, .deadline_ns = MonotonicNs() + kStepNsMax, .rnr_retry_count = rnr_retry_count_}));
  const bool ended = driver_->StepUntil([&] {
    const Connector::Step step = connector_->Poll(MonotonicNs());
    if (step == Connector::Step::kResolved) {
      Prepare();
      if (!connector_->Connect(private_data).ok()) return true;
    }
    return step >= Connector::Step::kEstablished;
  });
  EXPECT_TRUE(ended) << "the handshake hangs";
  if (connector_->step() == Connector::Step::kEstablished) {
    grant_ = Must(DecodeGrant(connector_->private_data()));
    return true;
  }
  broken_ = true;
  if (connector_->refused()) {
    auto reject = DecodeReject(connector_->private_data());
    if (reject.ok()) reject_ = *reject;
  }
  return false;
}

bool RawPeer::Join(const RawPeer& other, uint16_t qp_index) {
  ConnectRequest request = NewConnectRequest();
  request.session_token = other.grant().session_token;
  request.qp_index = qp_index;
  next_sequence = other.next_sequence;
  return Connect(request);
}

void RawPeer::Prepare() {
  ConnectionOptions options{.caps = device_.caps};
  options.queue_pair = {.pd = pd_.get(),
                        .send_cq = cq_->get(),
                        .recv_cq = cq_->get(),
                        .send_wrs = kSends,
                        .recv_wrs = kReceives};
  if (!connector_->CreateConnection(options).ok()) return;
  for (uint32_t slot = 0; slot < kReceives; ++slot) PostReceive(slot);
}

void RawPeer::PostReceive(uint32_t slot) {
  if (!receiving_) return;
  ibv_sge sge = receives_.Sge(uint64_t{slot} * kMessageBytesMax, kMessageBytesMax);
  ibv_recv_wr receive{
      .wr_id = WrId{.kind = kReceive, .slot = slot}.Pack(), .sg_list = &sge, .num_sge = 1};
  if (gannet::PostReceive(connector_->connection()->qp(), &receive) != PostResult::kPosted) {
    broken_ = true;
  }
}

void RawPeer::TakeSlowly() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.min_rnr_timer = 0;
  EXPECT_EQ(ibv_modify_qp(connector_->connection()->qp(), &attributes,
                          IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER),
            0);
}

void RawPeer::Poll() {
  if (silent_) return;
  if (connector_->Poll(MonotonicNs()) == Connector::Step::kClosed) broken_ = true;
  ibv_wc done;
  while (cq_->Poll({&done, 1}) == 1) {
    const WrId id = WrId::Unpack(done.wr_id);
    if (id.kind == kDrain) drained_ = true;
    if (id.kind == kSend) --sends_in_flight_;
    if (id.kind == kCas) cas_done_ = true;
    if (done.status != IBV_WC_SUCCESS) {
      broken_ = true;
      continue;
    }
    if (id.kind != kReceive) continue;
    const std::byte* message = receives_.data() + uint64_t{id.slot} * kMessageBytesMax;
    ReplyView view;
    if (DecodeReply({message, done.byte_len}, &view)) {
      replies_.push_back({view.header, std::string(view.value)});
    } else {
      ADD_FAILURE() << "a reply that is none";
    }
    PostReceive(id.slot);
  }
}

bool RawPeer::Send(std::span<const std::byte> message) {
  if (sends_in_flight_ == kSends) {
    driver_->StepUntil([this] {
      Poll();
      return sends_in_flight_ < kSends || broken_;
    });
    // Also if it is broken: the device may still read all of the messages.
    if (sends_in_flight_ == kSends) return false;
  }
  const uint64_t offset = uint64_t{next_send_++ % kSends} * kMessageBytesMax;
  if (!message.empty()) {
    std::memcpy(sends_.data() + offset, message.data(), message.size());
  }
  ibv_sge sge = sends_.Sge(offset, static_cast<uint32_t>(message.size()));
  ibv_send_wr send = SendRequest(WrId{.kind = kSend}.Pack(), &sge, IBV_SEND_SIGNALED);
  if (PostSend(connector_->connection()->qp(), &send) != PostResult::kPosted) return false;
  ++sends_in_flight_;
  return true;
}

bool RawPeer::Send(const RequestHeader& header, std::string_view key, std::string_view value) {
  std::array<std::byte, kMessageBytesMax> message;
  const size_t bytes = EncodeRequest(header, key, value, message);
  return Send(std::span(message).first(bytes));
}

std::optional<RawPeer::Reply> RawPeer::Receive() {
  EXPECT_TRUE(driver_->StepUntil([this] {
    Poll();
    return !replies_.empty() || broken_;
  })) << "no reply";
  return TryReceive();
}

std::optional<RawPeer::Reply> RawPeer::TryReceive() {
  Poll();
  if (replies_.empty()) return std::nullopt;
  Reply reply = std::move(replies_.front());
  replies_.pop_front();
  return reply;
}

std::optional<RawPeer::Reply> RawPeer::Call(const RequestHeader& header, std::string_view key,
                                            std::string_view value) {
  if (!Send(header, key, value)) return std::nullopt;
  return Receive();
}

RequestHeader RawPeer::Header(Opcode opcode, uint8_t flags) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.flags = flags;
  if (opcode != Opcode::kHeartbeat) header.sequence = next_sequence++;
  return header;
}

ReplyStatus RawPeer::Put(std::string_view key, std::string_view value) {
  RequestHeader header = Header(Opcode::kPut);
  header.key_bytes = static_cast<uint16_t>(key.size());
  header.value_bytes = static_cast<uint32_t>(value.size());
  const auto reply = Call(header, key, value);
  return reply ? reply->status() : ReplyStatus::kInternal;
}

std::optional<std::string> RawPeer::Get(std::string_view key) {
  RequestHeader header = Header(Opcode::kGet);
  header.key_bytes = static_cast<uint16_t>(key.size());
  const auto reply = Call(header, key);
  if (!reply || reply->status() != ReplyStatus::kOk) return std::nullopt;
  return reply->value;
}

bool RawPeer::CloseAlone() {
  connector_->connection()->BeginDrain(WrId{.kind = kDrain}.Pack());
  const int64_t deadline_ns = MonotonicNs() + kStepNsMax;
  while (!drained_ && MonotonicNs() < deadline_ns) Poll();
  return drained_ && sends_in_flight_ == 0;
}

bool RawPeer::WaitSent(int64_t for_ns) {
  const int64_t deadline_ns = MonotonicNs() + for_ns;
  while (sends_in_flight_ > 0 && MonotonicNs() < deadline_ns) Poll();
  return sends_in_flight_ == 0;
}

bool RawPeer::WaitBroken() {
  return driver_->StepUntil([this] {
    Poll();
    return broken_;
  });
}

std::optional<uint64_t> RawPeer::Cas(size_t lock_index, uint64_t expected, uint64_t desired) {
  return CasAt(grant_.lock_address + lock_index * sizeof(uint64_t), grant_.lock_rkey, expected,
               desired);
}

ibv_sge RawPeer::WordSge() {
  return sends_.Sge(uint64_t{kSends} * kMessageBytesMax, sizeof(uint64_t));
}

std::optional<uint64_t> RawPeer::CasAt(uint64_t address, uint32_t rkey, uint64_t expected,
                                       uint64_t desired) {
  ibv_sge sge = WordSge();
  ibv_send_wr request = CompareAndSwapRequest(WrId{.kind = kCas}.Pack(), &sge, address, rkey,
                                              expected, desired, IBV_SEND_SIGNALED);
  return WordAfter(&request);
}

std::optional<uint64_t> RawPeer::ReadAt(uint64_t address, uint32_t rkey) {
  ibv_sge sge = WordSge();
  ibv_send_wr request =
      ReadRequest(WrId{.kind = kCas}.Pack(), &sge, address, rkey, IBV_SEND_SIGNALED);
  return WordAfter(&request);
}

bool RawPeer::WriteAt(uint64_t address, uint32_t rkey, uint64_t word) {
  ibv_sge sge = WordSge();
  std::memcpy(reinterpret_cast<void*>(sge.addr), &word, sizeof(word));
  ibv_send_wr request =
      ReadRequest(WrId{.kind = kCas}.Pack(), &sge, address, rkey, IBV_SEND_SIGNALED);
  request.opcode = IBV_WR_RDMA_WRITE;
  return WordAfter(&request).has_value();
}

std::optional<uint64_t> RawPeer::OnWord(ibv_wr_opcode opcode, uint64_t address, uint32_t rkey,
                                        uint64_t operand) {
  ibv_sge sge = WordSge();
  std::memcpy(reinterpret_cast<void*>(sge.addr), &operand, sizeof(operand));
  ibv_send_wr request = MakeRequest(opcode, WrId{.kind = kCas}.Pack(), &sge, IBV_SEND_SIGNALED);
  if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic.remote_addr = address;
    request.wr.atomic.rkey = rkey;
    request.wr.atomic.swap = operand;
    request.wr.atomic.compare_add = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? operand : 0;
  } else {
    request.wr.rdma = {address, rkey};
  }
  return WordAfter(&request);
}

void RawPeer::SendAndInvalidate(uint32_t rkey) {
  RequestHeader heartbeat = Header(Opcode::kHeartbeat);
  ibv_sge sge = sends_.Sge(uint64_t{kSends} * kMessageBytesMax, sizeof(heartbeat));
  std::memcpy(reinterpret_cast<void*>(sge.addr), &heartbeat, sizeof(heartbeat));
  ibv_send_wr request =
      MakeRequest(IBV_WR_SEND_WITH_INV, WrId{.kind = kCas}.Pack(), &sge, IBV_SEND_SIGNALED);
  request.invalidate_rkey = rkey;
  WordAfter(&request);
}

std::optional<uint64_t> RawPeer::WordAfter(ibv_send_wr* request) {
  cas_done_ = false;
  if (PostSend(connector_->connection()->qp(), request) != PostResult::kPosted) {
    return std::nullopt;
  }
  const bool done = driver_->StepUntil([this] {
    Poll();
    return cas_done_;
  });
  if (!done || broken_) return std::nullopt;
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const void*>(WordSge().addr), sizeof(word));
  return word;
}

}  // namespace gannet
