#include "common/program/execute_again.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace gannet {
namespace {

constexpr int kBegunAnew = 42;

// The second run of this program ends here.
TEST(ExecuteAgainTest, BeginsAnewWithItsArguments) {
  if (WasExecutedAgain()) _exit(kBegunAnew);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::string name = "other", filter = "--gtest_filter=ExecuteAgainTest.*";
    char* argv[] = {name.data(), filter.data(), nullptr};
    ExecuteAgain(argv).IgnoreError();
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kBegunAnew);
}

}  // namespace
}  // namespace gannet
