#include "common/rdma/loopback.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

enum Kind : uint8_t { kCompareAndSwap = 1, kSend = 2, kReceive = 3, kDrain = 4 };

constexpr uint64_t kPassiveConnection = 1;
constexpr std::byte kProbeByte{0x5a};
// Room for the drains and for the byte, in addition to the compare-and-swaps.
constexpr uint32_t kSpareWrs = 4;
constexpr int kPollMsMax = 10;

uint64_t RandomNonce() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

absl::StatusOr<SocketAddress> OwnAddress(const Device& device) {
  GANNET_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, LocalAddresses());
  GANNET_ASSIGN_OR_RETURN(CmChannel channel, CmChannel::Create());
  for (SocketAddress& address : addresses) {
    address.set_port(0);
    rdma_cm_id* raw = nullptr;
    if (rdma_create_id(channel.get(), &raw, nullptr, RDMA_PS_TCP) != 0) {
      return LastErrnoStatus("cannot create an RDMA id");
    }
    const Handle<rdma_cm_id> id(raw);
    if (rdma_bind_addr(id.get(), address.get()) == 0 && id->verbs == device.verbs) return address;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "device ", device.name, " has no IP address of this host; give its network interface one"));
}

Loopback::Loopback(const Options& options)
    : options_(options), nonce_(RandomNonce()), tags_(options.depth) {}

absl::StatusOr<std::unique_ptr<Loopback>> Loopback::Create(const Device& device,
                                                           const Options& options) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<Loopback> loopback, Begin(device, options));
  for (;;) {
    GANNET_ASSIGN_OR_RETURN(const bool connected, loopback->LookConnected());
    if (connected) return loopback;
    loopback->WaitForEvents();
  }
}

absl::StatusOr<std::unique_ptr<Loopback>> Loopback::Begin(const Device& device,
                                                          const Options& options) {
  std::unique_ptr<Loopback> loopback(new Loopback(options));
  GANNET_ASSIGN_OR_RETURN(
      loopback->completions_,
      CompletionQueue::Create(device.verbs, 2 * (options.depth + kSpareWrs), true));
  GANNET_ASSIGN_OR_RETURN(loopback->buffer_,
                          RegisteredBuffer::Create(options.pd, 8 * (options.depth + 2)));
  loopback->free_slots_.resize(options.depth);
  std::iota(loopback->free_slots_.begin(), loopback->free_slots_.end(), 0u);
  GANNET_RETURN_IF_ERROR(loopback->BeginConnect(device));
  return loopback;
}

absl::Status Loopback::BeginConnect(const Device& device) {
  SocketAddress own;
  if (options_.address) {
    own = *options_.address;
    own.set_port(0);
  } else {
    GANNET_ASSIGN_OR_RETURN(own, OwnAddress(device));
  }
  GANNET_ASSIGN_OR_RETURN(listener_, Listener::Create(own));
  const int64_t deadline_ns = MonotonicNs() + options_.timeout_ns;
  GANNET_ASSIGN_OR_RETURN(
      active_,
      Connector::Start({.to = listener_->address(), .from = own, .deadline_ns = deadline_ns}));
  connecting_ = {.queue_pair = {.pd = options_.pd, .send_wrs = options_.depth + 1},
                 .caps = device.caps,
                 .completions = completions_.get()};
  return absl::OkStatus();
}

absl::StatusOr<bool> Loopback::LookConnected() {
  if (active_->step() == Connector::Step::kEstablished) return true;
  GANNET_RETURN_IF_ERROR(Step(MonotonicNs()));
  if (active_->step() != Connector::Step::kEstablished) return false;
  active_->connection()->Open();
  has_paths_ = HasAlternatePaths(active_->connection()->qp()->context);
  return true;
}

absl::Status Loopback::Step(int64_t now_ns) {
  switch (active_->Poll(now_ns)) {
    case Connector::Step::kResolved:
      GANNET_RETURN_IF_ERROR(active_->CreateConnection(connecting_));
      GANNET_RETURN_IF_ERROR(active_->Connect(std::as_bytes(std::span(&nonce_, 1))));
      break;
    case Connector::Step::kFailed:
      return active_->status();
    case Connector::Step::kClosed:
      return absl::UnavailableError("the device's connection to itself broke");
    default:
      break;
  }
  while (std::optional<ListenerEvent> event = listener_->Poll()) {
    if (event->type != ListenerEvent::Type::kRequest || !IsOwn(*event->request)) continue;
    GANNET_ASSIGN_OR_RETURN(passive_, listener_->BeginAccept(std::move(*event->request),
                                                             connecting_, kPassiveConnection));
    GANNET_RETURN_IF_ERROR(listener_->FinishAccept(passive_.get(), {}, PeerRights::kReadAtomic));
  }
  return absl::OkStatus();
}

// Returns whether the request is our own. A stranger's that found the port is dropped, which
// refuses it.
bool Loopback::IsOwn(const IncomingRequest& request) const {
  const std::span<const std::byte> data = request.private_data();
  return passive_ == nullptr && data.size() >= sizeof(nonce_) &&
         std::memcmp(data.data(), &nonce_, sizeof(nonce_)) == 0;
}

void Loopback::WaitForEvents() const {
  if (options_.idle != nullptr) return options_.idle->Idle();
  const int64_t left_ms = (active_->deadline_ns() - MonotonicNs()) / kNsPerMs;
  pollfd fds[] = {{listener_->fd(), POLLIN, 0}, {active_->fd(), POLLIN, 0}};
  poll(fds, 2, static_cast<int>(std::clamp<int64_t>(left_ms, 0, kPollMsMax)));
}

void Loopback::FindPaths() {
  for (Connection* end : Ends()) {
    const std::optional<NetworkPath> home = PathOf(end->qp());
    if (!home) return paths_.clear();
    const uint8_t other = home->to.port_num == 1 ? 2 : 1;
    paths_.emplace_back(end->qp(), *home, PathToItself(end->qp()->context, other, *home));
  }
}

void Loopback::LookAtPaths() {
  if (broken_ || !has_paths_) return;
  if (paths_.empty()) FindPaths();
  for (AlternatePath& path : paths_) path.Look();
  // It is armed by what goes there and back.
  const bool arms = std::ranges::any_of(paths_, &AlternatePath::waits);
  if (arms && in_flight_ == 0) CarryByte().IgnoreError();
}

absl::Status Loopback::CarryByte() {
  GANNET_CHECK(in_flight_ == 0, "the byte's completions would be mixed with others");
  std::byte* sent = Result(options_.depth);
  std::byte* received = Result(options_.depth + 1);
  *sent = kProbeByte;
  *received = std::byte{0};
  ibv_sge from{reinterpret_cast<uint64_t>(sent), 1, buffer_.lkey()};
  ibv_sge to{reinterpret_cast<uint64_t>(received), 1, buffer_.lkey()};
  ibv_recv_wr receive{.wr_id = WrId{.kind = kReceive}.Pack(), .sg_list = &to, .num_sge = 1};
  ibv_send_wr send = SendRequest(WrId{.kind = kSend}.Pack(), &from, IBV_SEND_SIGNALED);
  if (PostReceive(passive_->qp(), &receive) != PostResult::kPosted ||
      active_->connection()->Post(&send) != PostResult::kPosted) {
    broken_ = true;
    return absl::UnavailableError("the device does not take a SEND");
  }
  const int64_t deadline_ns = MonotonicNs() + options_.timeout_ns;
  for (int left = 2; left > 0;) {
    ibv_wc done;
    if (completions_->Poll({&done, 1}) == 1) {
      broken_ |= done.status != IBV_WC_SUCCESS;
      GANNET_RETURN_IF_ERROR(CompletionStatus(done, "a SEND of the device to itself"));
      --left;
    } else if (completions_->broken() || MonotonicNs() > deadline_ns) {
      broken_ = true;
      return absl::DeadlineExceededError("a SEND of the device to itself did not arrive");
    }
  }
  if (*received != kProbeByte) return absl::DataLossError("the device carried a wrong byte");
  return absl::OkStatus();
}

bool Loopback::CompareAndSwap(uint64_t address, uint32_t rkey, uint64_t expected, uint64_t desired,
                              uint64_t tag) {
  if (broken_ || free_slots_.empty()) return false;
  const uint32_t slot = free_slots_.back();
  ibv_sge sge{reinterpret_cast<uint64_t>(Result(slot)), 8, buffer_.lkey()};
  ibv_send_wr request =
      CompareAndSwapRequest(WrId{.kind = kCompareAndSwap, .slot = slot}.Pack(), &sge, address, rkey,
                            expected, desired, IBV_SEND_SIGNALED);
  if (active_->connection()->Post(&request) != PostResult::kPosted) {
    broken_ = true;
    return false;
  }
  free_slots_.pop_back();
  tags_[slot] = tag;
  ++in_flight_;
  return true;
}

size_t Loopback::Poll(std::span<Outcome> out) {
  if (in_flight_ == 0) return 0;
  size_t n = 0;
  ibv_wc done;
  while (n < out.size() && completions_->Poll({&done, 1}) == 1) {
    const WrId id = WrId::Unpack(done.wr_id);
    if (id.kind != kCompareAndSwap) continue;
    --in_flight_;
    free_slots_.push_back(id.slot);
    if (done.status != IBV_WC_SUCCESS) {
      broken_ = true;
      continue;
    }
    out[n].tag = tags_[id.slot];
    std::memcpy(&out[n].previous, Result(id.slot), sizeof(out[n].previous));
    ++n;
  }
  broken_ |= completions_->broken();
  return n;
}

std::vector<Connection*> Loopback::Ends() const {
  std::vector<Connection*> ends;
  if (active_ != nullptr) ends.push_back(active_->connection());
  if (passive_ != nullptr) ends.push_back(passive_.get());
  return ends;
}

void Loopback::BeginDrain() {
  broken_ = true;
  for (Connection* end : Ends()) end->BeginDrain(WrId{.kind = kDrain}.Pack());
}

bool Loopback::LookDrained() {
  bool more = true;
  while (more) {
    ibv_wc done;
    more = completions_->Poll({&done, 1}) == 1;
    for (Connection* end : Ends()) {
      const bool own = more && WrId::Unpack(done.wr_id).kind == kDrain;
      if (own && done.qp_num == end->qp_number()) end->OnDrained();
    }
  }
  const std::vector<Connection*> ends = Ends();
  return std::ranges::all_of(ends, [](Connection* end) { return end->LookDrained(true); });
}

Loopback::~Loopback() {
  std::vector<Connection*> left = Ends();
  // Those that drain already are late: their owner has waited.
  std::erase_if(left, [](const Connection* end) { return end->closing(); });
  DrainAll(completions_.get(), left, options_.timeout_ns, options_.idle);
}

}  // namespace gannet
