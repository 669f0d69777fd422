#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "tests/softverbs/support/task_status.h"
#include "tests/softverbs/support/verbs_fixture.h"
#include "tests/support/role_process.h"
#include "tests/support/test_seed.h"

// Two processes that send a message to and fro, and sleep while they wait for it: each must be
// woken, and by its peer itself.

namespace softverbs {
namespace {

using test_support::Put;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

constexpr size_t kBytes = 64;

// How a process waits.
struct Style {
  bool blocking = false;  // in ibv_get_cq_event, or in poll(2)
  bool steady = true;     // always the same way; otherwise it polls now and then, or comes late
  uint32_t rounds = 0;
  uint64_t seed = 0;
};

class Sleeper {
 public:
  Sleeper(Side* side, const Style& style) : side_(*side), style_(style), random_(style.seed) {
    if (style.blocking) return;
    const int fd = side_.channel->fd;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }

  // The next completion; false when none came in time.
  bool Next(ibv_wc* wc) {
    for (;;) {
      const uint32_t polls = style_.steady ? 1 : 1 + Below(4) * Below(40);
      for (uint32_t i = 0; i < polls; ++i) {
        if (ibv_poll_cq(side_.cq.get(), 1, wc) == 1) return true;
      }
      if (ibv_req_notify_cq(side_.cq.get(), 0) != 0) return false;
      if (ibv_poll_cq(side_.cq.get(), 1, wc) == 1) return true;
      if (!style_.steady && Below(64) == 0) usleep(Below(3000));
      if (!Wait()) return false;
    }
  }

 private:
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  bool Wait() {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (ibv_get_cq_event(side_.channel.get(), &cq, &context) != 0) {
      pollfd entry{side_.channel->fd, POLLIN, 0};
      if (errno != EAGAIN || poll(&entry, 1, static_cast<int>(kTimeoutNs / 1'000'000)) != 1) {
        return false;
      }
    }
    ibv_ack_cq_events(cq, 1);
    return true;
  }

  Side& side_;
  const Style style_;
  std::mt19937_64 random_;
};

SideOptions WithChannel() {
  SideOptions options;
  options.with_channel = true;
  return options;
}

// Answers each message with one.
int Answerer(int socket) {
  const auto style = Take<Style>(socket);
  Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), WithChannel());
  Put(socket, side.address());
  side.Connect(Take<Address>(socket));
  if (side.PostReceive(0, 0, kBytes) != 0) return 2;
  Put(socket, char{1});
  Sleeper sleeper(&side, style);
  for (uint32_t received = 0; received < style.rounds;) {
    ibv_wc wc;
    if (!sleeper.Next(&wc) || wc.status != IBV_WC_SUCCESS) return 3;
    if (wc.opcode != IBV_WC_RECV) continue;
    ++received;
    if (side.PostReceive(0, 0, kBytes) != 0 || side.PostSend(1, 0, kBytes) != 0) return 4;
  }
  Take<char>(socket);  // until the test hangs up
  return 0;
}
const RegisterRole answerer_role("answerer", Answerer);

// How often this process's loop thread was woken.
int64_t LoopWakeUps() {
  int64_t wake_ups = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), closedir);
  while (const dirent* task = readdir(tasks.get())) {
    const std::string path = std::string("/proc/self/task/") + task->d_name;
    std::string name;
    std::ifstream(path + "/comm") >> name;
    if (name != "softverbs") continue;
    wake_ups += SleepsOfTask(path);
  }
  return wake_ups;
}

class WakeTest : public testing::Test {
 protected:
  void PingPong(Style style) {
    RoleProcess child("answerer");
    const uint64_t seed = test_support::TestSeed();
    style.seed = seed + 1;
    Put(child.socket(), style);
    const auto peer = Take<Address>(child.socket());
    Side side(device_.get(), WithChannel());
    side.ToRtr(peer);
    Put(child.socket(), side.address());
    ASSERT_EQ(Take<char>(child.socket()), 1);
    side.ToRts();
    style.seed = seed;
    Sleeper sleeper(&side, style);
    for (uint32_t round = 0; round < style.rounds; ++round) {
      ASSERT_EQ(side.PostReceive(round, 0, kBytes), 0);
      ASSERT_EQ(side.PostSend(round, kBytes, kBytes), 0);
      for (bool answered = false; !answered;) {
        ibv_wc wc;
        ASSERT_TRUE(sleeper.Next(&wc)) << "round " << round << ": never woken";
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        answered = wc.opcode == IBV_WC_RECV;
      }
    }
    EXPECT_EQ(child.Finish(), 0);
  }

  // Without it the loop thread is woken in each round. The standby timer wakes it too, at most once
  // a millisecond.
  void ExpectFewLoopWakeUps(const Style& style) {
    const int64_t before = LoopWakeUps();
    const int64_t began_ns = NowNs();
    PingPong(style);
    const int64_t most = style.rounds / 4 + (NowNs() - began_ns) / 1'000'000;
    EXPECT_LT(LoopWakeUps() - before, most);
  }

  Owned<ibv_context> device_ = OpenDevice();
};

TEST_F(WakeTest, APeerWakesWhoeverWaitsOnItsDescriptorItself) {
  ExpectFewLoopWakeUps({.rounds = 4000});
}
TEST_F(WakeTest, APeerWakesWhoeverWaitsForAnEventItself) {
  ExpectFewLoopWakeUps({.blocking = true, .rounds = 4000});
}
TEST_F(WakeTest, WhoeverPollsNowAndThenOrComesLateIsWoken) {
  PingPong({.steady = false, .rounds = 3000});
}
TEST_F(WakeTest, WhoeverComesLateToABlockingWaitIsWoken) {
  PingPong({.blocking = true, .steady = false, .rounds = 3000});
}

// The descriptor says that an event is there, to one that then calls what blocks.
TEST_F(WakeTest, ABlockingDescriptorIsReadableOnlyForAnEvent) {
  Pair pair(device_.get(), {}, WithChannel());
  ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 0), 0);
  // Work for the adapter, and none for the application.
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(pair.a.Read(i, 0, kBytes, pair.b.address(), 0), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
    pollfd entry{pair.b.channel->fd, POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 0), 0);
  }
}

}  // namespace
}  // namespace softverbs
