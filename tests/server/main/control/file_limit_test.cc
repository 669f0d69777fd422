#include "server/main/control/file_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace gannet {
namespace {

TEST(FileLimitTest, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  RaiseFileLimit();
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
}

TEST(FileLimitTest, TheLastDescriptorsAreNotForClients) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {.rlim_cur = kReservedDescriptors + 32, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> fds;
  while (HasDescriptorsForClients() && fds.size() < few.rlim_cur) fds.push_back(dup(0));
  EXPECT_FALSE(fds.empty());
  for (int i = 0; i < kReservedDescriptors; ++i) fds.push_back(dup(0));
  EXPECT_GE(fds.back(), 0) << "all that are reserved are there";
  EXPECT_EQ(dup(0), -1);
  EXPECT_FALSE(HasDescriptorsForClients());
  for (const int fd : fds) close(fd);
  EXPECT_TRUE(HasDescriptorsForClients());
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace gannet
