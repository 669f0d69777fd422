#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/clock.h"
#include "common/rdma/loopback.h"
#include "tests/common/rdma/connected_pair.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ConnectionTest = ConnectedPairTest;

TEST_F(ConnectionTest, CarriesPrivateDataBothWaysPadded) {
  active_ = ResolvedConnector();
  ASSERT_NE(active_, nullptr);
  const std::string request(kRequestPrivateBytesMax, 'q');
  ASSERT_TRUE(active_->Connect(AsBytes(request)).ok());
  auto event = NextListenerEvent(active_.get());
  ASSERT_TRUE(event.has_value() && event->request.has_value());
  EXPECT_EQ(event->request->verbs(), TestDevice().verbs);
  EXPECT_THAT(std::string(AsText(event->request->private_data())), StartsWith(request));

  auto passive = listener_->BeginAccept(std::move(*event->request), server_.Options(), 7);
  ASSERT_TRUE(passive.ok()) << passive.status();
  passive_ = *std::move(passive);
  std::string answer(kAcceptPrivateBytesMax, 'a');
  ASSERT_TRUE(listener_->FinishAccept(passive_.get(), AsBytes(answer), PeerRights::kAll).ok());
  StepUntil(active_.get(), Connector::Step::kEstablished);
  ASSERT_EQ(active_->step(), Connector::Step::kEstablished) << active_->status();
  EXPECT_THAT(std::string(AsText(active_->private_data())), StartsWith(answer));
  event = NextListenerEvent(active_.get());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, ListenerEvent::Type::kEstablished);
  EXPECT_EQ(event->connection, 7u);
}

TEST_F(ConnectionTest, NegotiatesReadDepthFromTheDevice) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const DeviceCaps& caps = TestDevice().caps;
  const uint8_t both = std::min(caps.max_qp_rd_atom, caps.max_qp_init_rd_atom);
  EXPECT_GT(both, 0);
  EXPECT_EQ(active_->connection()->depth().issued, both);
  EXPECT_EQ(passive_->depth().issued, both);
  EXPECT_GE(passive_->depth().served, both);
}

TEST_F(ConnectionTest, RefusalCarriesItsReason) {
  active_ = ResolvedConnector();
  ASSERT_NE(active_, nullptr);
  ASSERT_TRUE(active_->Connect({}).ok());
  auto event = NextListenerEvent(active_.get());
  ASSERT_TRUE(event.has_value() && event->request.has_value());
  listener_->Reject(std::move(*event->request), AsBytes("not today"));
  StepUntil(active_.get(), Connector::Step::kFailed);
  EXPECT_TRUE(active_->refused());
  EXPECT_EQ(active_->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(AsText(active_->private_data())), StartsWith("not today"));
}

TEST_F(ConnectionTest, DroppedRequestIsRefused) {
  active_ = ResolvedConnector();
  ASSERT_NE(active_, nullptr);
  ASSERT_TRUE(active_->Connect({}).ok());
  auto event = NextListenerEvent(active_.get());
  ASSERT_TRUE(event.has_value() && event->request.has_value());
  event.reset();
  StepUntil(active_.get(), Connector::Step::kFailed);
  EXPECT_EQ(active_->status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ConnectionTest, NobodyListeningIsSaidWithTheLocalDevice) {
  const SocketAddress address = listener_->address();
  listener_.reset();
  active_ = StartConnector(address);
  ASSERT_NE(active_, nullptr);
  StepUntil(active_.get(), Connector::Step::kResolved);
  ASSERT_TRUE(active_->CreateConnection(client_.Options()).ok());
  ASSERT_TRUE(active_->Connect({}).ok());
  StepUntil(active_.get(), Connector::Step::kFailed);
  EXPECT_EQ(active_->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(active_->refused());
  const std::string text(active_->status().message());
  EXPECT_THAT(text, HasSubstr("nobody listens"));
  EXPECT_THAT(text, HasSubstr(TestDevice().name));
  EXPECT_THAT(text, HasSubstr(address.ToString()));
}

TEST_F(ConnectionTest, UnansweredRequestEndsAtTheCallersDeadline) {
  active_ = ResolvedConnector();
  ASSERT_NE(active_, nullptr);
  ASSERT_TRUE(active_->Connect({}).ok());
  EXPECT_EQ(active_->Poll(MonotonicNs()), Connector::Step::kConnecting);
  EXPECT_EQ(active_->Poll(MonotonicNs() + 2 * kTestTimeoutNs), Connector::Step::kFailed);
  EXPECT_EQ(active_->status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ConnectionTest, PortInUseIsSaid) {
  const auto second = Listener::Create(listener_->address());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("choose another port"));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(listener_->address().ToString()));
}

TEST_F(ConnectionTest, AddressOfNoDeviceIsSaid) {
  // TEST-NET-3, which no host has.
  const auto listener = Listener::Create(*Resolve("203.0.113.7:0", 0));
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(std::string(listener.status().message()), HasSubstr("203.0.113.7"));
}

TEST_F(ConnectionTest, PassiveSideLearnsThatTheActiveOneClosed) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Drain(&client_, active_->connection());
  const auto event = NextListenerEvent(active_.get());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, ListenerEvent::Type::kDisconnected);
  EXPECT_EQ(event->connection, 1u);
}

TEST_F(ConnectionTest, ActiveSideLearnsThatThePassiveOneClosed) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Drain(&server_, passive_.get());
  passive_.reset();
  StepUntil(active_.get(), Connector::Step::kClosed);
  EXPECT_EQ(active_->step(), Connector::Step::kClosed);
}

TEST_F(ConnectionTest, EventsOfADestroyedConnectionNameNothingElse) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  // The peer's disconnect may be queued when the connection is destroyed.
  Drain(&client_, active_->connection());
  Drain(&server_, passive_.get());
  passive_.reset();
  active_.reset();
  ASSERT_NO_FATAL_FAILURE(Connect());
  while (const auto event = listener_->Poll()) {
    EXPECT_NE(event->type, ListenerEvent::Type::kRequest);
  }
}

TEST_F(ConnectionTest, ManyConnectionsComeAndGoWithoutLeak) {
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
    return count;
  };
  ASSERT_NO_FATAL_FAILURE(Connect());
  Close();
  const int before = open_files();
  for (int i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(Connect()) << i;
    Close();
    while (listener_->Poll().has_value()) {
    }
  }
  // The device may keep a socket of a peer for a while, but not one for each connection.
  EXPECT_LE(open_files(), before + 4);
}

TEST_F(ConnectionTest, BeginDrainIsIdempotent) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Drain(&client_, active_->connection());
  const bool again = active_->connection()->BeginDrain(1234);
  ibv_wc done;
  EXPECT_TRUE(active_->connection()->closing());
  EXPECT_EQ(client_.completions->Poll({&done, 1}), 0u) << "a second drain was posted: " << again;
}

}  // namespace
}  // namespace gannet
