// Connections of rdma_cm: private data, refusals, disconnecting, and events that must be
// acknowledged.
#include <optional>
#include <string>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

// rdma_connect(3): 56 bytes for RDMA_PS_TCP. The others are the sizes of the CM's messages.
constexpr size_t kConnectBytes = 56;
constexpr size_t kAcceptBytes = 196;
constexpr size_t kRejectBytes = 148;

std::string Text(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(1 + i % 120);
  return text;
}

// A connection step by step. Client and server are set up only as far as the test went.
class ConnectionTest : public ::testing::Test {
 protected:
  // An active end with its route resolved.
  void MakeClient() {
    client_.emplace(Resolve(client_events_.get(), rdma_get_local_addr(listener_.id)),
                    client_events_, PairOptions{}, false);
  }
  int Connect(const std::string& data = "") {
    rdma_conn_param param = ParametersWith(data);
    return rdma_connect(client_->id, &param);
  }
  // Waits for the request, and returns its private data.
  std::string TakeRequest() {
    rdma_cm_event* request = NextEvent(listener_.events.get());
    EXPECT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    const std::string data = DataOf(*request);
    server_.emplace(request->id, listener_.events, PairOptions{}, false);
    rdma_ack_cm_event(request);
    return data;
  }
  int Accept(const std::string& data = "") {
    rdma_conn_param param = ParametersWith(data);
    return rdma_accept(server_->id, &param);
  }
  void Establish() {
    MakeClient();
    ASSERT_EQ(Connect(), 0);
    TakeRequest();
    ASSERT_EQ(Accept(), 0);
    ExpectEvent(client_events_.get(), RDMA_CM_EVENT_ESTABLISHED);
    ExpectEvent(listener_.events.get(), RDMA_CM_EVENT_ESTABLISHED);
  }
  // Expects the client's next event to be of this type. Returns its private data and its status.
  std::string ClientData(rdma_cm_event_type type, int* status = nullptr) {
    rdma_cm_event* event = NextEvent(client_events_.get());
    EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(type));
    const std::string data = DataOf(*event);
    if (status != nullptr) *status = event->status;
    rdma_ack_cm_event(event);
    return data;
  }

  // rdma_get_cm_event(3): the data may be larger than what was sent; the rest is zero.
  static void ExpectPadded(const std::string& arrived, const std::string& sent, size_t padded) {
    ASSERT_GE(arrived.size(), sent.size());
    EXPECT_EQ(arrived.substr(0, sent.size()), sent);
    EXPECT_EQ(arrived.find_first_not_of('\0', sent.size()), std::string::npos);
    if (!TheDevice().is_iwarp()) {
      EXPECT_EQ(arrived.size(), padded);
    }
  }

  static rdma_conn_param ParametersWith(const std::string& data) {
    rdma_conn_param param = ConnectionParameters({});
    param.private_data = data.data();
    param.private_data_len = static_cast<uint8_t>(data.size());
    return param;
  }
  static std::string DataOf(const rdma_cm_event& event) {
    const auto* data = static_cast<const char*>(event.param.conn.private_data);
    return data == nullptr ? "" : std::string(data, event.param.conn.private_data_len);
  }

  Listener listener_;
  EventChannel client_events_ = MakeEventChannel();
  std::optional<End> server_;
  std::optional<End> client_;
};

TEST_F(ConnectionTest, PrivateDataArrivesPaddedWithZeroes) {
  MakeClient();
  ASSERT_EQ(Connect("hello"), 0);
  ExpectPadded(TakeRequest(), "hello", kConnectBytes);
  ASSERT_EQ(Accept("welcome"), 0);
  ExpectPadded(ClientData(RDMA_CM_EVENT_ESTABLISHED), "welcome", kAcceptBytes);
}

TEST_F(ConnectionTest, AsMuchPrivateDataAsFitsArrivesWhole) {
  MakeClient();
  ASSERT_EQ(Connect(Text(kConnectBytes)), 0);
  ExpectPadded(TakeRequest(), Text(kConnectBytes), kConnectBytes);
  ASSERT_EQ(Accept(Text(kAcceptBytes)), 0);
  ExpectPadded(ClientData(RDMA_CM_EVENT_ESTABLISHED), Text(kAcceptBytes), kAcceptBytes);
}

TEST_F(ConnectionTest, TooMuchPrivateDataInTheRequestIsRefused) {
  SKIP_ON_IWARP("its limit is another");
  MakeClient();
  EXPECT_EQ(Connect(Text(kConnectBytes + 1)), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(Readable(listener_.events->fd, 0));
}

TEST_F(ConnectionTest, TooMuchPrivateDataInTheAnswerIsRefused) {
  SKIP_ON_IWARP("its limit is another");
  MakeClient();
  ASSERT_EQ(Connect(), 0);
  TakeRequest();
  EXPECT_EQ(Accept(Text(kAcceptBytes + 1)), -1);
  EXPECT_EQ(errno, EINVAL);
}

// rdma_reject(3). 28 is "consumer defined" of the InfiniBand CM; iWARP has error numbers.
TEST_F(ConnectionTest, RejectBringsItsReason) {
  for (const size_t size : {size_t{20}, kRejectBytes}) {
    MakeClient();
    ASSERT_EQ(Connect(), 0);
    TakeRequest();
    const std::string reason = Text(size);
    ASSERT_EQ(rdma_reject(server_->id, reason.data(), static_cast<uint8_t>(size)), 0);
    int status = 0;
    ExpectPadded(ClientData(RDMA_CM_EVENT_REJECTED, &status), reason, kRejectBytes);
    if (TheDevice().is_iwarp()) {
      EXPECT_TRUE(status == -ECONNREFUSED || status == -ECONNRESET) << status;
    } else {
      EXPECT_EQ(status, 28);
    }
    server_.reset();
    client_.reset();
  }
}

TEST_F(ConnectionTest, TooLongAReasonIsRefused) {
  SKIP_ON_IWARP("its limit is another");
  MakeClient();
  ASSERT_EQ(Connect(), 0);
  TakeRequest();
  const std::string reason = Text(kRejectBytes + 1);
  EXPECT_EQ(rdma_reject(server_->id, reason.data(), static_cast<uint8_t>(reason.size())), -1);
  EXPECT_EQ(errno, EINVAL);
}

// 8 is "invalid service id" of the InfiniBand CM. rdma_get_cm_event(3) has both events for it.
TEST_F(ConnectionTest, NobodyListeningIsARefusal) {
  sockaddr_storage nobody{};
  {
    const Listener gone;
    std::memcpy(&nobody, rdma_get_local_addr(gone.id), sizeof(nobody));
  }
  client_.emplace(Resolve(client_events_.get(), reinterpret_cast<sockaddr*>(&nobody)),
                  client_events_, PairOptions{}, false);
  if (Connect() != 0) {  // a TCP connect that the call itself waits for
    EXPECT_TRUE(TheDevice().is_iwarp());
    EXPECT_EQ(errno, ECONNREFUSED);
    return;
  }
  rdma_cm_event* event = NextEvent(client_events_.get());
  EXPECT_TRUE(event->event == RDMA_CM_EVENT_REJECTED || event->event == RDMA_CM_EVENT_UNREACHABLE)
      << rdma_event_str(event->event);
  EXPECT_EQ(event->status, TheDevice().is_iwarp() ? -ECONNREFUSED : 8);
  rdma_ack_cm_event(event);
}

TEST_F(ConnectionTest, ARejectedClientMayConnectAgainWithANewId) {
  MakeClient();
  ASSERT_EQ(Connect(), 0);
  TakeRequest();
  ASSERT_EQ(rdma_reject(server_->id, nullptr, 0), 0);
  ExpectEvent(client_events_.get(), RDMA_CM_EVENT_REJECTED);
  server_.reset();
  client_.reset();
  Establish();
}

class DisconnectTest : public ConnectionTest, public ::testing::WithParamInterface<bool> {};

// rdma_disconnect(3): the caller's queue pair goes to ERR and its work is flushed; both sides are
// told. The peer's queue pair is for the peer to move.
TEST_P(DisconnectTest, FlushesTheCallerAndTellsBoth) {
  Establish();
  End& caller = GetParam() ? *client_ : *server_;
  End& other = GetParam() ? *server_ : *client_;
  ASSERT_EQ(PostReceive(caller, caller.buffer->Sge(0, 64), 5), 0);
  ASSERT_EQ(PostReceive(other, other.buffer->Sge(0, 64), 6), 0);
  ASSERT_EQ(rdma_disconnect(caller.id), 0);
  ExpectErrorState(caller);
  const ibv_wc flushed = NextCompletion(caller.cq);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.wr_id, 5u);
  ExpectEvent(other.events, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_disconnect(other.id), 0);
  EXPECT_EQ(NextCompletion(other.cq).wr_id, 6u);
  ExpectEvent(caller.events, RDMA_CM_EVENT_DISCONNECTED);
}

TEST_P(DisconnectTest, DestroyingTheIdTellsTheOther) {
  Establish();
  std::optional<End>& gone = GetParam() ? client_ : server_;
  End& other = GetParam() ? *server_ : *client_;
  gone.reset();
  ExpectEvent(other.events, RDMA_CM_EVENT_DISCONNECTED);
}

INSTANTIATE_TEST_SUITE_P(Sides, DisconnectTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Active" : "Passive"; });

TEST_F(ConnectionTest, WorkAfterADisconnectIsFlushed) {
  Establish();
  ASSERT_EQ(rdma_disconnect(client_->id), 0);
  ExpectEvent(listener_.events.get(), RDMA_CM_EVENT_DISCONNECTED);
  ibv_sge sge = client_->buffer->Sge(0, 8);
  Buffer& target = *server_->buffer;
  target.Fill(0x5a);
  if (Post(*client_, Read(&sge, target.address(), target.rkey())) == 0) {
    EXPECT_EQ(NextCompletion(client_->cq).status, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_EQ(client_->buffer->Word(0), 0u);
}

// rdma_destroy_id(3): "blocks until all events have been acknowledged".
TEST_F(ConnectionTest, DestroyingAnIdWaitsForTheAcknowledgementOfItsEvents) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(client_events_.get(), &id, nullptr, RDMA_PS_TCP), 0);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, rdma_get_local_addr(listener_.id), kPatienceMs), 0);
  rdma_cm_event* event = NextEvent(client_events_.get());
  ASSERT_EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  ExpectWaitsFor([&] { EXPECT_EQ(rdma_ack_cm_event(event), 0); },
                 [&] { EXPECT_EQ(rdma_destroy_id(id), 0); });
}

TEST_F(ConnectionTest, DestroyingAConnectionWaitsForTheAcknowledgementOfItsEnd) {
  Establish();
  ASSERT_EQ(rdma_disconnect(server_->id), 0);
  rdma_cm_event* event = NextEvent(client_events_.get());
  ASSERT_EQ(event->event, RDMA_CM_EVENT_DISCONNECTED);
  ExpectWaitsFor([&] { EXPECT_EQ(rdma_ack_cm_event(event), 0); }, [&] { client_.reset(); });
}

// ibv_get_async_event(3): the same holds for the events of a queue pair, such as the one for a
// wrong key.
TEST_F(ConnectionTest, DestroyingATargetWaitsForTheAcknowledgementOfItsEvents) {
  Establish();
  ibv_sge sge = client_->buffer->Sge(0, 8);
  Buffer& target = *server_->buffer;
  EXPECT_NE(Do(*client_, Read(&sge, target.address(), target.rkey() ^ 0x00ff00ff)).status,
            IBV_WC_SUCCESS);
  ibv_async_event event{};
  if (!AwaitAsyncEvent(server_->id->verbs, IBV_EVENT_QP_ACCESS_ERR, &event, 500)) {
    GTEST_SKIP() << "it raises no IBV_EVENT_QP_ACCESS_ERR";
  }
  EXPECT_EQ(event.element.qp, server_->qp());
  ExpectWaitsFor([&] { ibv_ack_async_event(&event); }, [&] { rdma_destroy_qp(server_->id); });
}

}  // namespace
}  // namespace verbs_contract
