#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>

#include "common/rdma/softverbs_exec.h"

namespace gannet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The program is on softverbs, and has no descriptor left for its device.
TEST(SoftverbsOpenTest, WhatKeepsTheDeviceFromOpeningIsSaid) {
  if (!RunningOnSoftverbs()) GTEST_SKIP() << "another device";
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  setenv("GANNET_SOFTVERBS_EXEC", "", 1);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  char name[] = "program";
  char* argv[] = {name, nullptr};
  const std::string message(ReexecOntoSoftverbs(argv).message());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  unsetenv("GANNET_SOFTVERBS_EXEC");
  EXPECT_THAT(message, AllOf(HasSubstr("softverbs cannot open its device: Too many open files"),
                             Not(HasSubstr("LD_LIBRARY_PATH"))));
}

}  // namespace
}  // namespace gannet
