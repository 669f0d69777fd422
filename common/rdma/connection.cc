#include "common/rdma/connection.h"

#include <sched.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

// 4.096 us * 2^14 = 67 ms. The device notices a lost packet early, and gives up after kRetryCount
// tries, in about half a second. With the connection manager's default that takes 15 s.
constexpr uint8_t kAckTimeoutExponent = 14;
// 0.64 ms (IBTA table 46).
constexpr uint8_t kMinRnrTimer = 12;

bool IsIwarp(const rdma_cm_id& id) {
  return id.verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

}  // namespace

Connection::Connection(Handle<rdma_cm_id> id, ReadDepth depth)
    : id_(std::move(id)), depth_(depth) {}

Connection::~Connection() {
  id_.reset();  // nothing completes any more
  if (completions_ != nullptr) completions_->Release(reserved_);
}

absl::Status Connection::MakeQueuePair(const ConnectionOptions& options) {
  GANNET_CHECK(state() == State::kConnecting && qp_ == nullptr,
               "it is being closed, or has a queue pair");
  QueuePairOptions queue_pair = options.queue_pair;
  queue_pair.recv_wrs = std::max({queue_pair.recv_wrs, options.receives.count, 1u});
  if (options.completions != nullptr) {
    const uint32_t room = queue_pair.send_wrs + 1 + options.receives.count;  // 1: the drain
    GANNET_RETURN_IF_ERROR(options.completions->Reserve(room));
    completions_ = options.completions;
    reserved_ = room;
    queue_pair.send_cq = queue_pair.recv_cq = completions_->get();
  }
  GANNET_ASSIGN_OR_RETURN(limits_, CreateQueuePair(id_.get(), queue_pair));
  qp_ = id_->qp;
  send_flags_ = IsIwarp(*id_) ? unsigned{IBV_SEND_FENCE} : 0u;
  const ReceiveOptions& receives = options.receives;
  if (receives.count == 0) return absl::OkStatus();
  first_receive_ = receives.id.slot;
  receives_ = std::make_unique<Receives>(receives.count);
  for (uint32_t i = 0; i < receives.count; ++i) {
    WrId id = receives.id;
    id.slot += i;
    ibv_sge sge = receives.first;
    sge.addr += uint64_t{i} * sge.length;
    receives_->Add(id.Pack(), sge);
  }
  return PostReceives() ? absl::OkStatus() : absl::InternalError("the device refuses receives");
}

void Connection::Open() {
  GANNET_CHECK(qp_ != nullptr, "no queue pair was made");
  state_.To(State::kConnected);
}

bool Connection::BeginDrain(uint64_t drain_wr_id) {
  if (closing()) return drain_posted_;
  state_.To(qp_ == nullptr ? State::kDrained : State::kDraining);
  if (drained()) return false;
  const bool in_error = MoveToError(qp_).ok();
  // This fails if the peer disconnected first, or if the connection was never established. Both are
  // fine.
  rdma_disconnect(id_.get());
  if (!in_error) return false;
  // siw never flushes what is posted in the error state, and iWARP NICs refuse it. On these, the
  // change of state has flushed everything that was posted before.
  if (IsIwarp(*id_)) return false;
  // CreateQueuePair reserved a place for this request.
  ibv_send_wr drain = SendRequest(drain_wr_id, nullptr, IBV_SEND_SIGNALED);
  drain_posted_ = PostSend(qp_, &drain) == PostResult::kPosted;
  return drain_posted_;
}

bool Connection::LookDrained(bool nothing_more, bool late) {
  GANNET_CHECK(closing(), "the drain has not begun");
  if ((nothing_more && !drain_posted_) || late) OnDrained();
  return drained();
}

void DrainAll(CompletionQueue* queue, std::span<Connection* const> connections, int64_t limit_ns,
              Idler* idle) {
  constexpr uint64_t kDrain = ~uint64_t{0};
  std::vector<Connection*> left(connections.begin(), connections.end());
  for (Connection* connection : left) {
    GANNET_CHECK(!connection->closing(), "its drain would complete as something else");
    connection->BeginDrain(kDrain);
  }
  std::erase_if(left, [](Connection* connection) { return connection->drained(); });
  const int64_t deadline_ns = MonotonicNs() + limit_ns;
  while (!left.empty()) {
    ibv_wc done;
    const bool came = queue->Poll({&done, 1}) == 1;
    const bool late = queue->broken() || MonotonicNs() >= deadline_ns;
    std::erase_if(left, [&](Connection* connection) {
      const bool own = came && done.wr_id == kDrain && done.qp_num == connection->qp_number();
      if (own) connection->OnDrained();
      return connection->LookDrained(!came, late);
    });
    if (came) continue;
    if (idle != nullptr) {
      idle->Idle();
    } else {
      sched_yield();
    }
  }
}

void SetAckTimeout(rdma_cm_id* id) {
  uint8_t exponent = kAckTimeoutExponent;
  // Best effort: kernels before 5.2 do not know it, and iWARP ignores it. Our deadlines do not
  // depend on it.
  rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent, sizeof(exponent));
}

void SetRnrTimer(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.min_rnr_timer = kMinRnrTimer;
  // iWARP has no RNR and refuses.
  ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

}  // namespace gannet
