// Many sessions at once, each with the smallest options of a client.

#include <jemalloc/jemalloc.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/rdma/connector.h"
#include "common/rdma/queue_pair.h"
#include "gtest/gtest.h"
#include "softverbs/tests/support/sanitizer.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kMessageBytes = 256;

// Clients that begin to connect at the same moment, on one completion queue.
class Storm {
 public:
  Storm(ServerTest* server, uint32_t clients) : server_(server), clients_(clients) {
    pd_.reset(ibv_alloc_pd(TestDevice().verbs));
    cq_ = *CompletionQueue::Create(TestDevice().verbs, 4 * clients, /*with_channel=*/false);
    memory_ = *RegisteredBuffer::Create(pd_.get(), uint64_t{clients} * 2 * kMessageBytes);
    for (uint32_t i = 0; i < clients; ++i) Begin(i);
  }
  ~Storm() {
    for (const auto& client : clients_) client->connection()->BeginDrain(0);
    server_->StepUntil([this] { return server_->stats().connections == 0; });
  }

  // Waits until each has asked, and the server's connection thread has passed it on.
  bool WaitRequested() {
    const int64_t deadline_ns = MonotonicNs() + kStepNsMax;
    const auto asked = [](const auto& client) {
      return client->step() >= Connector::Step::kConnecting;
    };
    while (!std::all_of(clients_.begin(), clients_.end(), asked)) {
      if (MonotonicNs() > deadline_ns) return false;
      for (uint32_t i = 0; i < clients_.size(); ++i) Poll(i);
    }
    for (size_t events = 0; events < clients_.size();) {
      if (MonotonicNs() > deadline_ns) return false;
      server_->server().Poll(server_->now());
      events = server_->server().workers()[0]->inbox().arrivals();
    }
    return true;
  }
  // Waits until each is connected or refused. Returns how many are connected.
  size_t Settle() {
    EXPECT_TRUE(server_->StepUntil([this] {
      size_t settled = 0;
      for (uint32_t i = 0; i < clients_.size(); ++i) settled += Poll(i);
      return settled == clients_.size();
    })) << "a handshake hangs";
    size_t in = 0;
    for (uint32_t i = 0; i < clients_.size(); ++i) in += left_[i] || IsIn(i);
    return in;
  }
  // Makes those that were refused connect again.
  void Retry() {
    for (uint32_t i = 0; i < clients_.size(); ++i) {
      if (left_[i] || IsIn(i)) continue;
      const auto reject = DecodeReject(clients_[i]->private_data());
      ASSERT_TRUE(reject.ok()) << clients_[i]->status();
      EXPECT_EQ(reject->code, static_cast<uint32_t>(RejectCode::kTooManyConnections));
      Begin(i);
    }
  }
  // Returns false if it is not connected.
  bool Leave(uint32_t i) {
    if (!IsIn(i)) return false;
    clients_[i]->connection()->BeginDrain(0);
    left_[i] = true;
    return true;
  }

  // Each connected client PUTs one item. Returns how many were answered with kOk.
  size_t PutAll() {
    size_t sent = 0, answered = 0;
    for (uint32_t i = 0; i < clients_.size(); ++i) sent += !left_[i] && Put(i);
    EXPECT_TRUE(server_->StepUntil([&] {
      std::array<ibv_wc, 64> done;
      const size_t n = cq_->Poll(done);
      for (size_t k = 0; k < n; ++k) {
        if (done[k].status != IBV_WC_SUCCESS || done[k].opcode != IBV_WC_RECV) continue;
        ReplyView reply;
        answered += DecodeReply({Bytes(done[k].wr_id, 1).data(), done[k].byte_len}, &reply) &&
                    reply.header.status == static_cast<uint8_t>(ReplyStatus::kOk);
      }
      return answered == sent;
    }));
    return answered;
  }

 private:
  bool IsIn(uint32_t i) const { return clients_[i]->step() == Connector::Step::kEstablished; }
  std::span<std::byte> Bytes(uint64_t client, uint32_t half) {
    return {memory_.data() + (2 * client + half) * kMessageBytes, kMessageBytes};
  }
  ibv_sge Sge(uint64_t client, uint32_t half, size_t bytes) {
    return memory_.Sge((2 * client + half) * kMessageBytes, static_cast<uint32_t>(bytes));
  }
  void Begin(uint32_t i) {
    clients_[i] =
        *Connector::Start({.to = server_->address(), .deadline_ns = MonotonicNs() + kStepNsMax});
  }
  // Returns true if it is connected, refused or failed.
  bool Poll(uint32_t i) {
    Connector& client = *clients_[i];
    const Connector::Step step = client.Poll(MonotonicNs());
    if (step == Connector::Step::kResolved) {
      ConnectionOptions options{.caps = TestDevice().caps};
      options.queue_pair = {.pd = pd_.get(),
                            .send_cq = cq_->get(),
                            .recv_cq = cq_->get(),
                            .send_wrs = 2,
                            .recv_wrs = 1};
      EXPECT_TRUE(client.CreateConnection(options).ok());
      ibv_sge sge = Sge(i, 1, kMessageBytes);
      ibv_recv_wr receive{.wr_id = i, .sg_list = &sge, .num_sge = 1};
      EXPECT_EQ(PostReceive(client.connection()->qp(), &receive), PostResult::kPosted);
      const ConnectRequest request = NewConnectRequest();
      EXPECT_TRUE(client.Connect(std::as_bytes(std::span(&request, 1))).ok());
    }
    return step >= Connector::Step::kEstablished;
  }
  bool Put(uint32_t i) {
    if (!IsIn(i)) return false;
    const std::string key = "client" + std::to_string(i);
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kPut);
    header.sequence = 1;
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = 1;
    ibv_sge sge = Sge(i, 0, EncodeRequest(header, key, "v", Bytes(i, 0)));
    ibv_send_wr send = SendRequest(i, &sge, 0);
    return PostSend(clients_[i]->connection()->qp(), &send) == PostResult::kPosted;
  }

  ServerTest* const server_;
  Handle<ibv_pd> pd_;
  std::unique_ptr<CompletionQueue> cq_;
  RegisteredBuffer memory_;
  std::vector<std::unique_ptr<Connector>> clients_;
  std::vector<char> left_ = std::vector<char>(clients_.size());
};

// Returns what this thread allocated and did not free, by jemalloc's count.
int64_t ThreadBytes() {
  uint64_t allocated = 0, freed = 0;
  size_t size = sizeof(allocated);
  if (mallctl("thread.allocated", &allocated, &size, nullptr, 0) != 0) return 0;
  if (mallctl("thread.deallocated", &freed, &size, nullptr, 0) != 0) return 0;
  return static_cast<int64_t>(allocated - freed);
}

// Returns false under a sanitizer, whose malloc wins.
bool MallocIsJemallocs() {
  const int64_t before = ThreadBytes();
  const auto probe = std::make_unique<std::string>(4000, 'x');
  return ThreadBytes() - before >= static_cast<int64_t>(probe->size());
}

class StormTest : public ServerTest {
 public:
  void Step() override {
    const int64_t before = ThreadBytes();
    ServerTest::Step();
    server_bytes_ += ThreadBytes() - before;
  }

 protected:
  // Returns what a queue pair like the server's takes from malloc.
  int64_t QueuePairBytes() {
    ibv_context* verbs = TestDevice().verbs;
    const Handle<ibv_pd> pd(ibv_alloc_pd(verbs));
    const auto cq = *CompletionQueue::Create(verbs, 16, /*with_channel=*/false);
    const Handle<ibv_srq> srq = *CreateSharedReceiveQueue(pd.get(), 16);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq->get();
    attributes.srq = srq.get();
    attributes.cap = {.max_send_wr = 113, .max_send_sge = 1, .max_inline_data = 256};
    attributes.qp_type = IBV_QPT_RC;
    const int64_t before = ThreadBytes();
    ibv_qp* qp = ibv_create_qp(pd.get(), &attributes);
    const int64_t bytes = ThreadBytes() - before;
    EXPECT_NE(qp, nullptr);
    ibv_destroy_qp(qp);
    return bytes;
  }

  int64_t server_bytes_ = 0;  // that the server's own steps allocated
};

TEST_F(StormTest, AThousandClientsAtOnceAllGetInAndAreServed) {
  constexpr uint32_t kClients = 1000;
  StartServer([](Server::Options* options) { options->connections_max = 1024; });
  Storm storm(this, kClients);
  // A client that is refused for the moment is told so, and gets in later.
  for (int tries = 0; storm.Settle() < kClients && tries < 10; ++tries) storm.Retry();
  EXPECT_EQ(storm.PutAll(), kClients);
  EXPECT_EQ(stats().sessions, kClients);
  EXPECT_EQ(stats().connections, kClients);
  EXPECT_LE(stats().session_bytes / kClients, 8192u);
}

// To accept one client takes most of a millisecond.
TEST_F(StormTest, RequestsAreServedBetweenTheClientsThatConnect) {
  constexpr uint32_t kClients = 64;
  StartServer([](Server::Options* options) { options->connections_max = 128; });
  std::optional<RawPeer> peer(this);
  ASSERT_TRUE(peer->Connect());
  Worker& worker = *server().workers()[0];
  ASSERT_EQ(peer->Put("key", "value"), ReplyStatus::kOk);
  Storm storm(this, kClients);
  ASSERT_TRUE(storm.WaitRequested()) << "all of them lie in the worker's inbox";
  const StatsReply before = stats();
  for (uint32_t poll = 1; poll <= 8; ++poll) {
    RequestHeader put = peer->Header(Opcode::kPut);
    put.key_bytes = put.value_bytes = 3;
    ASSERT_TRUE(peer->Send(put, "key", "two"));
    ASSERT_TRUE(peer->WaitSent());
    worker.Poll(now());
    ASSERT_EQ(stats().rpcs, before.rpcs + poll);
    ASSERT_LE(stats().connections, before.connections + 4 * poll);
  }
  EXPECT_EQ(storm.Settle(), kClients);
  peer.reset();
}

TEST_F(StormTest, TheServersAccountOfItsSessionsIsWhatMallocSays) {
  if (!MallocIsJemallocs()) GTEST_SKIP() << "malloc is not jemalloc's here";
  constexpr int64_t kClients = 500;
  StartServer([](Server::Options* options) { options->connections_max = 1024; });
  Step();
  const int64_t before = server_bytes_;
  Storm storm(this, kClients);
  ASSERT_EQ(storm.Settle(), static_cast<size_t>(kClients));
  const int64_t by_malloc = (server_bytes_ - before) / kClients - QueuePairBytes();
  const int64_t by_account = static_cast<int64_t>(stats().session_bytes) / kClients;
  std::printf("a session: %ld bytes by malloc, a queue pair's %ld aside; %ld by its own account\n",
              by_malloc, QueuePairBytes(), by_account);
  // The difference is the cm id, which belongs to the device, malloc's rounding, and events that
  // the device's thread allocated and this one freed.
  EXPECT_GE(by_malloc, by_account * 85 / 100);
  EXPECT_LE(by_malloc, by_account + 2048);
  EXPECT_LE(by_malloc, 8192);
}

TEST_F(StormTest, ThoseThatDoNotFitAreToldSoAndGetInOnceThereIsRoom) {
  constexpr uint32_t kClients = 40, kRoom = 16;
  StartServer([](Server::Options* options) { options->connections_max = kRoom; });
  Storm storm(this, kClients);
  EXPECT_EQ(storm.Settle(), kRoom);
  EXPECT_EQ(storm.PutAll(), kRoom);
  // Half of the connected clients leave.
  for (uint32_t i = 0, leaving = kRoom / 2; leaving > 0; ++i) leaving -= storm.Leave(i);
  ASSERT_TRUE(StepUntil([this] { return stats().connections == kRoom / 2; }));
  storm.Retry();
  EXPECT_EQ(storm.Settle(), kRoom + kRoom / 2) << "those that left count as having been in";
  EXPECT_EQ(stats().connections, kRoom);
}

// A worker serves four sessions with 32 requests each in flight.
TEST_F(StormTest, RepliesAndReceivesOfABatchShareDoorbells) {
  constexpr int kSessions = 4, kDepth = 32, kRounds = 32;
  StartServer();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < kSessions; ++i) {
    peers.push_back(std::make_unique<RawPeer>(this));
    ASSERT_TRUE(peers.back()->Connect());
  }
  const StatsReply before = stats();
  const std::string value(64, 'v');
  for (int round = 0; round < kRounds; ++round) {
    for (auto& peer : peers) {
      for (int i = 0; i < kDepth; ++i) {
        const std::string key = "key" + std::to_string(i);
        RequestHeader header = peer->Header(Opcode::kPut);
        header.key_bytes = static_cast<uint16_t>(key.size());
        header.value_bytes = static_cast<uint32_t>(value.size());
        ASSERT_TRUE(peer->Send(header, key, value));
      }
      ASSERT_TRUE(peer->WaitSent());
    }
    for (auto& peer : peers) {
      for (int i = 0; i < kDepth; ++i) ASSERT_EQ(peer->Receive()->status(), ReplyStatus::kOk);
    }
  }
  const StatsReply after = stats();
  const uint64_t puts = after.rpcs - before.rpcs;
  ASSERT_EQ(puts, uint64_t{kSessions} * kDepth * kRounds);
  const uint64_t posts =
      after.reply_posts - before.reply_posts + after.receive_posts - before.receive_posts;
  EXPECT_LE(posts, puts / 8);
  EXPECT_LE(after.send_completions - before.send_completions, puts / 32);
}

// The first requests are there when the worker looks, the others when it looks again.
TEST_F(StormTest, RequestsThatComeWhileOthersAreServedShareTheirDoorbell) {
  if (test_support::kThreadSanitizer)
    GTEST_SKIP() << "the worker looks sooner than the slowed device delivers";
  constexpr int kFirst = 8, kDepth = 32, kRounds = 33;
  StartServer();
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const auto send = [&peer](int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string key = "key" + std::to_string(i);
      RequestHeader header = peer.Header(Opcode::kPut);
      header.key_bytes = static_cast<uint16_t>(key.size());
      header.value_bytes = 1;
      ASSERT_TRUE(peer.Send(header, key, "v"));
    }
  };
  std::vector<uint64_t> answered_per_post;  // in each round
  for (int round = 0; round < kRounds; ++round) {
    send(0, kFirst);
    ASSERT_TRUE(peer.WaitSent());
    send(kFirst, kDepth);  // on their way still: nobody polls an empty completion queue
    const StatsReply before = stats();
    server().workers()[0]->Poll(now());
    const StatsReply after = stats();
    ASSERT_GT(after.reply_posts, before.reply_posts);
    answered_per_post.push_back((after.rpcs - before.rpcs) /
                                (after.reply_posts - before.reply_posts));
    for (int i = 0; i < kDepth; ++i) ASSERT_EQ(peer.Receive()->status(), ReplyStatus::kOk);
  }
  // Takes the median, because the device is held up now and then.
  std::nth_element(answered_per_post.begin(), answered_per_post.begin() + kRounds / 2,
                   answered_per_post.end());
  EXPECT_EQ(answered_per_post[kRounds / 2], uint64_t{kDepth});
}

}  // namespace
}  // namespace gannet
