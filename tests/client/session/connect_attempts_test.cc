#include "client/session/connect_attempts.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/clock.h"

namespace gannet {
namespace {

constexpr int64_t kNow = 100 * kNsPerSecond;

class ConnectAttemptsTest : public ::testing::Test {
 protected:
  static ConnectAttempts::Failure NobodyListens() {
    return {.why = absl::UnavailableError("nobody listens")};
  }
  static ConnectAttempts::Failure Refused(RejectCode code, std::string why = "refused") {
    return {.why = absl::UnavailableError(why), .code = code, .answered = true};
  }
  static void Fail(ConnectAttempts& attempts, ConnectAttempts::Failure failure) {
    attempts.OnFailed(std::move(failure));
    attempts.ScheduleNext(kNow);
  }

  ConnectAttempts two_{2, /*reconnect=*/true};
};

TEST_F(ConnectAttemptsTest, TriesTheNextAddressAtOnce) {
  Fail(two_, NobodyListens());
  EXPECT_EQ(two_.address(), 1u);
  EXPECT_EQ(two_.next_ns(), kNow);
  EXPECT_FALSE(two_.unreachable());
}

TEST_F(ConnectAttemptsTest, IsUnreachableAfterARoundUntilConnected) {
  Fail(two_, NobodyListens());
  Fail(two_, NobodyListens());
  EXPECT_TRUE(two_.unreachable());
  EXPECT_EQ(two_.address(), 0u);
  EXPECT_GT(two_.next_ns(), kNow);  // the next round after a back-off
  Fail(two_, NobodyListens());
  EXPECT_TRUE(two_.unreachable());
  two_.OnConnected();
  EXPECT_FALSE(two_.unreachable());
  EXPECT_TRUE(two_.status().ok());
}

TEST_F(ConnectAttemptsTest, KeepsWhatTheServerSaidForTheRound) {
  Fail(two_, Refused(RejectCode::kTooManyConnections, "full"));
  Fail(two_, NobodyListens());
  EXPECT_EQ(two_.status().message(), "full");
  Fail(two_, NobodyListens());  // of the next round
  EXPECT_EQ(two_.status().message(), "nobody listens");
}

TEST_F(ConnectAttemptsTest, AForgottenSessionIsAskedForAnewAtTheSameAddress) {
  two_.OnConnected();
  ConnectAttempts::Failure failure = Refused(RejectCode::kSessionUnknown);
  failure.session_forgotten = true;
  Fail(two_, std::move(failure));
  EXPECT_EQ(two_.address(), 0u);
  EXPECT_LE(two_.next_ns(), kNow + Backoff::kFirstNs);
  EXPECT_FALSE(two_.unreachable());
}

TEST_F(ConnectAttemptsTest, AStartingServerIsNotLookedForElsewhere) {
  Fail(two_, Refused(RejectCode::kStarting));
  EXPECT_EQ(two_.address(), 0u);
  EXPECT_TRUE(two_.starting());
  EXPECT_TRUE(two_.unreachable());
}

TEST_F(ConnectAttemptsTest, WithoutReconnectABrokenConnectionIsTheEnd) {
  ConnectAttempts once(1, /*reconnect=*/false);
  once.OnConnected();
  once.OnBroken(absl::UnavailableError("broken"));
  once.ScheduleNext(kNow);
  EXPECT_EQ(once.next_ns(), ConnectAttempts::kNever);
  EXPECT_EQ(once.status().message(), "broken");
}

TEST_F(ConnectAttemptsTest, WithoutReconnectTheFirstRoundTriesAllAddressesAndAStartingServerAgain) {
  ConnectAttempts other(2, /*reconnect=*/false);
  Fail(other, NobodyListens());
  EXPECT_EQ(other.next_ns(), kNow);
  Fail(other, NobodyListens());
  EXPECT_EQ(other.next_ns(), ConnectAttempts::kNever);

  ConnectAttempts starting(1, /*reconnect=*/false);
  Fail(starting, Refused(RejectCode::kStarting));
  EXPECT_LT(starting.next_ns(), ConnectAttempts::kNever);
}

TEST_F(ConnectAttemptsTest, LaterRoundsAreNoNewsUnlessTheServerSaysSomethingElse) {
  EXPECT_TRUE(two_.IsNews({}));
  Fail(two_, NobodyListens());
  Fail(two_, NobodyListens());
  EXPECT_FALSE(two_.IsNews({}));
  EXPECT_TRUE(two_.IsNews(RejectCode::kShuttingDown));
}

}  // namespace
}  // namespace gannet
