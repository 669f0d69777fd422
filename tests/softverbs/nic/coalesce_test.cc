// Requests to another host that are posted one after the other share a system call, if the
// application polls.
#include <dirent.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "tests/softverbs/nic/remote_fixture.h"

namespace softverbs {
namespace {

constexpr uint64_t kPosts = 16;
constexpr int kRounds = 200;
constexpr int kLooksMax = 10'000;  // far more than a busy machine needs

// Returns the descriptor of this process's only TCP connection.
int LinkSocket() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  int found = -1;
  while (const dirent* entry = readdir(folder)) {
    const int fd = atoi(entry->d_name);
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const bool connected = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (connected && peer.ss_family == AF_INET) found = fd;
  }
  closedir(folder);
  return found;
}

// Returns how many segments with data the connection has sent. Each system call makes one at least.
uint32_t Segments(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  EXPECT_EQ(getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  return info.tcpi_data_segs_out;
}

class CoalesceTest : public RemoteTest {
 protected:
  void SetUp() override {
    Start(kVeryPatient);
    ASSERT_EQ(Read(), IBV_WC_SUCCESS);
    socket_ = LinkSocket();
    ASSERT_GE(socket_, 0);
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

  int socket_ = -1;
};

TEST_F(CoalesceTest, PostsOfAThreadThatPollsShareSegments) {
  // Where the thread loses its core, the engine takes it for one that does not poll. So one good
  // round is enough. Without this each round takes as many segments as there are posts.
  uint32_t fewest = UINT32_MAX;
  for (int round = 0; round < kRounds && fewest > kPosts / 4; ++round) {
    PollSteadily();
    const uint32_t before = Segments(socket_);
    PostWrites(kPosts);
    AwaitWrites(kPosts);
    fewest = std::min(fewest, Segments(socket_) - before);
  }
  EXPECT_LE(fewest, kPosts / 4);
}

TEST_F(CoalesceTest, PostsOfAThreadThatStopsPollingAreSentAllTheSame) {
  for (uint64_t round = 1; round <= kRounds; ++round) {
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
