#include "tests/common/rdma/connected_pair.h"

#include <poll.h>

#include <utility>

#include "common/base/clock.h"
#include "common/rdma/loopback.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

constexpr uint64_t kBufferBytes = 65536;
constexpr uint64_t kDrainId = ~uint64_t{0};
constexpr int kPollMs = 5;

void WaitReadable(int first, int second) {
  pollfd fds[] = {{first, POLLIN, 0}, {second, POLLIN, 0}};
  poll(fds, 2, kPollMs);
}

}  // namespace

TestSide::TestSide() : pd(ibv_alloc_pd(TestDevice().verbs)) {
  GANNET_CHECK(pd != nullptr, "no protection domain");
  auto queue = CompletionQueue::Create(TestDevice().verbs, 256, true);
  GANNET_CHECK(queue.ok(), queue.status().ToString().c_str());
  completions = *std::move(queue);
  auto memory = PrivateMemory::Create(kBufferBytes);
  GANNET_CHECK(memory.ok(), memory.status().ToString().c_str());
  buffer.private_memory = *std::move(memory);
  buffer.bytes = buffer.private_memory.bytes();
  const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                  (TestDevice().caps.has_atomics() ? IBV_ACCESS_REMOTE_ATOMIC : 0);
  buffer.mr.reset(ibv_reg_mr(pd.get(), buffer.data(), buffer.size(), all));
  GANNET_CHECK(buffer.mr != nullptr, "no memory region");
}

ConnectionOptions TestSide::Options() const {
  ConnectionOptions options{.caps = TestDevice().caps};
  options.queue_pair = {.pd = pd.get(),
                        .send_cq = completions->get(),
                        .recv_cq = completions->get(),
                        .send_wrs = 16,
                        .recv_wrs = 16};
  return options;
}

ibv_wc TestSide::Next() {
  ibv_wc done{};
  const int64_t deadline_ns = MonotonicNs() + kTestTimeoutNs;
  while (MonotonicNs() < deadline_ns) {
    if (completions->Poll({&done, 1}) == 1) return done;
  }
  ADD_FAILURE() << "no completion came";
  done.status = IBV_WC_GENERAL_ERR;
  return done;
}

void TestSide::PostReceive(ibv_qp* qp, uint64_t wr_id, uint64_t offset, uint32_t bytes) {
  ibv_sge sge = buffer.Sge(offset, bytes);
  ibv_recv_wr receive{.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
  ASSERT_EQ(::gannet::PostReceive(qp, &receive), PostResult::kPosted);
}

std::string TestSide::Text(uint64_t offset, size_t bytes) const {
  return {reinterpret_cast<const char*>(buffer.data()) + offset, bytes};
}

void TestSide::SetText(uint64_t offset, std::string_view text) {
  std::memcpy(buffer.data() + offset, text.data(), text.size());
}

uint64_t TestSide::Word(uint64_t offset) const {
  uint64_t word;
  std::memcpy(&word, buffer.data() + offset, sizeof(word));
  return word;
}

void TestSide::SetWord(uint64_t offset, uint64_t word) {
  std::memcpy(buffer.data() + offset, &word, sizeof(word));
}

void ConnectedPairTest::SetUp() {
  const auto own = OwnAddress(TestDevice());
  ASSERT_TRUE(own.ok()) << own.status();
  auto listener = Listener::Create(*own);
  ASSERT_TRUE(listener.ok()) << listener.status();
  listener_ = *std::move(listener);
}

void ConnectedPairTest::TearDown() { Close(); }

std::unique_ptr<Connector> ConnectedPairTest::StartConnector(const SocketAddress& to) {
  auto connector = Connector::Start({.to = to, .deadline_ns = MonotonicNs() + kTestTimeoutNs});
  EXPECT_TRUE(connector.ok()) << connector.status();
  return connector.ok() ? *std::move(connector) : nullptr;
}

void ConnectedPairTest::StepUntil(Connector* connector, Connector::Step step) {
  while (connector->Poll(MonotonicNs()) != step && connector->step() != Connector::Step::kFailed) {
    WaitReadable(connector->fd(), connector->fd());
  }
}

std::optional<ListenerEvent> ConnectedPairTest::NextListenerEvent(Connector* connector) {
  const int64_t deadline_ns = MonotonicNs() + kTestTimeoutNs;
  while (MonotonicNs() < deadline_ns) {
    if (connector != nullptr) connector->Poll(MonotonicNs());
    if (auto event = listener_->Poll()) return event;
    WaitReadable(listener_->fd(), connector != nullptr ? connector->fd() : listener_->fd());
  }
  ADD_FAILURE() << "no event came to the listener";
  return std::nullopt;
}

std::unique_ptr<Connector> ConnectedPairTest::ResolvedConnector() {
  std::unique_ptr<Connector> connector = StartConnector();
  if (connector == nullptr) return nullptr;
  StepUntil(connector.get(), Connector::Step::kResolved);
  EXPECT_EQ(connector->step(), Connector::Step::kResolved) << connector->status();
  EXPECT_TRUE(connector->CreateConnection(client_.Options()).ok()) << connector->status();
  return connector;
}

void ConnectedPairTest::Connect() {
  active_ = ResolvedConnector();
  ASSERT_NE(active_, nullptr);
  ASSERT_TRUE(active_->Connect(AsBytes("hello")).ok()) << active_->status();
  auto event = NextListenerEvent(active_.get());
  ASSERT_TRUE(event.has_value());
  ASSERT_EQ(event->type, ListenerEvent::Type::kRequest);
  auto passive = listener_->BeginAccept(std::move(*event->request), server_.Options(), 1);
  ASSERT_TRUE(passive.ok()) << passive.status();
  passive_ = *std::move(passive);
  const absl::Status status =
      listener_->FinishAccept(passive_.get(), AsBytes("welcome"), PeerRights::kAll);
  ASSERT_TRUE(status.ok()) << status;
  StepUntil(active_.get(), Connector::Step::kEstablished);
  ASSERT_EQ(active_->step(), Connector::Step::kEstablished) << active_->status();
  event = NextListenerEvent(active_.get());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, ListenerEvent::Type::kEstablished);
  EXPECT_EQ(event->connection, 1u);
}

void ConnectedPairTest::Drain(TestSide* side, Connection* connection) {
  if (connection->closing() || !connection->BeginDrain(kDrainId)) return;
  for (;;) {
    const ibv_wc done = side->Next();
    if (done.wr_id == kDrainId || done.status == IBV_WC_GENERAL_ERR) return;
  }
}

void ConnectedPairTest::Close() {
  if (active_ != nullptr) Drain(&client_, active_->connection());
  if (passive_ != nullptr) Drain(&server_, passive_.get());
  active_.reset();
  passive_.reset();
}

}  // namespace gannet
