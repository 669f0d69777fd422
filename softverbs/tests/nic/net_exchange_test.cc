#include "softverbs/nic/net_exchange.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/net_key.h"

// What a process does for a caller that sends little, slowly, or nothing. There is no key here, so
// a Proof is zeroes.

namespace softverbs {
namespace {

// A loop whose handlers and timers run when the test says so.
class ManualLoop final : public Loop {
 public:
  Watch Add(int, uint32_t, Handler handler) override {
    handlers.emplace(++last_id, std::move(handler));
    return last_id;
  }
  void Modify(Watch, uint32_t) override {}
  void Remove(Watch watch) override { handlers.erase(watch); }
  Timer RunAt(int64_t monotonic_ns, std::function<void()> fn) override {
    timers.emplace(++last_id, std::pair{monotonic_ns, std::move(fn)});
    return last_id;
  }
  void Cancel(Timer timer) override { timers.erase(timer); }
  void Post(std::function<void()> fn) override { fn(); }
  bool OnLoopThread() const override { return true; }

  // Runs the one handler that there is.
  void RunHandler() {
    ASSERT_EQ(handlers.size(), 1u);
    const Handler handler = handlers.begin()->second;
    handler(0);
  }

  uint64_t last_id = 0;
  std::map<Watch, Handler> handlers;
  std::map<Timer, std::pair<int64_t, std::function<void()>>> timers;
};

ManualLoop& TheLoop() {
  static auto* const loop = new ManualLoop;
  EXPECT_TRUE(Loop::Install(loop));
  return *loop;
}

// The two ends of a connection over loopback.
std::pair<UniqueFd, UniqueFd> Connection() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const to = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener.get(), to, size), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), to, &size), 0);
  UniqueFd near(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(near.get(), to, size), 0);
  return {std::move(near), UniqueFd(accept(listener.get(), nullptr, nullptr))};
}

class NetExchangeTest : public ::testing::Test {
 protected:
  NetExchangeTest() {
    opening_.kind = NetKind::kLink;
    opening_.target = 1;
    opening_.slot = 2;
    auto [near, far] = Connection();
    near_ = std::move(near);
    far_fd_ = far.get();
    AnswerCaller(
        strangers_, std::move(far), [](const NetCaller&) { return Welcome{}; },
        [this](UniqueFd socket, const NetCaller&) { done_ = std::move(socket); });
  }

  // Sends bytes one by one. The exchange gets each before the next is sent.
  void Drip(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      ASSERT_EQ(send(near_.get(), static_cast<const char*>(data) + i, 1, MSG_NOSIGNAL), 1);
      pollfd arrived{far_fd_, POLLIN, 0};
      ASSERT_EQ(poll(&arrived, 1, -1), 1);
      loop_.RunHandler();
    }
  }

  template <class Frame>
  Frame Received() {
    Frame frame;
    EXPECT_EQ(recv(near_.get(), &frame, sizeof(frame), MSG_WAITALL), ssize_t{sizeof(frame)});
    return frame;
  }

  void ExpectOver() {
    EXPECT_EQ(strangers_.size(), 0u);
    EXPECT_TRUE(loop_.timers.empty());
    EXPECT_TRUE(loop_.handlers.empty());
  }

  // What the other side sent last, and then hung up.
  void ExpectHungUp() {
    char byte;
    EXPECT_EQ(recv(near_.get(), &byte, 1, 0), 0);
    ExpectOver();
  }

  ManualLoop& loop_ = TheLoop();
  Strangers strangers_{4096};
  NetOpening opening_;
  UniqueFd near_;
  int far_fd_ = -1;
  UniqueFd done_;
};

TEST_F(NetExchangeTest, WhoProvesTheKeyByteByByteIsNoStrangerAnyMore) {
  EXPECT_EQ(strangers_.size(), 1u);
  Drip(&opening_, sizeof(opening_));
  EXPECT_EQ(Received<Challenge>().status, NetStatus::kOk);
  EXPECT_EQ(strangers_.size(), 1u);
  const Proof proof{};
  Drip(&proof, sizeof(proof));
  EXPECT_EQ(Received<Welcome>().status, NetStatus::kOk);
  EXPECT_TRUE(done_);
  ExpectOver();
}

// Its time is over when it is, whatever has come.
TEST_F(NetExchangeTest, SlowBytesBuyNoTime) {
  ASSERT_EQ(loop_.timers.size(), 1u);
  const auto timer = loop_.timers.begin()->first;
  const int64_t deadline = loop_.timers.begin()->second.first;
  EXPECT_LE(deadline, MonotonicNs() + kExchangeNs);
  Drip(&opening_, sizeof(opening_));
  EXPECT_EQ(Received<Challenge>().status, NetStatus::kOk);
  const Proof proof{};
  Drip(&proof, sizeof(proof) - 1);
  ASSERT_EQ(loop_.timers.size(), 1u);
  EXPECT_EQ(loop_.timers.begin()->first, timer);
  EXPECT_EQ(loop_.timers.begin()->second.first, deadline);
  const auto too_late = loop_.timers.begin()->second.second;
  too_late();
  ExpectHungUp();
  EXPECT_FALSE(done_);
}

TEST_F(NetExchangeTest, WhoMakesRoomBeforeTheChallengeIsToldToComeLater) {
  Drip(&opening_, sizeof(opening_) - 1);
  EXPECT_TRUE(strangers_.DropOne());
  EXPECT_EQ(Received<Challenge>().status, NetStatus::kBusy);
  ExpectHungUp();
}

TEST_F(NetExchangeTest, WhoMakesRoomBeforeItsProofIsToldToComeLater) {
  Drip(&opening_, sizeof(opening_));
  EXPECT_EQ(Received<Challenge>().status, NetStatus::kOk);
  EXPECT_TRUE(strangers_.DropOne());
  EXPECT_EQ(Received<Welcome>().status, NetStatus::kBusy);
  ExpectHungUp();
}

TEST_F(NetExchangeTest, AFalseProofEndsIt) {
  Drip(&opening_, sizeof(opening_));
  EXPECT_EQ(Received<Challenge>().status, NetStatus::kOk);
  Proof proof{};
  proof.mac[0] = 1;
  Drip(&proof, sizeof(proof));
  EXPECT_EQ(Received<Welcome>().status, NetStatus::kKey);
  ExpectHungUp();
  EXPECT_FALSE(done_);
}

}  // namespace
}  // namespace softverbs
