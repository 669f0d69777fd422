// More than one of everything: threads, and a thousand connections.
#include <algorithm>
#include <atomic>
#include <thread>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

TEST(ThreadsTest, TwoOnTwoQueuePairs) {
  Pair first;
  Pair second;
  const auto work = [](Pair& pair, uint8_t mark) {
    pair.server().buffer->Fill(mark);
    ibv_sge sge = pair.client().buffer->Sge(0, 256);
    for (int i = 0; i < 1000; ++i) {
      const ibv_wc wc = Do(
          pair.client(), Read(&sge, pair.server().buffer->address(), pair.server().buffer->rkey()));
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(pair.client().buffer->data()[255], mark);
    }
  };
  std::thread other(work, std::ref(second), 2);
  work(first, 1);
  other.join();
}

TEST(ThreadsTest, TwoPollOneCompletionQueue) {
  Pair pair;
  std::atomic<int> polled{0};
  constexpr int kCount = 1000;
  const auto poller = [&] {
    ibv_wc wc{};
    while (polled.load() < kCount) {
      if (ibv_poll_cq(pair.client().cq, 1, &wc) == 1) {
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        polled.fetch_add(1);
      } else {
        std::this_thread::yield();  // siw's thread needs a core
      }
    }
  };
  std::thread one(poller);
  std::thread two(poller);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  for (int posted = 0; posted < kCount;) {
    if (Post(pair.client(),
             Read(&sge, pair.server().buffer->address(), pair.server().buffer->rkey())) == 0) {
      ++posted;
    }
  }
  one.join();
  two.join();
  EXPECT_EQ(polled.load(), kCount);
}

TEST(ScaleTest, AThousandConnections) {
  // As many connections as the device has queue pairs for; each takes two.
  const int wanted = std::min(1000, (TheDevice().attr.max_qp - 8) / 2);
  PairOptions small{.send_wrs = 2, .recv_wrs = 2, .inline_bytes = 0};
  // One large queue. Besides, siw cannot map a queue that lies at 0x90000 of a process's queues,
  // and this one lies across it.
  small.cq_entries = static_cast<uint32_t>(std::min(16384, TheDevice().attr.max_cqe));
  Pair first(small);
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < wanted - 1; ++i) {
    pairs.push_back(std::make_unique<Pair>(small, first));
    ASSERT_FALSE(::testing::Test::HasFailure()) << "at connection " << i;
  }
  std::printf("%zu connections\n", pairs.size() + 1);
  // Each carries a message, and each message arrives on its own queue pair.
  ibv_sge sge = first.client().buffer->Sge(0, 8);
  for (auto& pair : pairs) {
    ASSERT_EQ(PostReceive(pair->server(), pair->server().buffer->Sge(0, 64)), 0);
    ASSERT_EQ(Do(pair->client(), Send(&sge)).status, IBV_WC_SUCCESS);
    const ibv_wc wc = NextCompletion(pair->server().cq);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.qp_num, pair->server().qp()->qp_num);
  }
}

}  // namespace
}  // namespace verbs_contract
