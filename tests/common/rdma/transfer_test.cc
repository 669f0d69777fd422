#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/common/rdma/connected_pair.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

ibv_send_wr WriteRequest(uint64_t wr_id, ibv_sge* sge, uint64_t remote_address, uint32_t rkey) {
  ibv_send_wr request = MakeRequest(IBV_WR_RDMA_WRITE, wr_id, sge, 0);
  request.wr.rdma = {remote_address, rkey};
  return request;
}

class TransferTest : public ConnectedPairTest {
 protected:
  void SetUp() override {
    ConnectedPairTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  ibv_qp* qp() const { return active_->connection()->qp(); }
  ibv_wc Do(ibv_send_wr request) {
    request.send_flags |= IBV_SEND_SIGNALED;
    EXPECT_EQ(PostSend(qp(), &request), PostResult::kPosted);
    return client_.Next();
  }
};

TEST_F(TransferTest, SendArrivesInTheReceive) {
  server_.PostReceive(passive_->qp(), 11, 0, 64);
  client_.SetText(0, "to whom it may concern");
  ibv_sge sge = client_.buffer.Sge(0, 22);
  EXPECT_EQ(Do(SendRequest(22, &sge, 0)).status, IBV_WC_SUCCESS);
  const ibv_wc received = server_.Next();
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.wr_id, 11u);
  EXPECT_EQ(received.byte_len, 22u);
  EXPECT_EQ(received.qp_num, passive_->qp_number());
  EXPECT_EQ(server_.Text(0, 22), "to whom it may concern");
}

TEST_F(TransferTest, ReadFetchesThePeersBytes) {
  server_.SetText(100, "one-sided");
  ibv_sge sge = client_.buffer.Sge(0, 9);
  const ibv_wc done =
      Do(ReadRequest(1, &sge, server_.buffer.address() + 100, server_.buffer.rkey(), 0));
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(client_.Text(0, 9), "one-sided");
}

TEST_F(TransferTest, WriteChangesThePeersBytes) {
  client_.SetText(0, "written");
  ibv_sge sge = client_.buffer.Sge(0, 7);
  const ibv_wc done =
      Do(WriteRequest(1, &sge, server_.buffer.address() + 8, server_.buffer.rkey()));
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(server_.Text(8, 7), "written");
}

TEST_F(TransferTest, CompareAndSwapReturnsWhatWasThere) {
  if (!TestDevice().caps.has_atomics()) GTEST_SKIP() << TestDevice().name << " has no atomics";
  server_.SetWord(0, 5);
  ibv_sge sge = client_.buffer.Sge(0, 8);
  const auto swap = [&](uint64_t expected, uint64_t desired) {
    return Do(CompareAndSwapRequest(1, &sge, server_.buffer.address(), server_.buffer.rkey(),
                                    expected, desired, 0))
        .status;
  };
  EXPECT_EQ(swap(4, 9), IBV_WC_SUCCESS);
  EXPECT_EQ(client_.Word(0), 5u);
  EXPECT_EQ(server_.Word(0), 5u);
  EXPECT_EQ(swap(5, 9), IBV_WC_SUCCESS);
  EXPECT_EQ(client_.Word(0), 5u);
  EXPECT_EQ(server_.Word(0), 9u);
}

TEST_F(TransferTest, ChainIsOnePostAndOnlySignaledOnesComplete) {
  constexpr int kReads = 8;
  std::vector<ibv_sge> sges(kReads);
  std::vector<ibv_send_wr> chain(kReads);
  for (int i = 0; i < kReads; ++i) {
    server_.SetWord(8 * i, 1000 + i);
    sges[i] = client_.buffer.Sge(8 * i, 8);
    chain[i] = ReadRequest(i, &sges[i], server_.buffer.address() + 8 * i, server_.buffer.rkey(),
                           i == kReads - 1 ? IBV_SEND_SIGNALED : 0);
    if (i > 0) chain[i - 1].next = &chain[i];
  }
  ASSERT_EQ(PostSend(qp(), chain.data()), PostResult::kPosted);
  const ibv_wc done = client_.Next();
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.wr_id, uint64_t{kReads - 1});
  for (int i = 0; i < kReads; ++i) EXPECT_EQ(client_.Word(8 * i), 1000u + i);
  ibv_wc more;
  EXPECT_EQ(client_.completions->Poll({&more, 1}), 0u);
}

// A client relies on this when it signals only the last work request of a chain.
TEST_F(TransferTest, SendCompletesAfterTheReadsInFrontOfIt) {
  constexpr uint32_t kBytes = 4096;
  constexpr uint64_t kMessage = kBytes;  // behind what is READ
  for (uint64_t round = 1; round <= 50; ++round) {
    server_.PostReceive(passive_->qp(), round, kMessage, 8);
    server_.SetWord(kBytes - 8, round);
    ibv_sge into = client_.buffer.Sge(0, kBytes);
    ibv_sge message = client_.buffer.Sge(kMessage, 8);
    ibv_send_wr read =
        ReadRequest(round, &into, server_.buffer.address(), server_.buffer.rkey(), 0);
    ibv_send_wr send =
        SendRequest(round, &message, active_->connection()->send_flags() | IBV_SEND_SIGNALED);
    read.next = &send;
    ASSERT_EQ(PostSend(qp(), &read), PostResult::kPosted);
    ASSERT_EQ(client_.Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(client_.Word(kBytes - 8), round) << "the SEND completed before the READ";
    ASSERT_EQ(server_.Next().status, IBV_WC_SUCCESS);
  }
}

TEST_F(TransferTest, InlineSendTakesItsBytesAtThePost) {
  // An inline SEND needs a queue pair with room for it.
  Close();
  active_ = StartConnector();
  ASSERT_NE(active_, nullptr);
  StepUntil(active_.get(), Connector::Step::kResolved);
  ConnectionOptions options = client_.Options();
  options.queue_pair.inline_bytes = TestDevice().caps.max_inline_data;
  ASSERT_TRUE(active_->CreateConnection(options).ok()) << active_->status();
  const uint32_t bytes = active_->connection()->limits().inline_bytes;
  EXPECT_GE(bytes, TestDevice().caps.max_inline_data);
  if (bytes < 8) GTEST_SKIP() << TestDevice().name << " sends nothing inline";
  ASSERT_TRUE(active_->Connect({}).ok());
  std::optional<ListenerEvent> event;
  do {
    event = NextListenerEvent(active_.get());
    ASSERT_TRUE(event.has_value());
  } while (event->type != ListenerEvent::Type::kRequest);
  auto passive = listener_->BeginAccept(std::move(*event->request), server_.Options(), 2);
  ASSERT_TRUE(passive.ok()) << passive.status();
  passive_ = *std::move(passive);
  server_.PostReceive(passive_->qp(), 1, 0, 64);
  ASSERT_TRUE(listener_->FinishAccept(passive_.get(), {}, PeerRights::kAll).ok());
  StepUntil(active_.get(), Connector::Step::kEstablished);
  ASSERT_EQ(active_->step(), Connector::Step::kEstablished) << active_->status();

  uint64_t word = 77;  // not registered
  ibv_sge sge{reinterpret_cast<uint64_t>(&word), 8, 0};
  ibv_send_wr send = SendRequest(1, &sge, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  ASSERT_EQ(PostSend(qp(), &send), PostResult::kPosted);
  word = 0;
  EXPECT_EQ(client_.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(server_.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(server_.Word(0), 77u);
}

TEST_F(TransferTest, MoreThanTheQueueHoldsIsRefusedAndHarmless) {
  ibv_sge sge = client_.buffer.Sge(0, 8);
  uint32_t posted = 0;
  PostResult result = PostResult::kPosted;
  while (posted <= active_->connection()->limits().send_wrs + 1) {
    ibv_send_wr read = ReadRequest(posted, &sge, server_.buffer.address(), server_.buffer.rkey(),
                                   IBV_SEND_SIGNALED);
    result = PostSend(qp(), &read);
    if (result != PostResult::kPosted) break;
    ++posted;
  }
  // The kernel's devices free a place when its request is done, all others when its completion was
  // polled. So on the kernel's devices the queue may never be full.
  const bool frees_early = TestDevice().kind == DeviceKind::kKernelSoftware;
  if (!frees_early || result != PostResult::kPosted) {
    EXPECT_EQ(result, PostResult::kQueueFull);
  }
  for (uint32_t i = 0; i < posted; ++i) EXPECT_EQ(client_.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(Do(ReadRequest(1, &sge, server_.buffer.address(), server_.buffer.rkey(), 0)).status,
            IBV_WC_SUCCESS);
}

TEST_F(TransferTest, WrongRkeyAndBoundsAreRefused) {
  ibv_sge sge = client_.buffer.Sge(0, 64);
  const ibv_wc done = Do(ReadRequest(1, &sge, server_.buffer.address() + server_.buffer.size() - 8,
                                     server_.buffer.rkey(), 0));
  EXPECT_EQ(done.status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(TransferTest, WriteIntoReadOnlyMemoryIsRefusedAndChangesNothing) {
  auto memory = SharedMemory::Create({.bytes = 4096});
  ASSERT_TRUE(memory.ok()) << memory.status();
  auto mr = RegisterMemory(server_.pd.get(), memory->bytes(), RemoteAccess::kRead);
  ASSERT_TRUE(mr.ok()) << mr.status();
  client_.SetText(0, "intruder");
  ibv_sge sge = client_.buffer.Sge(0, 8);
  const uint64_t address = reinterpret_cast<uint64_t>(memory->bytes().data());
  const ibv_wc done = Do(WriteRequest(1, &sge, address, (*mr)->rkey));
  EXPECT_EQ(done.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(memory->bytes()[0], std::byte{0});
  Close();  // before the memory region goes
}

TEST_F(TransferTest, ReadsASealedSharedRegionWithoutThePeer) {
  auto memory = SharedMemory::Create({.bytes = 1 << 20});
  ASSERT_TRUE(memory.ok()) << memory.status();
  auto mr = RegisterMemory(server_.pd.get(), memory->bytes(), RemoteAccess::kRead);
  ASSERT_TRUE(mr.ok()) << mr.status();
  memory->bytes()[777] = std::byte{42};
  ibv_sge sge = client_.buffer.Sge(0, 1024);
  const uint64_t address = reinterpret_cast<uint64_t>(memory->bytes().data());
  EXPECT_EQ(Do(ReadRequest(1, &sge, address, (*mr)->rkey, 0)).status, IBV_WC_SUCCESS);
  EXPECT_EQ(client_.buffer.data()[777], std::byte{42});
  Close();
}

TEST_F(TransferTest, SharedReceiveQueueServesTheConnection) {
  auto srq = CreateSharedReceiveQueue(server_.pd.get(), 8);
  ASSERT_TRUE(srq.ok()) << srq.status();
  Close();
  while (listener_->Poll().has_value()) {
  }
  active_ = ResolvedConnector();
  ASSERT_NE(active_, nullptr);
  ASSERT_TRUE(active_->Connect({}).ok());
  std::optional<ListenerEvent> event;
  do {
    event = NextListenerEvent(active_.get());
    ASSERT_TRUE(event.has_value());
  } while (event->type != ListenerEvent::Type::kRequest);
  ConnectionOptions options = server_.Options();
  options.queue_pair.srq = srq->get();
  auto passive = listener_->BeginAccept(std::move(*event->request), options, 3);
  ASSERT_TRUE(passive.ok()) << passive.status();
  passive_ = *std::move(passive);
  ibv_sge to = server_.buffer.Sge(0, 64);
  ibv_recv_wr receive{.wr_id = 99, .sg_list = &to, .num_sge = 1};
  ASSERT_EQ(PostReceive(srq->get(), &receive), PostResult::kPosted);
  ASSERT_TRUE(listener_->FinishAccept(passive_.get(), {}, PeerRights::kAll).ok());
  StepUntil(active_.get(), Connector::Step::kEstablished);
  ASSERT_EQ(active_->step(), Connector::Step::kEstablished) << active_->status();
  client_.SetWord(0, 31);
  ibv_sge from = client_.buffer.Sge(0, 8);
  EXPECT_EQ(Do(SendRequest(1, &from, 0)).status, IBV_WC_SUCCESS);
  const ibv_wc received = server_.Next();
  EXPECT_EQ(received.wr_id, 99u);
  EXPECT_EQ(received.qp_num, passive_->qp_number());
  EXPECT_EQ(server_.Word(0), 31u);
  Close();  // before the SRQ goes
}

TEST_F(TransferTest, ClosingFlushesWhatIsInFlightAndTheDrainComesLast) {
  for (uint64_t i = 0; i < 4; ++i) client_.PostReceive(qp(), 100 + i, 0, 8);
  ibv_sge sge = client_.buffer.Sge(0, 8);
  // No receive is posted there: the SEND waits.
  ibv_send_wr send = SendRequest(1, &sge, IBV_SEND_SIGNALED);
  ASSERT_EQ(PostSend(qp(), &send), PostResult::kPosted);
  ASSERT_TRUE(active_->connection()->BeginDrain(2));
  std::vector<uint64_t> sends;
  int receives = 0;
  while (sends.empty() || sends.back() != 2) {
    const ibv_wc done = client_.Next();
    ASSERT_NE(done.status, IBV_WC_GENERAL_ERR);
    EXPECT_NE(done.status, IBV_WC_SUCCESS);
    if (done.wr_id >= 100) {
      ++receives;
    } else {
      sends.push_back(done.wr_id);
    }
  }
  EXPECT_EQ(sends, (std::vector<uint64_t>{1, 2}));
  while (receives < 4 && !HasFailure()) receives += client_.Next().wr_id >= 100;
  EXPECT_EQ(receives, 4);
}

}  // namespace
}  // namespace gannet
