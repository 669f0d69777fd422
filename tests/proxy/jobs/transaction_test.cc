// What others do while EXEC runs, at a real server. The test runs the jobs itself, so it knows
// where in EXEC the others are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/proxy/jobs/jobs_fixture.h"

namespace gannet::proxy {
namespace {

using testing::StartsWith;

class TransactionTest : public JobsFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(other_->Put("watched", "seen").ok());
    ASSERT_TRUE(other_->Put("else", "x").ok());
    EXPECT_EQ(Do("WATCH watched"), "+OK\r\n");
    EXPECT_EQ(Do("MULTI"), "+OK\r\n");
  }

  // Begins EXEC, and goes on until its check has passed and `commands` of its commands have begun.
  Job& BeginExec(size_t commands) {
    Job& exec = Begin("EXEC");
    while (!exec.finished && exec.execution->next < commands) store_.Poll(&finished_);
    EXPECT_FALSE(exec.finished);
    return exec;
  }
};

TEST_F(TransactionTest, AWriteBetweenTheCheckAndTheFirstWriteOfAWatchedKeyIsNotLost) {
  Do("GET else");
  Do("SET watched mine");
  Job& exec = BeginExec(1);
  ASSERT_TRUE(other_->Put("watched", "theirs").ok());
  EXPECT_EQ(End(exec), "*-1\r\n");
  EXPECT_EQ(Value("watched"), "theirs");
}

TEST_F(TransactionTest, WhatWasAppliedBeforeSuchAWriteIsTold) {
  Do("SET else mine");
  Do("GET else");
  Do("SET watched mine");
  Do("SET last mine");
  Job& exec = BeginExec(2);
  ASSERT_TRUE(other_->Put("watched", "theirs").ok());
  EXPECT_THAT(End(exec), StartsWith("*4\r\n+OK\r\n$4\r\nmine\r\n-EXECABORT "));
  EXPECT_EQ(Value("else"), "mine");
  EXPECT_EQ(Value("watched"), "theirs");
  EXPECT_EQ(Value("last"), "absent");
}

// Only the first write is conditional: the transaction's own change the version.
TEST_F(TransactionTest, TheTransactionsOwnWritesAreNoConflict) {
  Do("SET watched mine");
  Do("GET watched");
  Do("SET watched more");
  EXPECT_EQ(Do("EXEC"), "*3\r\n+OK\r\n$4\r\nmine\r\n+OK\r\n");
}

}  // namespace
}  // namespace gannet::proxy
