// Requests to another host that are posted one after the other share a system call, if the
// application polls.
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "softverbs/tests/nic/remote_fixture.h"

namespace softverbs {
namespace {

constexpr uint64_t kPosts = 16;
constexpr int kRounds = 200;
constexpr uint64_t kStops = 50;
constexpr int kLooksMax = 10'000;  // far more than a busy machine needs

constexpr uint8_t kEstablished = 1;  // TCP_ESTABLISHED of <netinet/tcp.h>

// A TCP connection of this process, and how many segments with data it has sent. Each system call
// makes one at least.
struct Connection {
  std::string name;  // "socket:[INODE]"
  uint32_t segments;
};

// Returns this process's connections.
std::vector<Connection> Connections() {
  std::vector<Connection> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    // The loop thread may close a descriptor meanwhile, or open another one of its number. So the
    // name is read before and after.
    std::error_code closed;
    const std::string name = std::filesystem::read_symlink(entry, closed);
    tcp_info info{};
    socklen_t size = sizeof(info);
    // ThreadSanitizer would take the function of the C library for a race with that thread's close.
    const long failed = syscall(SYS_getsockopt, std::stoi(entry.path().filename()), IPPROTO_TCP,
                                TCP_INFO, &info, &size);
    if (failed != 0 || info.tcpi_state != kEstablished) continue;
    if (name != std::filesystem::read_symlink(entry, closed) || closed) continue;
    found.push_back({name, info.tcpi_data_segs_out});
  }
  return found;
}

// Connections that appear or go away do so within this time, on any machine.
constexpr int64_t kSettleNs = 60'000'000'000;

class CoalesceTest : public RemoteTest {
 protected:
  void SetUp() override {
    Start();
    ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  }
  // Polls until the engine takes this thread for one that polls steadily.
  void PollSteadily() {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(side_->Idle());
  }
  // Posts WRITEs of the first word, each by itself.
  void PostWrites(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(side_->Write(i, 0, 8, peer_, 0), 0);
  }
  void AwaitWrites(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const ibv_wc wc = side_->Next();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, i);
    }
  }
  // Returns how many segments the link sends for `count` WRITEs. Measures again if the process had
  // another connection meanwhile: if both sides dial, one connection goes away a little later.
  uint32_t SegmentsOfWrites(uint64_t count) {
    const int64_t give_up = NowNs() + kSettleNs;
    while (NowNs() < give_up && !HasFailure()) {
      PollSteadily();
      const std::vector<Connection> before = Connections();
      PostWrites(count);
      AwaitWrites(count);
      const std::vector<Connection> after = Connections();
      if (before.size() != 1 || after.size() != 1) continue;
      if (before[0].name != after[0].name) continue;
      return after[0].segments - before[0].segments;
    }
    ADD_FAILURE() << "the link is not the only connection";
    return UINT32_MAX;
  }
};

TEST_F(CoalesceTest, PostsOfAThreadThatPollsShareSegments) {
  // Where the thread loses its core, the engine takes it for one that does not poll. So one good
  // round is enough. Without this each round takes as many segments as there are posts.
  uint32_t fewest = UINT32_MAX;
  for (int round = 0; round < kRounds && fewest > kPosts / 4 && !HasFailure(); ++round) {
    fewest = std::min(fewest, SegmentsOfWrites(kPosts));
  }
  EXPECT_LE(fewest, kPosts / 4);
}

TEST_F(CoalesceTest, PostsOfAThreadThatStopsPollingAreSentAllTheSame) {
  for (uint64_t round = 1; round <= kStops; ++round) {
    PollSteadily();
    side_->Word(0) = round;
    PostWrites(2);
    ASSERT_EQ(side_->Write(2, 0, 8, peer_, 8), 0);
    // The thread polls no more until the peer has all three: the child answers by another socket.
    for (int looks = 0; Do(Order::kSecondWord) != round; ++looks) ASSERT_LT(looks, kLooksMax);
    AwaitWrites(3);
  }
}

}  // namespace
}  // namespace softverbs
