#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "softverbs/tests/cm/cm_fixture.h"
#include "softverbs/tests/support/child_process.h"

namespace softverbs::cm_test {
namespace {

// A cm_peer process.
class Peer {
 public:
  explicit Peer(std::vector<std::string> args) : process_({.argv = Command(std::move(args))}) {}

  // Returns the next line that it prints, without the newline.
  std::string Line() {
    return process_.ReadLine().value_or("nothing more, and on stderr: " + process_.Stderr());
  }
  // Kills it, but nothing that it started.
  void Kill() {
    process_.Signal(SIGKILL);
    process_.Wait();
  }

 private:
  static std::vector<std::string> Command(std::vector<std::string> args) {
    args.insert(args.begin(), test_support::TestProgramPath("cm_peer"));
    return args;
  }

  test_support::ChildProcess process_;
};

// Returns whether the kernel still lists a name of the connection manager with this port.
bool NameExists(uint16_t port) {
  std::ifstream list("/proc/net/unix");
  const std::string end = "/" + std::to_string(port);
  for (std::string line; std::getline(list, line);) {
    if (line.find("@softverbs/cm/") != std::string::npos && line.ends_with(end)) return true;
  }
  return false;
}

class PeerDeathTest : public CmTest {
 protected:
  // Connects to a listening peer process, up to the request.
  Id ConnectTo(uint16_t port) {
    Id id = Resolve(client_, port);
    rdma_conn_param param = Param();
    EXPECT_EQ(rdma_connect(id.get(), &param), 0);
    return id;
  }
  Id AcceptFrom(Peer&) {
    Id id(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
    rdma_conn_param param = Param();
    EXPECT_EQ(rdma_accept(id.get(), &param), 0);
    return id;
  }
  std::string Port() const { return std::to_string(port_); }
};

TEST_F(PeerDeathTest, ListenerLeavesNothingBehind) {
  Peer peer({"listen"});
  const auto port = static_cast<uint16_t>(std::stoi(peer.Line()));
  ASSERT_EQ(peer.Line(), "listening");
  EXPECT_TRUE(NameExists(port));
  peer.Kill();
  EXPECT_FALSE(NameExists(port));
  const Id id = ConnectTo(port);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_REJECTED)->status, 8);
}

TEST_F(PeerDeathTest, PassiveSideBeforeItAnswers) {
  Peer peer({"request"});
  const Id id = ConnectTo(static_cast<uint16_t>(std::stoi(peer.Line())));
  ASSERT_EQ(peer.Line(), "requested");
  peer.Kill();
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_REJECTED)->id, id.get());
}

TEST_F(PeerDeathTest, PassiveSideAfterItAccepted) {
  Peer peer({"accept"});
  const Id id = ConnectTo(static_cast<uint16_t>(std::stoi(peer.Line())));
  ASSERT_EQ(peer.Line(), "accepted");
  Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  peer.Kill();
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_REJECTED)->id, id.get());
  EXPECT_EQ(rdma_establish(id.get()), -1);
}

TEST_F(PeerDeathTest, PassiveSideOfAConnection) {
  Peer peer({"serve"});
  const Id id = ConnectTo(static_cast<uint16_t>(std::stoi(peer.Line())));
  Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_EQ(rdma_establish(id.get()), 0);
  ASSERT_EQ(peer.Line(), "established");
  peer.Kill();
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_DISCONNECTED)->id, id.get());
  Expect(client_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST_F(PeerDeathTest, PassiveSideWhileWeDisconnect) {
  Peer peer({"serve"});
  const Id id = ConnectTo(static_cast<uint16_t>(std::stoi(peer.Line())));
  Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_EQ(rdma_establish(id.get()), 0);
  ASSERT_EQ(peer.Line(), "established");
  ASSERT_EQ(rdma_disconnect(id.get()), 0);  // it never answers
  peer.Kill();
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_DISCONNECTED)->id, id.get());
}

TEST_F(PeerDeathTest, ActiveSideBeforeItConnects) {
  Peer peer({"resolve", Port()});
  ASSERT_EQ(peer.Line(), "resolved");
  peer.Kill();
  EXPECT_FALSE(Readable(server_));
}

TEST_F(PeerDeathTest, ActiveSideBeforeWeSawItsRequest) {
  Peer peer({"connect", Port()});
  ASSERT_EQ(peer.Line(), "connecting");
  peer.Kill();
  // The request is gone, or about to go. A later client is served.
  const Id active = Resolve(client_, port_);
  rdma_conn_param param = Param("later");
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  for (bool served = false; !served;) {
    const Event event = Next(server_);
    ASSERT_NE(event, nullptr);
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      served = DataOf(event).starts_with("later");
      const Id passive(event->id);
    }
  }
}

TEST_F(PeerDeathTest, ActiveSideBeforeWeAnswer) {
  Peer peer({"connect", Port()});
  const Id id(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  ASSERT_EQ(peer.Line(), "connecting");
  peer.Kill();
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_REJECTED)->id, id.get());
  rdma_conn_param param = Param();
  EXPECT_EQ(rdma_accept(id.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(PeerDeathTest, ActiveSideAfterOurAnswer) {
  Peer peer({"respond", Port()});
  const Id id = AcceptFrom(peer);
  ASSERT_EQ(peer.Line(), "answered");
  peer.Kill();
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_REJECTED)->id, id.get());
}

TEST_F(PeerDeathTest, ActiveSideOfAConnection) {
  Peer peer({"establish", Port()});
  const Id id = AcceptFrom(peer);
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_ESTABLISHED)->id, id.get());
  ASSERT_EQ(peer.Line(), "established");
  peer.Kill();
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_DISCONNECTED)->id, id.get());
  EXPECT_EQ(rdma_disconnect(id.get()), 0);
}

TEST_F(PeerDeathTest, ActiveSideWhileItDisconnects) {
  Peer peer({"disconnect", Port()});
  const Id id = AcceptFrom(peer);
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_ESTABLISHED)->id, id.get());
  ASSERT_EQ(peer.Line(), "disconnecting");
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_DISCONNECTED)->id, id.get());
  peer.Kill();
  EXPECT_EQ(rdma_disconnect(id.get()), 0);
  Expect(server_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST_F(PeerDeathTest, ProcessWhoseForkedChildLivesOn) {
  Peer peer({"fork", Port()});
  const Id id = AcceptFrom(peer);
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_ESTABLISHED)->id, id.get());
  ASSERT_EQ(peer.Line(), "established");
  peer.Kill();
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_DISCONNECTED)->id, id.get());
}

class OtherUserTest : public PeerDeathTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can run a process as another user";
  }
};

TEST_F(OtherUserTest, IsRefusedWhenItConnects) {
  Peer peer({"stranger", Port()});
  EXPECT_EQ(peer.Line(), "RDMA_CM_EVENT_UNREACHABLE -13");
  EXPECT_FALSE(Readable(server_));
}

TEST_F(OtherUserTest, IsNotConnectedTo) {
  Peer peer({"stranger"});
  const Id id = ConnectTo(static_cast<uint16_t>(std::stoi(peer.Line())));
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_UNREACHABLE)->status, -EACCES);
}

}  // namespace
}  // namespace softverbs::cm_test
