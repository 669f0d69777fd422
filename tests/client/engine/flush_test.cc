// A FLUSH of one group, while partitions may move.

#include <gtest/gtest.h>

#include <cstdint>

#include "client/api/make_requests.h"
#include "client/engine/outcome.h"
#include "tests/client/engine/moves_fixture.h"

namespace gannet {
namespace {

class FlushTest : public MovesTest {
 protected:
  void SetUp() override {
    MovesTest::SetUp();
    Of(0).answer = [](const FakeServer::Request& request) {
      ReplyHeader reply = FakeServer::ReplyTo(request);
      reply.flush = {.next = request.header.flush.position == 0 ? uint64_t{5} : 0, .removed = 3};
      return reply;
    };
  }
  // Returns how a FLUSH of group 0 ends.
  Outcome Flush() {
    const uint64_t flush = Begin(ServerRequest(*engine_, OpType::kFlush, 0), 10'000);
    PassMs(10);
    EXPECT_TRUE(HasEnded(flush));
    return ended_[flush].outcome;
  }
};

TEST_F(FlushTest, HoldsByTheMapThatTheClientKnows) {
  ConnectToCluster();
  EXPECT_EQ(Flush(), Outcome::kOk);
  Give(KeyOfHalf(0), 1);
  Tell();
  PassMs(35'000);
  ASSERT_EQ(engine_->known_map().revision, 1u);
  EXPECT_EQ(Flush(), Outcome::kOk);
}

// What moved may have moved past it.
TEST_F(FlushTest, DoesNotHoldIfTheServerKnowsALaterMapInTheEnd) {
  ConnectToCluster();
  Give(KeyOfHalf(0), 1);
  Tell();
  EXPECT_EQ(Flush(), Outcome::kMoved);
  EXPECT_EQ(ToStatusCode(Outcome::kMoved), absl::StatusCode::kAborted);
  PassMs(50);
  EXPECT_EQ(engine_->known_map().revision, 1u) << "a newer map is asked for at once";
  EXPECT_EQ(Flush(), Outcome::kOk);
}

// The deletions may be behind the end that the giver told.
TEST_F(FlushTest, DoesNotHoldWhileAPartitionIsClosed) {
  ConnectToCluster();
  Close(KeyOfHalf(0));
  Tell();
  PassMs(35'000);
  ASSERT_EQ(engine_->known_map().revision, 1u);
  EXPECT_EQ(Flush(), Outcome::kMoved);
  Give(KeyOfHalf(0), 1);
  Tell();
  PassMs(50);
  EXPECT_EQ(Flush(), Outcome::kOk);
}

}  // namespace
}  // namespace gannet
