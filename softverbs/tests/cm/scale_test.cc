#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "softverbs/tests/cm/cm_fixture.h"

namespace softverbs::cm_test {
namespace {

class ScaleTest : public CmTest {};

// The passive side of many connections: accepts, and answers disconnects, until all are over.
void Serve(const Channel& channel, int connections) {
  std::vector<Id> ids;
  for (int over = 0; over < connections;) {
    const Event event = Next(channel);
    ASSERT_NE(event, nullptr);
    switch (event->event) {
      case RDMA_CM_EVENT_CONNECT_REQUEST: {
        ids.emplace_back(event->id);
        rdma_conn_param param = Param();
        ASSERT_EQ(rdma_accept(event->id, &param), 0);
        break;
      }
      case RDMA_CM_EVENT_DISCONNECTED:
        ASSERT_EQ(rdma_disconnect(event->id), 0);
        break;
      case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        over++;
        break;
      default:
        break;
    }
  }
}

// Opens `connections` at once on one channel, then closes them all.
void Storm(uint16_t port, int connections) {
  const Channel channel = MakeChannel();
  std::vector<Id> ids;
  for (int i = 0; i < connections; i++) {
    ids.push_back(Resolve(channel, port));
  }
  for (const Id& id : ids) {
    rdma_conn_param param = Param();
    ASSERT_EQ(rdma_connect(id.get(), &param), 0) << strerror(errno);
  }
  for (int i = 0; i < connections; i++) {
    const Event event = Expect(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
    ASSERT_EQ(rdma_establish(event->id), 0);
  }
  for (const Id& id : ids) ASSERT_EQ(rdma_disconnect(id.get()), 0);
  int disconnected = 0;
  while (disconnected < connections) {
    const Event event = Next(channel);
    ASSERT_NE(event, nullptr);
    if (event->event == RDMA_CM_EVENT_DISCONNECTED) disconnected++;
  }
}

TEST_F(ScaleTest, ManyConnectionsFromSeveralThreads) {
  constexpr int kThreads = 3;
  constexpr int kEach = 100;
  std::vector<std::thread> clients;
  for (int i = 0; i < kThreads; i++) clients.emplace_back(Storm, port_, kEach);
  Serve(server_, kThreads * kEach);
  for (std::thread& client : clients) client.join();
}

TEST_F(ScaleTest, IdsComeAndGoWhileOthersWork) {
  std::thread noise([&] {
    const Channel channel = MakeChannel();
    for (int i = 0; i < 200; i++) {
      const Id listener = Listen(channel);
      Id active = Resolve(channel, PortOf(listener));
      rdma_conn_param param = Param();
      ASSERT_EQ(rdma_connect(active.get(), &param), 0);
      if (i % 2 == 0) active.reset();  // in the middle of it
    }
  });
  for (int i = 0; i < 50; i++) {
    Id active;
    const Id passive = Establish(&active);
  }
  noise.join();
}

// Uses up every descriptor of the process while it lives.
class DescriptorFamine {
 public:
  DescriptorFamine() {
    getrlimit(RLIMIT_NOFILE, &limit_);
    const rlimit low = {.rlim_cur = 64, .rlim_max = limit_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken_.push_back(fd);
  }
  ~DescriptorFamine() {
    for (const int fd : taken_) close(fd);
    setrlimit(RLIMIT_NOFILE, &limit_);
  }

 private:
  rlimit limit_ = {};
  std::vector<int> taken_;
};

// Each famine runs in a process of its own. The loop thread closes descriptors of earlier tests
// when it comes to them, and one that it closed during a famine would end the famine.
class FamineTest : public CmTest {
 protected:
  template <typename Body>
  static void InOwnProcess(Body body) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // executes this program anew
    EXPECT_EXIT(
        {
          body();
          _exit(HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
  }
};

TEST_F(FamineTest, RunningOutOfDescriptorsIsAnError) {
  InOwnProcess([&] {
    const Id active = Resolve(client_, port_);
    DescriptorFamine famine;
    EXPECT_EQ(rdma_create_event_channel(), nullptr);
    EXPECT_EQ(errno, EMFILE);
    rdma_cm_id* sync = nullptr;
    EXPECT_EQ(rdma_create_id(nullptr, &sync, nullptr, RDMA_PS_TCP), -1);
    EXPECT_EQ(errno, EMFILE);
    const Id id = MakeId(client_);
    EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, Endpoint("127.0.0.1", port_).get(), 1000), -1);
    EXPECT_EQ(errno, EMFILE);
    const Id listener = MakeId(client_);
    EXPECT_EQ(rdma_bind_addr(listener.get(), Endpoint("127.0.0.1", 0).get()), -1);
    EXPECT_EQ(errno, EMFILE);
  });
}

TEST_F(FamineTest, ListenerRefusesAndRecovers) {
  InOwnProcess([&] {
    {
      const Id active = Resolve(client_, port_);
      DescriptorFamine famine;
      rdma_conn_param param = Param();
      ASSERT_EQ(rdma_connect(active.get(), &param), 0);  // its socket is there already
      const Event refused = Expect(client_, RDMA_CM_EVENT_REJECTED);
      ASSERT_NE(refused, nullptr);
      EXPECT_EQ(refused->status, 3);
    }
    Id active;
    const Id passive = Establish(&active);
  });
}

}  // namespace
}  // namespace softverbs::cm_test
