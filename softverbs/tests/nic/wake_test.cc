#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/task_status.h"
#include "softverbs/tests/support/test_seed.h"
#include "softverbs/tests/support/verbs_fixture.h"

// Two processes that send a message to and fro, and sleep while they wait for it: each must be
// woken, and by its peer itself.

namespace softverbs {
namespace {

using test_support::Put;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

constexpr size_t kWakeBytes = 64;

// How a process waits.
struct Style {
  bool blocking = false;     // the descriptor blocks
  bool poll_first = false;   // waits in poll(2) although the descriptor blocks
  bool steady = true;        // always the same way; otherwise it polls now and then, or comes late
  uint32_t polls_armed = 1;  // how often it polls the armed CQ before it waits
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
      for (uint32_t i = 0; i < style_.polls_armed; ++i) {
        if (ibv_poll_cq(side_.cq.get(), 1, wc) == 1) return true;
      }
      if (!style_.steady && Below(64) == 0) usleep(Below(3000));
      if (!Wait()) return false;
    }
  }

 private:
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  bool Wait() {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (style_.poll_first && !WaitReadable()) return false;
    while (ibv_get_cq_event(side_.channel.get(), &cq, &context) != 0) {
      if (errno != EAGAIN || !WaitReadable()) return false;
    }
    ibv_ack_cq_events(cq, 1);
    return true;
  }

  bool WaitReadable() {
    pollfd entry{side_.channel->fd, POLLIN, 0};
    return poll(&entry, 1, static_cast<int>(kTimeoutNs / 1'000'000)) == 1;
  }

  Side& side_;
  const Style style_;
  std::mt19937_64 random_;
};

SideOptions WithWakeChannel() {
  SideOptions options;
  options.with_channel = true;
  return options;
}

// Answers each message with one.
int WakeAnswerer(int socket) {
  const auto style = Take<Style>(socket);
  Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), WithWakeChannel());
  Put(socket, side.address());
  side.Connect(Take<Address>(socket));
  if (side.PostReceive(0, 0, kWakeBytes) != 0) return 2;
  Put(socket, char{1});
  Sleeper sleeper(&side, style);
  for (uint32_t received = 0; received < style.rounds;) {
    ibv_wc wc;
    if (!sleeper.Next(&wc) || wc.status != IBV_WC_SUCCESS) return 3;
    if (wc.opcode != IBV_WC_RECV) continue;
    ++received;
    if (side.PostReceive(0, 0, kWakeBytes) != 0 || side.PostSend(1, 0, kWakeBytes) != 0) return 4;
  }
  Take<char>(socket);  // until the test hangs up
  return 0;
}
const RegisterRole wake_answerer_role("wake_answerer", WakeAnswerer);

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

// Sends a message for each byte that comes on the socket, and says when it is posted.
int Sender(int socket) {
  Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), {});
  Put(socket, side.address());
  side.Connect(Take<Address>(socket));
  while (Take<char>(socket) != 0) {
    if (side.PostSend(0, 0, kWakeBytes) != 0) return 2;
    Put(socket, char{1});
    if (side.Next().status != IBV_WC_SUCCESS) return 3;
  }
  return 0;
}
const RegisterRole sender_role("sender", Sender);

// A CQ of `channel` with a queued event: a flushed receive.
class DueCq {
 public:
  DueCq(const Side& side) : cq_(ibv_create_cq(side.context, 8, nullptr, side.channel.get(), 0)) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_.get();
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_recv_wr = 1;
    Owned<ibv_qp> qp(ibv_create_qp(side.pd, &attr));
    ibv_qp_attr to_error{};
    to_error.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(ibv_modify_qp(qp.get(), &to_error, IBV_QP_STATE), 0);
    EXPECT_EQ(ibv_req_notify_cq(cq_.get(), 0), 0);
    ibv_recv_wr wr{};
    ibv_recv_wr* bad;
    EXPECT_EQ(ibv_post_recv(qp.get(), &wr, &bad), 0);
  }

 private:
  Owned<ibv_cq> cq_;
};

class WakeTest : public testing::Test {
 protected:
  void PingPong(Style style) {
    RoleProcess child("wake_answerer");
    const uint64_t seed = test_support::TestSeed();
    style.seed = seed + 1;
    Put(child.socket(), style);
    const auto peer = Take<Address>(child.socket());
    Side side(device_.get(), WithWakeChannel());
    side.ToRtr(peer);
    Put(child.socket(), side.address());
    ASSERT_EQ(Take<char>(child.socket()), 1);
    side.ToRts();
    style.seed = seed;
    Sleeper sleeper(&side, style);
    const int64_t began_ns = NowNs();
    for (uint32_t round = 0; round < style.rounds; ++round) {
      ASSERT_LT(NowNs() - began_ns, kTimeoutNs) << "round " << round << ": woken late";
      ASSERT_EQ(side.PostReceive(round, 0, kWakeBytes), 0);
      ASSERT_EQ(side.PostSend(round, kWakeBytes, kWakeBytes), 0);
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
  // a millisecond. So does a thread that goes to sleep while messages come (PrepareToSleep). Under
  // ThreadSanitizer that takes so long that the next message often comes meanwhile.
  void ExpectFewLoopWakeUps(const Style& style) {
    const int64_t before = LoopWakeUps();
    const int64_t began_ns = NowNs();
    PingPong(style);
    const int64_t most = style.rounds / 4 + (NowNs() - began_ns) / 1'000'000;
    const int64_t woken = LoopWakeUps() - before;
    if (!test_support::kThreadSanitizer) {
      EXPECT_LT(woken, most);
    }
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

// Polls make the engine believe that the application drives it. An application that armed its CQ
// before may wait nevertheless.
TEST_F(WakeTest, WhoeverPollsAnArmedCqForAWhileIsWokenSoon) {
  PingPong({.polls_armed = 40, .rounds = 4000});
}
TEST_F(WakeTest, WhoeverPollsAnArmedCqAndThenABlockingDescriptorIsWokenSoon) {
  PingPong({.blocking = true, .poll_first = true, .polls_armed = 40, .rounds = 1000});
}

// To destroy a CQ takes its event and the ring of a peer out of the descriptor. The event that the
// peer's message raises must remain.
TEST_F(WakeTest, DestroyingACqLosesNoEventOfAnother) {
  RoleProcess child("sender");
  const auto peer = Take<Address>(child.socket());
  Side side(device_.get(), WithWakeChannel());
  const int fd = side.channel->fd;
  ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
  side.Connect(peer);
  Put(child.socket(), side.address());
  for (uint64_t round = 0; round < 20; ++round) {
    ASSERT_EQ(side.PostReceive(round, 0, kWakeBytes), 0);
    std::optional<DueCq> due(side);
    ASSERT_EQ(ibv_req_notify_cq(side.cq.get(), 0), 0);
    Put(child.socket(), char{1});
    ASSERT_EQ(Take<char>(child.socket()), 1);
    due.reset();
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    do {  // the ring of a peer may bring no event
      pollfd entry{fd, POLLIN, 0};
      ASSERT_EQ(poll(&entry, 1, static_cast<int>(kTimeoutNs / 1'000'000)), 1) << round;
    } while (ibv_get_cq_event(side.channel.get(), &cq, &context) != 0);
    EXPECT_EQ(cq, side.cq.get());
    ibv_ack_cq_events(cq, 1);
    EXPECT_EQ(side.Next().wr_id, round);
  }
  Put(child.socket(), char{0});
  EXPECT_EQ(child.Finish(), 0);
}

// The descriptor says that an event is there, to one that then calls what blocks.
TEST_F(WakeTest, ABlockingDescriptorIsReadableOnlyForAnEvent) {
  Pair pair(device_.get(), {}, WithWakeChannel());
  ASSERT_EQ(ibv_req_notify_cq(pair.b.cq.get(), 0), 0);
  // Work for the adapter, and none for the application.
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(pair.a.Read(i, 0, kWakeBytes, pair.b.address(), 0), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
    pollfd entry{pair.b.channel->fd, POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 0), 0);
  }
}

}  // namespace
}  // namespace softverbs
