#include "softverbs/tests/simulation/walk_end.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace softverbs {
namespace {

// Sources and sinks of the requests under way, then the buffers of receives.
constexpr size_t kSendSlots = WalkEnd::kDepth;
constexpr size_t kReceiveSlots = WalkEnd::kDepth;

SideOptions SideOptionsOf(const WalkEnd::Options& options) {
  return {.kind = options.kind,
          .memory = WalkEnd::kArea + (kSendSlots + kReceiveSlots) * WalkEnd::kSlot,
          .max_send_wr = WalkEnd::kDepth,
          .max_recv_wr = WalkEnd::kDepth,
          .signal_all = options.signal_all,
          .pd = options.pd};
}

bool IsSend(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}

bool ChangesArea(ibv_wr_opcode opcode) { return !IsSend(opcode) && opcode != IBV_WR_RDMA_READ; }

}  // namespace

WalkEnd::WalkEnd(ibv_context* context, const Options& options,
                 std::function<uint64_t(uint64_t)> below)
    : options_(options), below_(std::move(below)), side_(context, SideOptionsOf(options)) {
  // In the shared CQ, not the side's own.
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = options.cq;
  if (options.shared != nullptr) {
    attr.srq = options.shared->srq();
    attr.recv_cq = options.shared->cq();
  }
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = options.signal_all;
  attr.cap = {kDepth, kDepth, 4, 4, 256};
  side_.qp.reset(ibv_create_qp(side_.pd, &attr));
  const std::vector<uint8_t> area = RandomBytes(kArea);
  std::copy(area.begin(), area.end(), side_.memory.data());
  model_ = area;
  connect_.max_rd_atomic = static_cast<uint8_t>(1 + below_(16));
}

void WalkEnd::Connect(WalkEnd& peer) {
  peer_ = &peer;
  peer.peer_ = this;
  side_.ToRtr(peer.side_.address(), connect_);
  peer.side_.ToRtr(side_.address(), peer.connect_);
  side_.ToRts(connect_);
  peer.side_.ToRts(peer.connect_);
}

std::vector<uint8_t> WalkEnd::RandomBytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(below_(256));
  return bytes;
}

void WalkEnd::PostReceive() {
  if (options_.shared != nullptr) return options_.shared->Post();
  if (receives_posted_ - receives_taken_ >= kReceiveSlots) return;
  const uint64_t id = Id(receives_posted_, true);
  const size_t slot = kSendSlots + receives_posted_ % kReceiveSlots;
  ASSERT_EQ(side_.PostReceive(id, SlotOffset(slot), kSlot), 0);
  receives_.push_back(id);
  ++receives_posted_;
}

ibv_send_wr WalkEnd::Begin(Request& request) {
  request.signalled = options_.signal_all || below_(4) != 0;
  request.slot = posted_ % kSendSlots;
  ibv_send_wr wr{};
  wr.wr_id = Id(posted_, false);
  wr.opcode = request.opcode;
  // Fenced, so that a READ before it has read. READs themselves are not fenced, so that as many as
  // allowed are in flight at once.
  wr.send_flags = request.signalled ? IBV_SEND_SIGNALED : 0;
  if (ChangesArea(request.opcode)) wr.send_flags |= IBV_SEND_FENCE;
  return wr;
}

void WalkEnd::Post(ibv_send_wr wr, Request request, size_t length) {
  std::copy(request.data.begin(), request.data.end(),
            side_.memory.data() + SlotOffset(request.slot));
  const int result = side_.Post(wr, side_.Sge(SlotOffset(request.slot), length));
  ASSERT_EQ(result, Full() ? ENOMEM : 0);
  if (result != 0) return;
  ++posted_;
  if (IsSend(request.opcode)) sent_.push_back(request.data);
  requests_.push_back(std::move(request));
}

void WalkEnd::PostSend() {
  if (Full()) return;  // its slot is in use
  Request request;
  request.opcode = below_(2) == 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
  const bool in_line = below_(3) == 0;
  request.data = RandomBytes(below_(in_line ? 257 : kSlot + 1));
  ibv_send_wr wr = Begin(request);
  wr.imm_data = static_cast<uint32_t>(request.data.size());
  if (in_line) wr.send_flags |= IBV_SEND_INLINE;
  const size_t length = request.data.size();
  Post(wr, std::move(request), length);
}

void WalkEnd::PostWrite() {
  if (Full()) return;
  Request request;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.data = RandomBytes(1 + below_(kSlot));
  request.at = below_(kArea - request.data.size() + 1);
  ibv_send_wr wr = Begin(request);
  wr.wr.rdma.remote_addr = peer_->side_.memory.address() + request.at;
  wr.wr.rdma.rkey = peer_->side_.mr->rkey;
  const size_t length = request.data.size();
  Post(wr, std::move(request), length);
}

void WalkEnd::PostRead() {
  if (Full()) return;
  Request request;
  request.opcode = IBV_WR_RDMA_READ;
  request.size = 1 + below_(kSlot);
  request.at = below_(kArea - request.size + 1);
  ibv_send_wr wr = Begin(request);
  wr.wr.rdma.remote_addr = peer_->side_.memory.address() + request.at;
  wr.wr.rdma.rkey = peer_->side_.mr->rkey;
  const size_t length = request.size;
  Post(wr, std::move(request), length);
}

void WalkEnd::PostAtomic() {
  if (Full()) return;
  Request request;
  request.opcode = below_(2) == 0 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.at = below_(4) * 8;  // few words, so that some compares succeed
  request.size = 8;
  memcpy(&request.operand, &peer_->model_[request.at], 8);
  request.swap = below_(UINT64_MAX);
  ibv_send_wr wr = Begin(request);
  wr.wr.atomic.remote_addr = peer_->side_.memory.address() + request.at;
  wr.wr.atomic.rkey = peer_->side_.mr->rkey;
  wr.wr.atomic.compare_add = request.operand;
  wr.wr.atomic.swap = request.swap;
  Post(wr, std::move(request), 8);
}

void WalkEnd::PostWrongKey() {
  if (Full()) return;
  Disturb();
  Request request;
  request.opcode = IBV_WR_RDMA_READ;
  request.size = 8;
  ibv_send_wr wr = Begin(request);
  wr.wr.rdma.remote_addr = peer_->side_.memory.address();
  wr.wr.rdma.rkey = peer_->side_.mr->rkey ^ 1u << 29;
  Post(wr, std::move(request), 8);
}

void WalkEnd::ToError() {
  Disturb();
  broken_ = true;
  side_.ToError();
}

// The region under work: requests to it and from it fail until the others know its new key.
void WalkEnd::Reregister() {
  Disturb();
  side_.mr.reset();
  side_.mr.reset(ibv_reg_mr(side_.pd, side_.memory.data(), side_.memory.size(), kAllAccess));
  ASSERT_NE(side_.mr, nullptr);
}

std::vector<uint8_t> WalkEnd::Apply(const Request& request, std::vector<uint8_t>& area) {
  const auto at = area.begin() + static_cast<ptrdiff_t>(request.at);
  if (request.opcode == IBV_WR_RDMA_WRITE) {
    std::copy(request.data.begin(), request.data.end(), at);
    return {};
  }
  if (IsSend(request.opcode)) return {};
  const std::vector<uint8_t> before(at, at + static_cast<ptrdiff_t>(request.size));
  if (request.opcode == IBV_WR_RDMA_READ) return before;
  uint64_t word;
  memcpy(&word, before.data(), 8);
  if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    word += request.operand;
  } else if (word == request.operand) {
    word = request.swap;
  }
  memcpy(&*at, &word, 8);
  return before;
}

void WalkEnd::Succeed(Request& request) {
  const std::vector<uint8_t> fetched = Apply(request, peer_->model_);
  const uint8_t* sink = side_.memory.data() + SlotOffset(request.slot);
  if (request.signalled) {  // else its slot may be in use again
    EXPECT_TRUE(std::equal(fetched.begin(), fetched.end(), sink))
        << "opcode " << request.opcode << " fetched something else";
  }
  if (IsSend(request.opcode)) ++sends_succeeded_;
}

void WalkEnd::TakeCompletion(const ibv_wc& wc) {
  EXPECT_EQ(wc.qp_num, side_.qp->qp_num);
  if ((wc.wr_id & kReceiveBit) != 0) {
    TakeReceive(wc);
  } else {
    TakeSend(wc);
  }
}

void WalkEnd::TakeReceive(const ibv_wc& wc) {
  ASSERT_FALSE(receives_.empty());
  ASSERT_EQ(wc.wr_id, receives_.front());
  const size_t slot = kSendSlots + receives_taken_ % kReceiveSlots;
  receives_.pop_front();
  ++receives_taken_;
  if (wc.status != IBV_WC_SUCCESS) {
    EXPECT_TRUE(disturbed_) << ibv_wc_status_str(wc.status);
    broken_ = true;
    return;
  }
  TakeMessage(wc, side_.memory.data() + SlotOffset(slot));
}

void WalkEnd::TakeSharedReceive(const ibv_wc& wc) {
  ASSERT_NE(options_.shared, nullptr);
  EXPECT_GE(wc.wr_id, shared_next_) << "an earlier one than the message before it";
  shared_next_ = wc.wr_id + 1;
  TakeMessage(wc, options_.shared->Take(wc));
}

void WalkEnd::TakeLastReceiveEvent() {
  EXPECT_NE(options_.shared, nullptr);
  EXPECT_TRUE(disturbed_);
  ++last_receive_events_;
}

uint64_t WalkEnd::SharedReceivesOwed() const {
  if (options_.shared == nullptr || broken_) return 0;
  return peer_->sent_.size() - received_;
}

void WalkEnd::TakeMessage(const ibv_wc& wc, const uint8_t* buffer) {
  ASSERT_LT(received_, peer_->sent_.size());
  const std::vector<uint8_t>& message = peer_->sent_[received_++];
  ASSERT_EQ(wc.byte_len, message.size());
  if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) {
    EXPECT_EQ(wc.imm_data, message.size());
  }
  EXPECT_TRUE(std::equal(message.begin(), message.end(), buffer)) << "another message";
}

void WalkEnd::TakeSend(const ibv_wc& wc) {
  const uint64_t sequence = wc.wr_id & (kReceiveBit - 1);
  ASSERT_GE(sequence, completed_) << "completed twice";
  ASSERT_LT(sequence, posted_) << "never posted";
  // The requests before it were not signaled, and succeeded.
  for (; completed_ < sequence; ++completed_) {
    ASSERT_FALSE(requests_.front().signalled) << "its completion is missing";
    ASSERT_TRUE(unapplied_.empty()) << "the completion of one that failed is missing";
    Succeed(requests_.front());
    requests_.pop_front();
  }
  Request request = std::move(requests_.front());
  requests_.pop_front();
  freed_ = ++completed_;
  if (wc.status == IBV_WC_SUCCESS) {
    EXPECT_TRUE(request.signalled);
    ASSERT_TRUE(unapplied_.empty()) << "a success behind a failure";
    return Succeed(request);
  }
  EXPECT_TRUE(disturbed_) << "opcode " << request.opcode << ": " << ibv_wc_status_str(wc.status);
  if (!unapplied_.empty()) {
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }
  broken_ = true;
  unapplied_.push_back(std::move(request));
}

void WalkEnd::FeedReceives() {
  while (options_.shared == nullptr && !broken_ &&
         received_ + receives_.size() < peer_->sent_.size() && receives_.size() < kReceiveSlots &&
         !testing::Test::HasFailure()) {
    PostReceive();
  }
}

bool WalkEnd::AreaIsExplained() {
  const auto as_model = [this] {
    return std::equal(model_.begin(), model_.end(), side_.memory.data());
  };
  if (as_model()) return true;
  for (const Request& request : peer_->unapplied_) {
    Apply(request, model_);
    if (as_model()) return true;
  }
  return false;
}

void WalkEnd::CheckQuiet() {
  SCOPED_TRACE("end " + std::to_string(options_.number) + " of queue pair " +
               std::to_string(2 * options_.number));
  // An end that refused its peer breaks. If nothing was posted, no completion says so.
  if (disturbed_ && side_.State() == IBV_QPS_ERR) broken_ = true;
  // The remaining requests were neither signaled nor flushed. So they succeeded, and the area must
  // show it.
  for (; !requests_.empty(); requests_.pop_front(), ++completed_) {
    ASSERT_FALSE(requests_.front().signalled) << "request " << completed_ << " never completed";
    Succeed(requests_.front());
  }
  EXPECT_GE(peer_->received_, sends_succeeded_) << "a message was acknowledged and never received";
  if (broken_) {
    EXPECT_TRUE(receives_.empty()) << "receives were not flushed";
    EXPECT_EQ(side_.State(), IBV_QPS_ERR);
  } else {
    EXPECT_EQ(side_.State(), IBV_QPS_RTS);
  }
  EXPECT_EQ(last_receive_events_, broken_ && options_.shared != nullptr ? 1u : 0u);
}

void WalkEnd::CheckArea() {
  EXPECT_TRUE(AreaIsExplained()) << "memory that no order of the requests explains";
}

}  // namespace softverbs
