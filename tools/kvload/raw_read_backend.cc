#include "tools/kvload/raw_read_backend.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/auth/auth_file.h"
#include "common/auth/handshake.h"
#include "common/base/align.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/base/status_macros.h"
#include "common/layout/bucket.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"
#include "common/protocol/message.h"
#include "common/rdma/status.h"

namespace gannet::kvload {
namespace {

enum RawWorkKind : uint8_t { kChain = 1, kHeartbeat = 2, kReceive = 3, kWindow = 4 };

constexpr uint32_t kReceives = 4;
constexpr uint64_t kHeartbeatOffset = uint64_t{kReceives} * kMessageBytesMax;
constexpr uint64_t kReadAlignment = 64;
constexpr uint64_t kPageBytes = 4096;
constexpr size_t kCompletionsPerPoll = 16;
// Reading the clock is slow compared to a READ, so only one in kPollsPerClock Polls reads it.
constexpr uint32_t kPollsPerClock = 64;

// Returns the first slot with the tag, or an empty slot if there is none.
Slot SlotWithTag(const Bucket (&window)[2], uint32_t tag) {
  for (const Bucket& bucket : window) {
    for (const uint64_t word : bucket.slots) {
      if (const Slot slot(word); !slot.empty() && slot.tag() == tag) return slot;
    }
  }
  return Slot();
}

}  // namespace

RawReadBackend::RawReadBackend(const Options& options)
    : options_(options), random_(options.seed), chains_(options.depth), wcs_(kCompletionsPerPoll) {
  for (uint32_t i = options.depth; i > 0; --i) {
    free_chains_.push_back(i - 1);
    free_sinks_.push_back(i - 1);
  }
}

absl::StatusOr<std::unique_ptr<RawReadBackend>> RawReadBackend::Connect(const Options& options) {
  std::unique_ptr<RawReadBackend> backend(new RawReadBackend(options));
  GANNET_RETURN_IF_ERROR(backend->Establish());
  return backend;
}

absl::Status RawReadBackend::WaitWhile(Connector::Step step, int64_t deadline_ns) {
  while (connector_->Poll(MonotonicNs()) == step) {
    const int64_t left_ms = (deadline_ns - MonotonicNs()) / kNsPerMs + 1;
    pollfd readable{connector_->fd(), POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>(std::max<int64_t>(1, left_ms)));
  }
  if (!connector_->refused()) return connector_->status();
  RejectCode code{};
  return RefusalStatus(connector_->private_data(), options_.endpoint, connector_->status(), &code);
}

absl::Status RawReadBackend::Establish() {
  const int64_t deadline_ns = MonotonicNs() + options_.connect_timeout.count() * kNsPerMs;
  GANNET_ASSIGN_OR_RETURN(const SocketAddress to, Resolve(options_.endpoint, kDefaultPort));
  GANNET_ASSIGN_OR_RETURN(connector_, Connector::Start({.to = to, .deadline_ns = deadline_ns}));
  GANNET_RETURN_IF_ERROR(WaitWhile(Connector::Step::kResolving, deadline_ns));
  GANNET_RETURN_IF_ERROR(MakeResources());
  GANNET_ASSIGN_OR_RETURN(const auto file, AuthFile::OpenIfNamed(options_.auth_file));
  std::optional<AuthKey> key;
  if (file != nullptr) key = file->keys().front();
  ConnectRequest request =
      MakeConnectRequest(/*session_token=*/0, /*qp_index=*/0, random_.Next(), MachineWallTime());
  AuthenticateRequest(key, to.NetworkBytes(), &request);
  GANNET_RETURN_IF_ERROR(connector_->Connect(std::as_bytes(std::span(&request, 1))));
  GANNET_RETURN_IF_ERROR(WaitWhile(Connector::Step::kConnecting, deadline_ns));
  if (connector_->step() != Connector::Step::kEstablished) {
    return absl::UnavailableError(absl::StrCat(options_.endpoint, " closed the connection"));
  }
  return Adopt(request, key);
}

absl::Status RawReadBackend::MakeResources() {
  GANNET_ASSIGN_OR_RETURN(const Device device, DescribeDevice(connector_->verbs()));
  pd_.reset(ibv_alloc_pd(device.verbs));
  if (pd_ == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
  const uint32_t sends = options_.depth + 2;  // and a heartbeat, and a window
  GANNET_ASSIGN_OR_RETURN(queue_,
                          CompletionQueue::Create(device.verbs, sends + 1 + kReceives, false));
  const uint64_t stride = AlignUp(options_.read_bytes, kReadAlignment);
  GANNET_ASSIGN_OR_RETURN(sinks_, RegisteredBuffer::Create(pd_.get(), options_.depth * stride));
  GANNET_ASSIGN_OR_RETURN(window_, RegisteredBuffer::Create(pd_.get(), kWindowBytes));
  GANNET_ASSIGN_OR_RETURN(messages_,
                          RegisteredBuffer::Create(pd_.get(), kHeartbeatOffset + kMessageBytesMax));
  return connector_->CreateConnection(
      {.queue_pair = {.pd = pd_.get(), .send_wrs = sends},
       .caps = device.caps,
       .completions = queue_.get(),
       .receives = {
           .first = messages_.Sge(0, kMessageBytesMax), .count = kReceives, .id = {kReceive}}});
}

absl::Status RawReadBackend::Adopt(const ConnectRequest& request,
                                   const std::optional<AuthKey>& key) {
  GANNET_ASSIGN_OR_RETURN(
      grant_, gannet::TakeGrant(connector_->private_data(), options_.endpoint, key, request));
  span_bytes_ = options_.span_bytes == 0 ? grant_.region_bytes
                                         : std::min(options_.span_bytes, grant_.region_bytes);
  if (span_bytes_ < AlignUp(options_.read_bytes, kReadAlignment)) {
    return absl::InvalidArgumentError(
        "the region, or --raw_span, is smaller than one READ of --value_size bytes");
  }
  connector_->connection()->Open();
  return absl::OkStatus();
}

RawReadBackend::~RawReadBackend() {
  if (connector_ == nullptr) return;
  Connection* const connection = connector_->connection();
  DrainAll(queue_.get(), {&connection, 1});
}

absl::Status RawReadBackend::ReadWindow(uint64_t address) {
  if (broken_) return absl::UnavailableError("the connection is broken");
  ibv_sge sge = window_.Sge(0, kWindowBytes);
  ibv_send_wr read = ReadRequest(WrId{.kind = kWindow}.Pack(), &sge, address, grant_.region_rkey,
                                 IBV_SEND_SIGNALED);
  if (connector_->connection()->Post(&read) != PostResult::kPosted) Break();
  window_read_ = false;
  while (!window_read_ && !broken_) {
    const size_t n = queue_->Poll(wcs_);
    for (size_t i = 0; i < n && !broken_; ++i) HandleCompletion(wcs_[i]);
  }
  return broken_ ? absl::UnavailableError("the connection broke") : absl::OkStatus();
}

absl::Status RawReadBackend::Get(std::string_view key, std::span<std::byte>, uint64_t user_data) {
  const KeyHash hash = KeyHash::Of(key, grant_.hash_seed);
  const uint64_t at = grant_.index.BucketOffset(hash.Home(grant_.index.homes));
  GANNET_RETURN_IF_ERROR(ReadWindow(grant_.region_address + at));
  Bucket window[2];
  std::memcpy(window, window_.data(), sizeof(window));
  const Slot slot = SlotWithTag(window, hash.Tag());
  const uint64_t place = slot.empty() ? at : slot.offset();
  // Keeps the READ within the region, whatever the slot says.
  items_.push_back(grant_.region_address +
                   std::min(place, grant_.region_bytes - options_.read_bytes));
  finished_.push_back({.user_data = user_data, .found = !slot.empty()});
  return absl::OkStatus();
}

Spread RawReadBackend::spread() const {
  if (items_.empty()) return {};
  std::vector<uint64_t> places = items_;
  std::sort(places.begin(), places.end());
  Spread spread{.span_bytes = places.back() - places.front() + options_.read_bytes, .pages = 1};
  for (size_t i = 1; i < places.size(); ++i) {
    spread.pages += places[i] / kPageBytes != places[i - 1] / kPageBytes ? 1 : 0;
  }
  return spread;
}

uint64_t RawReadBackend::NextAddress() {
  if (items_.empty()) {
    const uint64_t places = (span_bytes_ - options_.read_bytes) / kReadAlignment + 1;
    return grant_.region_address + random_.Below(places) * kReadAlignment;
  }
  const uint64_t address = items_[next_item_];
  if (++next_item_ == items_.size()) next_item_ = 0;
  return address;
}

absl::Status RawReadBackend::RawRead(std::span<std::byte> out, uint64_t user_data) {
  if (broken_) return absl::UnavailableError("the connection is broken");
  if (out.size() != options_.read_bytes) return absl::InvalidArgumentError("not the READ's size");
  if (free_sinks_.empty()) return absl::ResourceExhaustedError("too many in flight");
  Chain& chain = chains_[free_chains_.back()];
  chain.user_data[chain.size] = user_data;
  chain.addresses[chain.size] = NextAddress();
  chain.sinks[chain.size++] = free_sinks_.back();
  free_sinks_.pop_back();
  if (chain.size == kChainMax) PostChain();
  return absl::OkStatus();
}

void RawReadBackend::PostChain() {
  const uint32_t index = free_chains_.back();
  const Chain& chain = chains_[index];
  if (chain.size == 0) return;
  free_chains_.pop_back();
  const uint64_t stride = AlignUp(options_.read_bytes, kReadAlignment);
  ibv_sge sges[kChainMax];
  ibv_send_wr reads[kChainMax];
  for (uint32_t i = 0; i < chain.size; ++i) {
    const bool last = i + 1 == chain.size;
    sges[i] = sinks_.Sge(chain.sinks[i] * stride, options_.read_bytes);
    reads[i] = ReadRequest(WrId{.kind = kChain, .slot = index}.Pack(), &sges[i], chain.addresses[i],
                           grant_.region_rkey, last ? IBV_SEND_SIGNALED : 0);
    reads[i].next = last ? nullptr : &reads[i + 1];
  }
  if (connector_->connection()->Post(reads) != PostResult::kPosted) Break();
}

void RawReadBackend::KeepAlive() {
  const int64_t now = MonotonicNs();
  if (connector_->Poll(now) != Connector::Step::kEstablished) return Break();
  const int64_t heartbeat_ns = grant_.silence_ms * kNsPerMs / kMessagesPerSilence;
  if (heartbeat_in_flight_ || now - heartbeat_ns_ < heartbeat_ns) return;
  heartbeat_ns_ = now;
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kHeartbeat);
  const size_t bytes =
      EncodeRequest(header, {}, {}, {messages_.data() + kHeartbeatOffset, kMessageBytesMax});
  ibv_sge sge = messages_.Sge(kHeartbeatOffset, static_cast<uint32_t>(bytes));
  ibv_send_wr send = SendRequest(WrId{.kind = kHeartbeat}.Pack(), &sge, IBV_SEND_SIGNALED);
  if (connector_->connection()->Post(&send) != PostResult::kPosted) return Break();
  heartbeat_in_flight_ = true;
}

// It is unknown which READs are still in flight, so their sinks are not used again.
void RawReadBackend::Break() {
  if (broken_) return;
  broken_ = true;
  for (uint32_t i = 0; i < chains_.size(); ++i) {
    if (chains_[i].size > 0) Finish(chains_[i], absl::StatusCode::kUnavailable);
    chains_[i].size = 0;
  }
}

void RawReadBackend::Finish(const Chain& chain, absl::StatusCode code) {
  for (uint32_t i = 0; i < chain.size; ++i) {
    Completion done{.user_data = chain.user_data[i], .code = code, .found = true};
    done.cost.reads = 1;
    done.cost.read_bytes = options_.read_bytes;
    done.cost.posts = i == 0 ? 1 : 0;  // shared by the chain
    done.cost.completions = i == 0 ? 1 : 0;
    finished_.push_back(done);
    free_sinks_.push_back(chain.sinks[i]);
  }
}

void RawReadBackend::HandleCompletion(const ibv_wc& wc) {
  if (wc.status != IBV_WC_SUCCESS) return Break();
  const WrId id = WrId::Unpack(wc.wr_id);
  switch (id.kind) {
    case kChain:
      Finish(chains_[id.slot], absl::StatusCode::kOk);
      chains_[id.slot].size = 0;
      free_chains_.push_back(id.slot);
      return;
    case kWindow:
      window_read_ = true;
      return;
    case kHeartbeat:
      heartbeat_in_flight_ = false;
      return;
    case kReceive:
      connector_->connection()->Recycle(id.slot);
      if (!connector_->connection()->PostReceives()) Break();
      return;
    default:
      return;
  }
}

size_t RawReadBackend::Poll(std::span<Completion> out) {
  if (!broken_) {
    if (!free_chains_.empty()) PostChain();
    if (polls_++ % kPollsPerClock == 0) KeepAlive();
    const size_t n = queue_->Poll(wcs_);
    for (size_t i = 0; i < n && !broken_; ++i) HandleCompletion(wcs_[i]);
  }
  const size_t n = std::min(out.size(), finished_.size());
  std::copy_n(finished_.begin(), n, out.begin());
  finished_.erase(finished_.begin(), finished_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

}  // namespace gannet::kvload
