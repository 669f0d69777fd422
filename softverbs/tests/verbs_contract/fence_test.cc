// A target fences: it moves its queue pair to ERR and takes what is flushed. From then on its
// memory is its own (IBTA 10.3.1.7, 9.7.5.1.5). What a peer saw complete is there, and nothing
// comes later.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

constexpr uint32_t kWriteBytes = 8 << 10;
constexpr uint64_t kDepth = 8;
constexpr uint64_t kWritesMax = 20'000;  // for a device that serves in ERR

// Overwrites the beginning of the target with 1, 2, 3..., in every word, until that fails.
class Writer {
 public:
  Writer(End& end, Buffer& target) : end_(end), target_(target) {}

  void Run() {
    uint64_t posted = 0, taken = 0;
    bool refused = false;
    while (!refused || taken < posted) {
      while (!refused && posted < taken + kDepth) {
        if (posted < kWritesMax && Post(posted + 1)) {
          ++posted;
        } else {
          refused = true;
        }
      }
      ibv_wc wc{};
      if (taken == posted || !Next(&wc)) return;
      ++taken;
      refused |= wc.status != IBV_WC_SUCCESS;
      // Release: who sees the number sees what we saw before, too.
      if (wc.status == IBV_WC_SUCCESS) completed_.store(wc.wr_id, std::memory_order_release);
    }
  }
  // Returns the newest WRITE that completed with success.
  uint64_t completed() const { return completed_.load(std::memory_order_acquire); }

 private:
  bool Post(uint64_t number) {
    const size_t offset = number % kDepth * kWriteBytes;
    auto* const words = reinterpret_cast<uint64_t*>(end_.buffer->data() + offset);
    std::fill_n(words, kWriteBytes / sizeof(uint64_t), number);
    ibv_sge sge = end_.buffer->Sge(offset, kWriteBytes);
    return verbs_contract::Post(end_, Write(&sge, target_.address(), target_.rkey(), number)) == 0;
  }
  bool Next(ibv_wc* wc) {
    // siw forgets what it took after the connection's end.
    if (TheDevice().is_iwarp()) return PollForAWhile(end_.cq, wc);
    *wc = NextCompletion(end_.cq);
    return wc->status != IBV_WC_GENERAL_ERR;
  }

  End& end_;
  Buffer& target_;
  std::atomic<uint64_t> completed_{0};
};

std::vector<uint64_t> Words(Buffer& buffer) {
  std::vector<uint64_t> words(kWriteBytes / sizeof(uint64_t));
  std::memcpy(words.data(), buffer.data(), kWriteBytes);
  return words;
}

// Fences after at least `writes` WRITEs.
void FenceAfter(uint64_t writes) {
  Pair pair;
  End& server = pair.server();
  server.buffer->Fill(0);
  ASSERT_EQ(PostReceive(server, server.buffer->Sge(server.buffer->size() - 64, 64), 9), 0);
  Writer writer(pair.client(), *server.buffer);
  std::atomic<bool> ended{false};
  std::thread thread([&] {
    writer.Run();
    ended = true;
  });
  while (writer.completed() < writes && !ended) std::this_thread::yield();
  EXPECT_GE(writer.completed(), writes) << "it failed before the fence";
  ToState(server.qp(), IBV_QPS_ERR);
  const ibv_wc flushed = NextCompletion(server.cq);
  const std::vector<uint64_t> then = Words(*server.buffer);
  thread.join();

  EXPECT_EQ(flushed.wr_id, 9u);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  // The last WRITE may have been cut short, which leaves words of the one before it. On iWARP a
  // WRITE is complete when its source may be used again (RFC 5040, 2.1): siw's was not there yet.
  if (!TheDevice().is_iwarp()) {
    EXPECT_GE(*std::min_element(then.begin(), then.end()), writer.completed());
  }
  EXPECT_EQ(Words(*server.buffer), then) << "something came later";
}

TEST(FenceTest, ACompletedWriteIsThereAfterErrAndFlushAndNothingComesLater) {
  for (uint64_t writes = 1; writes <= 64 && !::testing::Test::HasFailure(); writes *= 4) {
    FenceAfter(writes);
  }
}

}  // namespace
}  // namespace verbs_contract
