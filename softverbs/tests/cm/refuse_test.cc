#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "softverbs/cm/wire.h"
#include "softverbs/tests/cm/cm_fixture.h"

namespace softverbs::cm_test {
namespace {

constexpr size_t kRejectData = 148;

class RefuseTest : public CmTest {};

TEST_F(RefuseTest, NobodyListening) {
  uint16_t free_port;
  {
    const Id gone = Listen(server_);
    free_port = PortOf(gone);
  }
  const Id active = Resolve(client_, free_port);
  rdma_conn_param param = Param("anyone?");
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const Event rejected = Expect(client_, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rejected->status, 8);
  EXPECT_EQ(rejected->id, active.get());
  EXPECT_EQ(DataOf(rejected), std::string(kRejectData, '\0'));
}

TEST_F(RefuseTest, ListenerThatComesAMomentLaterIsFound) {
  const Id late = MakeId(server_);
  ASSERT_EQ(rdma_bind_addr(late.get(), Endpoint("127.0.0.1", 0).get()), 0);
  const Id active = Resolve(client_, PortOf(late));
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  ASSERT_EQ(rdma_listen(late.get(), 0), 0);
  pollfd fds[2] = {{.fd = client_->fd, .events = POLLIN, .revents = 0},
                   {.fd = server_->fd, .events = POLLIN, .revents = 0}};
  ASSERT_EQ(poll(fds, 2, kPatienceMs), 1);
  // If the machine is too busy for the grace period, the refusal is right as well.
  if (fds[0].revents != 0) GTEST_SKIP() << "the grace period was over before rdma_listen";
  const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
}

TEST_F(RefuseTest, BoundIsNotListening) {
  const Id bound = MakeId(server_);
  ASSERT_EQ(rdma_bind_addr(bound.get(), Endpoint("127.0.0.1", 0).get()), 0);
  const Id active = Resolve(client_, PortOf(bound));
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_REJECTED)->status, 8);
}

TEST_F(RefuseTest, RejectCarriesPaddedPrivateData) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  ASSERT_EQ(rdma_reject(passive.get(), "no room", 7), 0);
  const Event rejected = Expect(client_, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rejected->status, 28);
  EXPECT_EQ(DataOf(rejected), Padded("no room", kRejectData));
}

TEST_F(RefuseTest, RejectForEceHasItsOwnReason) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  ASSERT_EQ(rdma_reject_ece(passive.get(), nullptr, 0), 0);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_REJECTED)->status, 35);
}

TEST_F(RefuseTest, TooMuchRejectDataIsInvalid) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  const std::string data(kRejectData + 1, 'x');
  EXPECT_EQ(rdma_reject(passive.get(), data.data(), static_cast<uint8_t>(data.size())), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RefuseTest, DestroyingTheNewIdRejects) {
  const Id active = Resolve(client_, port_);
  Id passive = Request(active);
  passive.reset();
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_REJECTED)->status, 28);
}

TEST_F(RefuseTest, DestroyingTheListenerRejectsWhatItHasNotShown) {
  const Id active = Resolve(client_, port_);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  listener_.reset();
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_REJECTED)->status, 28);
  EXPECT_FALSE(Readable(server_));
}

TEST_F(RefuseTest, RequestsBeyondTheBacklogAreRejected) {
  const Channel server = MakeChannel();
  const Id listener = Listen(server, "127.0.0.1", 2);
  std::vector<Id> actives;
  for (int i = 0; i < 3; i++) {
    actives.push_back(Resolve(client_, PortOf(listener)));
    rdma_conn_param param = Param();
    ASSERT_EQ(rdma_connect(actives.back().get(), &param), 0);
  }
  const Event rejected = Expect(client_, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rejected->status, 28);
  EXPECT_EQ(rejected->id, actives.back().get());
  const Id first(Expect(server, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  // Taking one request makes room for one.
  const Id late = Resolve(client_, PortOf(listener));
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(late.get(), &param), 0);
  const Id second(Expect(server, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  const Id third(Expect(server, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
}

TEST_F(RefuseTest, ActiveSideMayRejectTheReply) {
  const Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_accept(passive.get(), &param), 0);
  Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_EQ(rdma_reject(active.get(), "changed my mind", 15), 0);
  const Event rejected = Expect(server_, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rejected->id, passive.get());
  EXPECT_EQ(DataOf(rejected), Padded("changed my mind", kRejectData));
}

TEST_F(RefuseTest, ActiveSideGoneBeforeTheAnswerIsReported) {
  Id active = Resolve(client_, port_);
  const Id passive = Request(active);
  active.reset();
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_REJECTED)->id, passive.get());
  rdma_conn_param param = Param();
  EXPECT_EQ(rdma_accept(passive.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
}

// Speaks to a listener's socket without the library.
class RawClient {
 public:
  explicit RawClient(uint16_t port) : fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un to = {};
    to.sun_family = AF_UNIX;
    const std::string name = "softverbs/cm/0106/127.0.0.1/" + std::to_string(port);
    std::memcpy(to.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), size), 0) << strerror(errno);
  }
  ~RawClient() { close(fd_); }

  void Send(const void* data, size_t size) {
    EXPECT_EQ(send(fd_, data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  // Waits until the listener closes its end.
  void ExpectClosed() {
    timeval patience = {.tv_sec = kPatienceMs / 1000, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    char byte;
    while (recv(fd_, &byte, 1, 0) > 0) {
    }
    EXPECT_NE(errno, EAGAIN);
  }

 private:
  int fd_;
};

cm::Message ValidRequest(uint16_t port) {
  cm::Message message = cm::MakeMessage(cm::MessageKind::kRequest);
  message.source.family = message.destination.family = AF_INET;
  message.source.port = htons(40000);
  message.destination.port = htons(port);
  return message;
}

TEST_F(RefuseTest, MalformedMessagesAreDroppedAndTheListenerLivesOn) {
  std::vector<cm::Message> bad(6, ValidRequest(port_));
  bad[0].magic ^= 1;
  bad[1].version++;
  bad[2].kind = 77;
  bad[3].qp_num = 0xffffffff;
  bad[4].destination.family = AF_UNIX;
  bad[5].kind = static_cast<uint16_t>(cm::MessageKind::kReply);  // not as the first message
  for (const cm::Message& message : bad) {
    errno = 0;
    RawClient raw(port_);
    raw.Send(&message, sizeof(message));
    raw.ExpectClosed();
  }
  const cm::Message good = ValidRequest(port_);
  for (const size_t size : {size_t{1}, sizeof(good) - 1}) {
    errno = 0;
    RawClient raw(port_);
    raw.Send(&good, size);
    raw.ExpectClosed();
  }
  std::vector<char> large(sizeof(good) + 1);
  std::memcpy(large.data(), &good, sizeof(good));
  RawClient raw(port_);
  raw.Send(large.data(), large.size());
  EXPECT_FALSE(Readable(server_));
  Id active;
  const Id passive = Establish(&active);
}

TEST_F(RefuseTest, MessagesOutOfPlaceAreIgnored) {
  RawClient raw(port_);
  const cm::Message request = ValidRequest(port_);
  raw.Send(&request, sizeof(request));
  const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  for (const auto kind :
       {cm::MessageKind::kReply, cm::MessageKind::kReadyToUse, cm::MessageKind::kDisconnectRequest,
        cm::MessageKind::kDisconnectReply, cm::MessageKind::kRequest}) {
    cm::Message message = ValidRequest(port_);
    message.kind = static_cast<uint16_t>(kind);
    raw.Send(&message, sizeof(message));
  }
  const cm::Message reject = cm::MakeMessage(cm::MessageKind::kReject);
  raw.Send(&reject, sizeof(reject));
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_REJECTED)->id, passive.get());
}

}  // namespace
}  // namespace softverbs::cm_test
