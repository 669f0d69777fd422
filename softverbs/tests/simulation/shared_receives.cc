#include "softverbs/tests/simulation/shared_receives.h"

#include <algorithm>
#include <cerrno>

namespace softverbs {

SharedReceives::SharedReceives(ibv_context* context, ibv_pd* pd, bool completions_delayed)
    : completions_delayed_(completions_delayed),
      cq_(ibv_create_cq(context, kSlots, nullptr, nullptr, 0)),
      memory_(MemoryKind::kPrivate, kSlots * kSlot),
      mr_(ibv_reg_mr(pd, memory_.data(), memory_.size(), int{IBV_ACCESS_LOCAL_WRITE})) {
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = kDepth;
  attr.attr.max_sge = 1;
  srq_.reset(ibv_create_srq(pd, &attr));
  EXPECT_NE(srq_, nullptr);
}

int SharedReceives::PostNext() {
  ibv_sge sge{reinterpret_cast<uint64_t>(Slot(next_)), kSlot, mr_->lkey};
  ibv_recv_wr wr{next_, nullptr, &sge, 1};
  ibv_recv_wr* bad;
  const int result = ibv_post_srq_recv(srq_.get(), &wr, &bad);
  if (result == 0) posted_.push_back(next_++);
  return result;
}

void SharedReceives::Post() {
  const bool full = posted_.size() >= kDepth;
  if (full && completions_delayed_) return;  // it may have room that nobody knows of
  ASSERT_EQ(PostNext(), full ? ENOMEM : 0);
}

uint32_t SharedReceives::Fill() {
  uint32_t room = 0;
  while (PostNext() == 0 && room <= kDepth) ++room;
  EXPECT_LE(room, kDepth);
  return room;
}

void SharedReceives::Feed(uint64_t messages) {
  if (lost_ && messages > 0) {
    Fill();
    return;
  }
  for (size_t i = posted_.size(); i < std::min<uint64_t>(messages, kDepth); ++i) Post();
}

void SharedReceives::Arm(uint32_t limit) {
  ibv_srq_attr attr{};
  ASSERT_EQ(ibv_query_srq(srq_.get(), &attr), 0);
  EXPECT_EQ(attr.srq_limit, limit_);
  attr.srq_limit = limit_ = limit;
  ASSERT_EQ(ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_LIMIT), 0);
}

const uint8_t* SharedReceives::Take(const ibv_wc& wc) {
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << "nothing flushes shared receives";
  const auto taken = std::find(posted_.begin(), posted_.end(), wc.wr_id);
  EXPECT_NE(taken, posted_.end()) << "receive " << wc.wr_id << " is not posted";
  if (taken == posted_.end()) return Slot(wc.wr_id);
  if (!completions_delayed_) {
    EXPECT_EQ(taken, posted_.begin()) << "receive " << wc.wr_id << " was not the oldest";
  }
  posted_.erase(taken);
  if (!completions_delayed_ && posted_.size() < limit_) {
    limit_ = 0;
    ++limit_events_due_;
  }
  return Slot(wc.wr_id);
}

void SharedReceives::TakeLimitEvent() {
  ++limit_events_;
  if (!completions_delayed_) return;
  EXPECT_NE(limit_, 0u) << "an event without a limit";
  limit_ = 0;
}

void SharedReceives::CheckLimit() {
  if (completions_delayed_) return;
  ASSERT_EQ(limit_events_, limit_events_due_) << posted_.size() << " are posted";
}

void SharedReceives::CheckQuiet() {
  if (!lost_ && !posted_.empty()) {
    EXPECT_EQ(posted_.front() + posted_.size(), next_) << "one that was not the oldest was taken";
  }
  const size_t known = posted_.size();
  const uint32_t room = Fill();
  EXPECT_GE(known + room, kDepth) << "full with fewer than it holds";
  if (!lost_) {
    EXPECT_EQ(known + room, kDepth) << "some were taken and never completed";
  }
  // The lost receives are the oldest ones.
  while (posted_.size() > kDepth) posted_.pop_front();
  lost_ = false;
}

}  // namespace softverbs
