// fork(): the parent's connections do not notice that there is a child, nor its end.
// ibv_fork_init(3): "to handle fork() correctly and avoid data corruption".
#include <sys/wait.h>
#include <unistd.h>

#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

constexpr uint64_t kOld = 0x0101010101010101;
constexpr uint64_t kNew = 0x0202020202020202;

// A forked child that waits until it is told to end.
class Forked {
 public:
  Forked() {
    EXPECT_EQ(pipe(pipe_), 0);
    pid_ = fork();
    if (pid_ != 0) {
      close(pipe_[0]);
      return;
    }
    close(pipe_[1]);
    char end;
    while (read(pipe_[0], &end, 1) > 0) {
    }
    _exit(0);
  }
  void End() {
    close(pipe_[1]);
    int status = -1;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    EXPECT_EQ(status, 0);
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
};

uint64_t ReadWord(Pair& pair) {
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  Buffer& target = *pair.server().buffer;
  EXPECT_EQ(Do(pair.client(), Read(&sge, target.address(), target.rkey())).status, IBV_WC_SUCCESS);
  return pair.client().buffer->Word(0);
}

// Runs in a separate process, because ibv_fork_init(3) must come before all other calls.
int Parent(int socket) {
  if (ibv_fork_init() != 0) return 2;
  UseDevice(test_support::Take<Device>(socket));
  Pair pair;
  pair.server().buffer->Fill(0x01);
  EXPECT_EQ(ReadWord(pair), kOld);
  for (int round = 0; round < 2; ++round) {
    Forked child;
    // Copy on write gives one of the two processes new pages. The adapter must still see the
    // parent's.
    pair.server().buffer->Fill(0x02);
    EXPECT_EQ(ReadWord(pair), kNew);
    pair.server().buffer->Fill(0x01);
    EXPECT_EQ(ReadWord(pair), kOld);
    child.End();
    EXPECT_EQ(ReadWord(pair), kOld) << "the child's end is not the connection's";
    EXPECT_FALSE(Readable(pair.client().events->fd, 0));
    EXPECT_FALSE(Readable(pair.server().events->fd, 0));
  }
  EXPECT_EQ(PostReceive(pair.server(), pair.server().buffer->Sge(0, 64)), 0);
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  EXPECT_EQ(Do(pair.client(), Send(&sge)).status, IBV_WC_SUCCESS);
  return ::testing::Test::HasFailure() ? 1 : 0;
}
const test_support::RegisterRole parent_role("parent", Parent);

TEST(ForkTest, AChildDoesNotDisturbItsParent) {
  if (test_support::kThreadSanitizer) GTEST_SKIP() << "TSan does not support threads after fork";
  test_support::RoleProcess parent("parent");
  test_support::Put(parent.socket(), TheDevice());
  EXPECT_EQ(parent.Finish(), 0);
}

}  // namespace
}  // namespace verbs_contract
