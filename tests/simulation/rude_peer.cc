#include "tests/simulation/rude_peer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/protocol/connect.h"
#include "common/rdma/queue_pair.h"
#include "tests/simulation/simulated_client.h"

namespace gannet::simulation {
namespace {

enum WorkKind : uint8_t { kSend = 1, kReceive = 2, kDrain = 3 };

constexpr uint32_t kSends = 64;
constexpr uint32_t kReceives = 4;
constexpr uint32_t kWritesMax = 500;
constexpr uint64_t kLentBytes = 1 << 20;
constexpr int64_t kHeartbeatNs = 400 * kNsPerMs;
constexpr int64_t kConnectNs = 3 * kNsPerSecond;
constexpr int64_t kSiegeGapNs = kNsPerMs;  // keeps it within its credits
constexpr int kStepsToDrain = 1'000'000;

template <class T>
T Must(absl::StatusOr<T> result) {
  GANNET_CHECK(result.ok(), std::string(result.status().message()).c_str());
  return *std::move(result);
}

}  // namespace

RudePeer::RudePeer(Kind kind, const std::string& endpoint, Run* run, const History* history)
    : kind_(kind), run_(run), history_(history) {
  run_->Note(absl::StrCat("a rude peer comes: ", static_cast<int>(kind)));
  connector_ = Must(Connector::Start(
      {.to = Must(ResolveAll(endpoint, 0)).front(), .deadline_ns = run->now_ns() + kConnectNs}));
  sends_left_ = static_cast<uint32_t>(run->LogUniform(1, 100));
  if (kind == Kind::kUsesOthersLocks) sends_left_ = kWritesMax;
  if (kind == Kind::kBesieges) sends_left_ = kShortGets + kLongGets;
  if (kind == Kind::kPolite) sends_left_ = 0;
  if (kind == Kind::kTakesFewReplies || TakesReplies()) receives_left_ = kReceives;
  if (kind == Kind::kTakesNoReplies && run->OneIn(4)) retries_ = kRetryForEver;
}

RudePeer::~RudePeer() {
  run_->Note("a rude peer goes");
  if (!connector_->connection()->BeginDrain(WrId{.kind = kDrain}.Pack())) return;
  for (int steps = 0; !drained_ && steps < kStepsToDrain; ++steps) {
    run_->Idle();
    PollCompletions();
  }
}

void RudePeer::Poll() {
  const Connector::Step step = connector_->Poll(run_->now_ns());
  if (step == Connector::Step::kResolved && !prepared_) {
    Prepare();
    Connect();
  }
  if (prepared_) PollCompletions();
  if (step != Connector::Step::kEstablished || over_) return;
  OnEstablished();
  if (kind_ != Kind::kSilent) SendSomething();
}

// A peer that takes no replies makes the server's device wait 655 ms before each retry.
void RudePeer::OnEstablished() {
  if (retries_ == kRetryForEver) {
    run_->Fail(Check::kRefusals, "a peer was accepted that wants the server to try for ever");
  }
  if (slow_ || TakesReplies()) return;
  slow_ = true;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.min_rnr_timer = 0;
  ibv_modify_qp(connector_->connection()->qp(), &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

bool RudePeer::TakesReplies() const {
  return kind_ == Kind::kSendsGarbage || kind_ == Kind::kUsesOthersLocks || kind_ == Kind::kPolite;
}

void RudePeer::Prepare() {
  prepared_ = true;
  ibv_context* verbs = connector_->verbs();
  pd_.reset(ibv_alloc_pd(verbs));
  cq_ = Must(CompletionQueue::Create(verbs, kSends + kReceives + 8, /*with_channel=*/false));
  sends_ = Must(RegisteredBuffer::Create(pd_.get(), kSends * uint64_t{kMessageBytesMax}));
  receives_ = Must(RegisteredBuffer::Create(pd_.get(), kReceives * uint64_t{kMessageBytesMax}));
  lent_ = Must(RegisteredBuffer::Create(pd_.get(), kLentBytes, RemoteAccess::kReadWrite));
  ConnectionOptions options{.caps = Must(DescribeDevice(verbs)).caps};
  options.queue_pair = {.pd = pd_.get(),
                        .send_cq = cq_->get(),
                        .recv_cq = cq_->get(),
                        .send_wrs = kSends,
                        .recv_wrs = kReceives};
  if (!connector_->CreateConnection(options).ok()) {
    over_ = true;
    return;
  }
  PostReceives();
}

void RudePeer::PostReceives() {
  for (uint32_t slot = 0; slot < receives_left_; ++slot) PostOneReceive(slot);
}

void RudePeer::PostOneReceive(uint32_t slot) {
  ibv_sge sge = receives_.Sge(uint64_t{slot} * kMessageBytesMax, kMessageBytesMax);
  ibv_recv_wr receive{
      .wr_id = WrId{.kind = kReceive, .slot = slot}.Pack(), .sg_list = &sge, .num_sge = 1};
  over_ |= PostReceive(connector_->connection()->qp(), &receive) != PostResult::kPosted;
}

void RudePeer::Connect() {
  if (over_) return;
  ConnectRequest request = NewConnectRequest();
  request.nonce = run_->Next();
  if (kind_ == Kind::kAsksForNonsense) {
    for (auto& byte : std::as_writable_bytes(std::span(&request, 1))) {
      if (run_->OneIn(4)) byte = static_cast<std::byte>(run_->Below(256));
    }
  }
  rdma_conn_param param{};
  param.private_data = &request;
  param.private_data_len = sizeof(request);
  param.responder_resources = param.initiator_depth = 4;
  param.retry_count = kRetryForEver;
  param.rnr_retry_count = retries_;
  over_ = rdma_connect(connector_->connection()->id(), &param) != 0;
}

void RudePeer::PollCompletions() {
  ibv_wc done;
  while (cq_->Poll({&done, 1}) == 1) {
    drained_ |= WrId::Unpack(done.wr_id).kind == kDrain;
    over_ |= done.status != IBV_WC_SUCCESS;
    const WrId id = WrId::Unpack(done.wr_id);
    if (TakesReplies() && id.kind == kReceive && !over_) OnReply(id.slot);
  }
}

void RudePeer::SendSomething() {
  if (sends_left_ == 0) return SendHeartbeat();
  if (kind_ == Kind::kUsesOthersLocks && !MayWriteUnderLock()) return SendHeartbeat();
  if (kind_ == Kind::kBesieges) {
    if (run_->now_ns() < next_send_ns_) return;
    next_send_ns_ = run_->now_ns() + kSiegeGapNs;
  } else if (!run_->OneIn(3)) {
    return;
  }
  // No buffer is reused too early: after 64 others a SEND has certainly left.
  std::byte* out = sends_.data() + uint64_t{sends_left_ % kSends} * kMessageBytesMax;
  --sends_left_;
  Send(out, kind_ == Kind::kSendsGarbage && run_->OneIn(4) ? Garbage(out) : Request(out));
}

// Keeps the server from declaring the peer dead.
void RudePeer::SendHeartbeat() {
  if (run_->now_ns() < next_heartbeat_ns_) return;
  next_heartbeat_ns_ = run_->now_ns() + kHeartbeatNs;
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kHeartbeat);
  std::memcpy(sends_.data(), &header, sizeof(header));
  Send(sends_.data(), sizeof(header));
}

uint32_t RudePeer::Garbage(std::byte* out) {
  const auto bytes = static_cast<uint32_t>(run_->LogUniform(1, 300));
  for (uint32_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(run_->Below(256));
  return bytes;
}

// Makes a well-formed request. A garbage peer changes it afterwards.
uint32_t RudePeer::Request(std::byte* out) {
  if (kind_ == Kind::kUsesOthersLocks) return WriteUnderLock(out);
  if (kind_ == Kind::kBesieges) return GetOfBesieger(out);
  const Opcode opcodes[] = {Opcode::kGet,   Opcode::kGet,       Opcode::kGet,
                            Opcode::kStats, Opcode::kHeartbeat, Opcode::kPing};
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcodes[run_->Below(std::size(opcodes))]);
  std::string key;
  if (header.opcode == static_cast<uint8_t>(Opcode::kGet)) {
    key = KeyName(static_cast<uint32_t>(run_->Below(4)));
    header = GetHeader(key, true);
  }
  if (header.opcode != static_cast<uint8_t>(Opcode::kHeartbeat)) header.sequence = ++sequence_;
  const auto bytes =
      static_cast<uint32_t>(EncodeRequest(header, key, "", std::span(out, kMessageBytesMax)));
  if (kind_ == Kind::kSendsGarbage && run_->OneIn(2)) {
    out[run_->Below(bytes)] = static_cast<std::byte>(run_->Below(256));
  }
  return bytes;
}

RequestHeader RudePeer::GetHeader(std::string_view key, bool into_buffer) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kGet);
  header.key_bytes = static_cast<uint16_t>(key.size());
  if (!into_buffer) return header;
  header.flags = kValueInBuffer;
  header.get = {.buffer_address = reinterpret_cast<uint64_t>(lent_.data()),
                .buffer_rkey = lent_.rkey(),
                .buffer_bytes = kLentBytes};
  return header;
}

// The replies to the short GETs stay in the server's send queue, and so does everything behind
// them.
uint32_t RudePeer::GetOfBesieger(std::byte* out) {
  const bool is_long = sends_left_ < kLongGets;
  const std::string_view key = is_long ? kLongKey : kShortKey;
  RequestHeader header = GetHeader(key, is_long);
  header.sequence = ++sequence_;
  return static_cast<uint32_t>(EncodeRequest(header, key, "", std::span(out, kMessageBytesMax)));
}

void RudePeer::Ask(Opcode opcode, std::string_view key) {
  answer_.reset();
  RequestHeader header{};
  if (opcode == Opcode::kGet) header = GetHeader(key, key == kLongKey);
  header.opcode = static_cast<uint8_t>(opcode);
  header.sequence = ++sequence_;
  // The buffer after the one for heartbeats.
  std::byte* out = sends_.data() + kMessageBytesMax;
  Send(out, static_cast<uint32_t>(EncodeRequest(header, key, "", {out, kMessageBytesMax})));
}

// For peers that send one request after the other, like a client.
void RudePeer::OnReply(uint32_t slot) {
  ReplyHeader reply;
  std::memcpy(&reply, receives_.data() + uint64_t{slot} * kMessageBytesMax, sizeof(reply));
  if (reply.opcode != static_cast<uint8_t>(Opcode::kHeartbeat)) answer_ = reply;
  PostOneReceive(slot);
}

bool RudePeer::MayWriteUnderLock() {
  const int64_t now_ns = run_->now_ns();
  const bool waits = sequence_ > 0 && !answer_.has_value();
  if (history_->LastAcquired().second == 0 || waits || now_ns < next_send_ns_) return false;
  // Send the write as soon as the version is known.
  const bool asked = answer_.has_value() && answer_->opcode == static_cast<uint8_t>(Opcode::kGet);
  if (!asked) next_send_ns_ = now_ns + run_->LogUniform(10 * kNsPerUs, 10 * kNsPerMs);
  return true;
}

// Writes under a lock that another client took. It first asks for the key's version and writes on
// that condition. If the server carries this out, somebody will read it.
uint32_t RudePeer::WriteUnderLock(std::byte* out) {
  const bool asked = answer_.has_value() && answer_->opcode == static_cast<uint8_t>(Opcode::kGet);
  const uint64_t version = asked ? answer_->get.version : 0;
  answer_.reset();
  if (!asked) {
    target_ = history_->LastAcquired();
    const std::string& name = KeyName(target_.first);
    RequestHeader get = GetHeader(name, true);
    get.sequence = ++sequence_;
    return static_cast<uint32_t>(EncodeRequest(get, name, "", std::span(out, kMessageBytesMax)));
  }
  const auto [key, word] = target_;
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kPut);
  header.sequence = ++sequence_;
  header.flags = kUnderLock | kOnlyIfVersion;
  header.write.expected_version = version;
  header.write.lock_word = word;
  const std::string_view name = KeyName(key);
  const std::string_view value = "stolen";
  header.key_bytes = static_cast<uint16_t>(name.size());
  header.value_bytes = static_cast<uint32_t>(value.size());
  return static_cast<uint32_t>(
      EncodeRequest(header, name, value, std::span(out, kMessageBytesMax)));
}

void RudePeer::Send(const std::byte* message, uint32_t bytes) {
  ibv_sge sge = sends_.Sge(static_cast<uint64_t>(message - sends_.data()), bytes);
  ibv_send_wr send = SendRequest(WrId{.kind = kSend}.Pack(), &sge, IBV_SEND_SIGNALED);
  over_ |= PostSend(connector_->connection()->qp(), &send) != PostResult::kPosted;
}

}  // namespace gannet::simulation
