#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "softverbs/tests/support/test_seed.h"
#include "softverbs/tests/support/verbs_fixture.h"

// A seeded random walk over verbs calls on several connections, against a model of what each
// request must do. Requests of one queue pair take effect in order (WRITEs and atomics are fenced,
// as IBTA asks for it after a READ), so the model is exact.

namespace softverbs {
namespace {

constexpr size_t kArea = 64 * 1024;  // the target's memory that requests work on
constexpr size_t kSlot = 32 * 1024;  // one message or READ
constexpr int kSlots = 24;           // of them at most are under way
constexpr int kPairs = 4;

struct Expected {
  uint64_t wr_id;
  ibv_wc_opcode opcode;
  std::vector<uint8_t> data;  // what a READ or atomic must have fetched
  int slot;
};

struct ExpectedReceive {
  std::vector<uint8_t> data;
  bool has_imm;
  uint32_t imm;
};

// One connection with its model.
class Walk {
 public:
  Walk(ibv_context* device, MemoryKind kind, std::mt19937_64* random) : random_(*random) {
    SideOptions initiator, target;
    initiator.memory = kSlots * kSlot;
    target.kind = kind;
    target.memory = kArea + kSlots * kSlot;
    ConnectOptions connect;
    connect.max_rd_atomic = static_cast<uint8_t>(1 + Below(16));
    pair_ = std::make_unique<Pair>(device, initiator, target, connect);
    pair_->b.Fill(0, kArea, 1);
    model_.assign(pair_->b.memory.data(), pair_->b.memory.data() + kArea);
    for (int i = 0; i < kSlots; ++i) free_slots_.push_back(i);
  }

  void Step() {
    switch (Below(8)) {
      case 0:
        return PostReceive();
      case 1:
        return Send();
      case 2:
        return Read();
      case 3:
        return Write();
      case 4:
        return Atomic();
      case 5:
      case 6:
        return PollInitiator();
      default:
        return PollTarget();
    }
  }

  // Completes everything. The target's memory must then equal the model's.
  void Finish() {
    ReceiveAll();
    while (!expected_.empty()) TakeCompletion(pair_->a.Next());
    while (!expected_receives_.empty()) TakeReceive(pair_->b.Next());
    EXPECT_TRUE(pair_->a.Idle());
    EXPECT_EQ(memcmp(pair_->b.memory.data(), model_.data(), kArea), 0);
  }

  // Posts a request that is refused, with others behind it. Exactly those are flushed.
  void Break() {
    ReceiveAll();
    Address wrong = pair_->b.address();
    wrong.rkey ^= 1u << 29;
    const uint64_t first_bad = next_id_;
    ASSERT_EQ(pair_->a.Read(next_id_++, 0, 8, wrong, 0), 0);
    for (uint64_t i = Below(5); i > 0; --i) {
      ASSERT_EQ(pair_->a.Write(next_id_++, 0, 8, pair_->b.address(), 0), 0);
    }
    while (!expected_.empty()) TakeCompletion(pair_->a.Next());
    ibv_wc wc = pair_->a.Next();
    EXPECT_EQ(wc.wr_id, first_bad);
    EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
    for (uint64_t id = first_bad + 1; id < next_id_; ++id) {
      wc = pair_->a.Next();
      EXPECT_EQ(wc.wr_id, id);
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    while (!expected_receives_.empty()) TakeReceive(pair_->b.Next());
    EXPECT_EQ(memcmp(pair_->b.memory.data(), model_.data(), kArea), 0);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  // Mostly small, sometimes of several segments.
  size_t RandomSize() { return Below(4) == 0 ? Below(kSlot + 1) : Below(200); }

  int TakeSlot() {
    if (free_slots_.empty()) return -1;
    const size_t at = Below(free_slots_.size());
    std::swap(free_slots_[at], free_slots_.back());
    const int slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  uint8_t* FillSlot(int slot, size_t size) {
    uint8_t* data = pair_->a.memory.data() + slot * kSlot;
    for (size_t i = 0; i < size; i += 8) {
      const uint64_t word = random_();
      memcpy(data + i, &word, std::min<size_t>(8, size - i));
    }
    return data;
  }

  void PostReceive() {
    if (receives_posted_ - receives_taken_ >= kSlots) return;
    const uint64_t id = receives_posted_;
    ASSERT_EQ(pair_->b.PostReceive(id, kArea + id % kSlots * kSlot, kSlot), 0);
    ++receives_posted_;
  }

  // A receive for every SEND; taking some makes room for others.
  void ReceiveAll() {
    while (receives_posted_ < sends_posted_ && !testing::Test::HasFailure()) {
      PostReceive();
      PollTarget();
    }
  }

  void Expect(ibv_wc_opcode opcode, int slot, std::vector<uint8_t> data = {}) {
    expected_.push_back({next_id_++, opcode, std::move(data), slot});
  }

  void Send() {
    const int slot = TakeSlot();
    if (slot < 0) return;
    const bool in_line = Below(3) == 0;
    const size_t size = in_line ? Below(257) : RandomSize();
    uint8_t* data = FillSlot(slot, size);
    ibv_send_wr wr{};
    wr.wr_id = next_id_;
    wr.opcode = Below(2) == 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
    wr.imm_data = static_cast<uint32_t>(random_());
    wr.send_flags = IBV_SEND_SIGNALED | (in_line ? IBV_SEND_INLINE : 0);
    ASSERT_EQ(pair_->a.Post(wr, pair_->a.Sge(slot * kSlot, size)), 0);
    expected_receives_.push_back(
        {{data, data + size}, wr.opcode == IBV_WR_SEND_WITH_IMM, wr.imm_data});
    if (in_line) memset(data, 0xee, size);
    ++sends_posted_;
    Expect(IBV_WC_SEND, slot);
  }

  void Read() {
    const int slot = TakeSlot();
    if (slot < 0) return;
    const size_t size = RandomSize();
    const size_t at = Below(kArea - size + 1);
    ASSERT_EQ(pair_->a.Read(next_id_, slot * kSlot, size, pair_->b.address(), at), 0);
    Expect(IBV_WC_RDMA_READ, slot, {model_.begin() + at, model_.begin() + at + size});
  }

  void Write() {
    const int slot = TakeSlot();
    if (slot < 0) return;
    const size_t size = RandomSize();
    const size_t at = Below(kArea - size + 1);
    const uint8_t* data = FillSlot(slot, size);
    ibv_send_wr wr{};
    wr.wr_id = next_id_;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    wr.wr.rdma.remote_addr = pair_->b.memory.address() + at;
    wr.wr.rdma.rkey = pair_->b.mr->rkey;
    ASSERT_EQ(pair_->a.Post(wr, pair_->a.Sge(slot * kSlot, size)), 0);
    std::copy(data, data + size, model_.begin() + at);
    Expect(IBV_WC_RDMA_WRITE, slot);
  }

  void Atomic() {
    const int slot = TakeSlot();
    if (slot < 0) return;
    const size_t at = Below(kArea / 8) * 8;
    uint64_t original;
    memcpy(&original, &model_[at], 8);
    ibv_send_wr wr{};
    wr.wr_id = next_id_;
    wr.opcode = Below(2) == 0 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    wr.wr.atomic.remote_addr = pair_->b.memory.address() + at;
    wr.wr.atomic.rkey = pair_->b.mr->rkey;
    wr.wr.atomic.compare_add = Below(2) == 0 ? original : random_();
    wr.wr.atomic.swap = random_();
    ASSERT_EQ(pair_->a.Post(wr, pair_->a.Sge(slot * kSlot, 8)), 0);
    uint64_t now = original + wr.wr.atomic.compare_add;
    if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      now = original == wr.wr.atomic.compare_add ? wr.wr.atomic.swap : original;
    }
    memcpy(&model_[at], &now, 8);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&original);
    Expect(wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD, slot,
           {bytes, bytes + 8});
  }

  void PollInitiator() {
    ibv_wc wc[4];
    const int count = ibv_poll_cq(pair_->a.cq.get(), 1 + static_cast<int>(Below(4)), wc);
    for (int i = 0; i < count; ++i) TakeCompletion(wc[i]);
  }

  void PollTarget() {
    ibv_wc wc;
    if (ibv_poll_cq(pair_->b.cq.get(), 1, &wc) == 1) TakeReceive(wc);
  }

  void TakeCompletion(const ibv_wc& wc) {
    ASSERT_FALSE(expected_.empty());
    const Expected expected = std::move(expected_.front());
    expected_.pop_front();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, expected.wr_id);
    ASSERT_EQ(wc.opcode, expected.opcode);
    const uint8_t* fetched = pair_->a.memory.data() + expected.slot * kSlot;
    ASSERT_TRUE(std::equal(expected.data.begin(), expected.data.end(), fetched));
    free_slots_.push_back(expected.slot);
  }

  void TakeReceive(const ibv_wc& wc) {
    ASSERT_FALSE(expected_receives_.empty());
    const ExpectedReceive expected = std::move(expected_receives_.front());
    expected_receives_.pop_front();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, receives_taken_);
    ASSERT_EQ(wc.byte_len, expected.data.size());
    ASSERT_EQ(wc.wc_flags, expected.has_imm ? unsigned{IBV_WC_WITH_IMM} : 0u);
    if (expected.has_imm) {
      ASSERT_EQ(wc.imm_data, expected.imm);
    }
    const uint8_t* received = pair_->b.memory.data() + kArea + receives_taken_ % kSlots * kSlot;
    ASSERT_TRUE(std::equal(expected.data.begin(), expected.data.end(), received));
    ++receives_taken_;
  }

  std::mt19937_64& random_;
  std::unique_ptr<Pair> pair_;
  std::vector<uint8_t> model_;
  std::vector<int> free_slots_;
  std::deque<Expected> expected_;
  std::deque<ExpectedReceive> expected_receives_;
  uint64_t next_id_ = 0;
  uint64_t sends_posted_ = 0;
  uint64_t receives_posted_ = 0;
  uint64_t receives_taken_ = 0;
};

class StressTest : public ::testing::TestWithParam<MemoryKind> {};

INSTANTIATE_TEST_SUITE_P(Memory, StressTest,
                         ::testing::Values(MemoryKind::kPrivate, MemoryKind::kMapped),
                         [](const auto& info) {
                           return info.param == MemoryKind::kMapped ? "Mapped" : "Private";
                         });

TEST_P(StressTest, RandomRequestsDoWhatTheModelSays) {
  constexpr int kRounds = 40;
  constexpr int kStepsPerRound = 4000;
  const uint64_t seed = test_support::TestSeed();
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  Owned<ibv_context> device = OpenDevice();
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    std::vector<std::unique_ptr<Walk>> walks;
    for (int i = 0; i < kPairs; ++i) {
      walks.push_back(std::make_unique<Walk>(device.get(), GetParam(), &random));
    }
    for (int step = 0; step < kStepsPerRound && !HasFailure(); ++step) {
      walks[random() % kPairs]->Step();
    }
    for (auto& walk : walks) {
      if (HasFailure()) break;
      if (random() % 2 == 0) {
        walk->Finish();
      } else {
        walk->Break();
      }
    }
  }
}

}  // namespace
}  // namespace softverbs
