// Commands that ask each server.

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "proxy/jobs/counters.h"
#include "proxy/jobs/job.h"
#include "proxy/jobs/store_error.h"

namespace gannet::proxy {
namespace {

using Kind = Operation::Kind;

class EachServerTest : public testing::Test {
 protected:
  EachServerTest() {
    service_.servers = {"10.0.0.1:7471"};
    job_.service = &service_;
    job_.servers = 3;
  }
  Service service_;
  Job job_;
};

// One group of a cluster stands for the cluster. Operations are of one group each, and a walk goes
// through all.
TEST_F(EachServerTest, AreTheGroupsThatThereAreNow) {
  job_.BeginOnEach(Kind::kFlush);
  ASSERT_EQ(job_.answers().size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(job_.answers()[i].server, i);
}

TEST_F(EachServerTest, WalksAreOfThoseThatAreListed) {
  job_.BeginOnEach(Kind::kWalk);
  EXPECT_EQ(job_.answers().size(), 1u);
}

TEST_F(EachServerTest, AFlushThatDoesNotHoldIsAnError) {
  job_.BeginOnEach(Kind::kFlush);
  EXPECT_EQ(FailedServers(job_), "");
  job_.answers()[0].code = job_.answers()[2].code = absl::StatusCode::kAborted;
  EXPECT_EQ(FailedServers(job_),
            "10.0.0.1:7471: partitions move between groups, and what was in them may be left; try "
            "again; group 2 of the cluster: partitions move between groups, and what was in them "
            "may be left; try again");
}

}  // namespace
}  // namespace gannet::proxy
