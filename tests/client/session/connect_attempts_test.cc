#include "client/session/connect_attempts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace gannet {
namespace {

constexpr int64_t kNow = 100 * kNsPerSecond;
constexpr int64_t kLease = 400 * kNsPerMs;

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

  static SocketAddress Address(int i) {
    return NumericAddress("10.0.0." + std::to_string(i), 7471).value();
  }
  static ConnectAttempts Of(int addresses, bool reconnect, bool group = false) {
    ConnectAttempts::Options options{.reconnect = reconnect, .group = group, .lease_ns = kLease};
    for (int i = 0; i < addresses; ++i) options.addresses.push_back(Address(i));
    return ConnectAttempts(std::move(options));
  }
  // Returns which of Of's addresses is next; -1: another.
  static int Next(const ConnectAttempts& attempts) {
    for (int i = 0; i < 9; ++i) {
      if (attempts.address().ToString() == Address(i).ToString()) return i;
    }
    return -1;
  }

  ConnectAttempts two_ = Of(2, /*reconnect=*/true);
};

TEST_F(ConnectAttemptsTest, TriesTheNextAddressAtOnce) {
  Fail(two_, NobodyListens());
  EXPECT_EQ(Next(two_), 1);
  EXPECT_EQ(two_.next_ns(), kNow);
  EXPECT_FALSE(two_.unreachable());
}

TEST_F(ConnectAttemptsTest, IsUnreachableAfterARoundUntilConnected) {
  Fail(two_, NobodyListens());
  Fail(two_, NobodyListens());
  EXPECT_TRUE(two_.unreachable());
  EXPECT_EQ(Next(two_), 0);
  EXPECT_GT(two_.next_ns(), kNow);  // the next round after a back-off
  Fail(two_, NobodyListens());
  EXPECT_TRUE(two_.unreachable());
  two_.OnConnected(/*group=*/false, kNow);
  EXPECT_FALSE(two_.unreachable());
  EXPECT_TRUE(two_.status().ok());
}

TEST_F(ConnectAttemptsTest, KeepsWhatTheServerSaidForTheRound) {
  Fail(two_, Refused(RejectCode::kTooManyConnections, "full"));
  Fail(two_, NobodyListens());
  EXPECT_EQ(two_.status().message(), "full");
}

TEST_F(ConnectAttemptsTest, NamesAllAddressesThatDoNotAnswer) {
  ConnectAttempts three = Of(3, /*reconnect=*/true);
  Fail(three, NobodyListens());
  EXPECT_EQ(three.status().message(), "nobody listens");
  Fail(three, NobodyListens());
  Fail(three, NobodyListens());
  EXPECT_EQ(three.status().message(),
            absl::StrCat("nobody listens; also tried in vain: ", Address(0).ToString(), ", ",
                         Address(1).ToString()));
  Fail(three, Refused(RejectCode::kTooManyConnections, "full"));  // the first one lives
  EXPECT_EQ(three.status().message(), "full");
  three.OnConnected(/*group=*/false, kNow);
  Fail(three, NobodyListens());
  EXPECT_EQ(three.status().message(), "nobody listens");
}

TEST_F(ConnectAttemptsTest, AForgottenSessionIsAskedForAnewAtTheSameAddress) {
  two_.OnConnected(/*group=*/false, kNow);
  ConnectAttempts::Failure failure = Refused(RejectCode::kSessionUnknown);
  failure.session_forgotten = true;
  Fail(two_, std::move(failure));
  EXPECT_EQ(Next(two_), 0);
  EXPECT_LE(two_.next_ns(), kNow + Backoff::kFirstNs);
  EXPECT_FALSE(two_.unreachable());
}

TEST_F(ConnectAttemptsTest, AStartingServerIsNotLookedForElsewhere) {
  Fail(two_, Refused(RejectCode::kStarting));
  EXPECT_EQ(Next(two_), 0);
  EXPECT_TRUE(two_.starting());
  EXPECT_TRUE(two_.unreachable());
}

TEST_F(ConnectAttemptsTest, WithoutReconnectABrokenConnectionIsTheEnd) {
  ConnectAttempts once = Of(1, /*reconnect=*/false);
  once.OnConnected(/*group=*/false, kNow);
  once.OnBroken(absl::UnavailableError("broken"), kLease);
  once.ScheduleNext(kNow);
  EXPECT_EQ(once.next_ns(), ConnectAttempts::kNever);
  EXPECT_EQ(once.status().message(), "broken");
}

TEST_F(ConnectAttemptsTest, WithoutReconnectTheFirstRoundTriesAllAddressesAndAStartingServerAgain) {
  ConnectAttempts other = Of(2, /*reconnect=*/false);
  Fail(other, NobodyListens());
  EXPECT_EQ(other.next_ns(), kNow);
  Fail(other, NobodyListens());
  EXPECT_EQ(other.next_ns(), ConnectAttempts::kNever);

  ConnectAttempts starting = Of(1, /*reconnect=*/false);
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

TEST_F(ConnectAttemptsTest, AfterABreakAnotherRailIsAskedFirstAtOnceAndForNotLong) {
  ConnectAttempts one = Of(1, /*reconnect=*/true);
  EXPECT_EQ(one.AttemptNs(kNow, kNsPerSecond), kNsPerSecond);
  one.OnConnected(/*group=*/false, kNow);
  one.LearnRails({Address(0), Address(1), Address(2)});
  const int64_t later = kNow + kNsPerSecond;
  one.OnBroken(absl::UnavailableError("broken"), kLease);
  one.ScheduleNext(later);
  EXPECT_EQ(Next(one), 1);
  EXPECT_EQ(one.next_ns(), later);
  EXPECT_EQ(one.AttemptNs(later, kNsPerSecond), ConnectAttempts::kRailAttemptNs);
  one.OnFailed(NobodyListens());
  one.ScheduleNext(later);
  EXPECT_EQ(Next(one), 2);
  EXPECT_EQ(one.next_ns(), later);
  one.OnFailed(NobodyListens());
  one.ScheduleNext(later);
  EXPECT_EQ(Next(one), 0) << "the broken one comes last";
  one.OnFailed(NobodyListens());
  one.ScheduleNext(later);
  EXPECT_FALSE(one.unreachable()) << "it was lost a moment ago";
  const int64_t patient = later + ConnectAttempts::kRailPatienceNs;
  EXPECT_EQ(one.AttemptNs(patient, 3 * kNsPerSecond), ConnectAttempts::kRailPatienceNs / 4);
  for (int i = 0; i < 3; ++i) {
    one.OnFailed(NobodyListens());
    one.ScheduleNext(patient);
  }
  EXPECT_TRUE(one.unreachable());
}

TEST_F(ConnectAttemptsTest, OfAGroupTheOtherRailsOfItsPrimaryAreAskedToo) {
  ConnectAttempts group = Of(2, /*reconnect=*/true, /*group=*/true);
  group.OnConnected(/*group=*/true, kNow);
  group.LearnRails({Address(0), Address(5)});
  group.OnBroken(absl::UnavailableError("broken"), kLease);
  EXPECT_EQ(Next(group), 1);
  group.OnFailed(Refused(RejectCode::kNotPrimary));
  EXPECT_EQ(Next(group), 5);
}

TEST_F(ConnectAttemptsTest, RailsOfAFormerPrimaryAreForgotten) {
  ConnectAttempts group = Of(2, /*reconnect=*/true, /*group=*/true);
  group.OnConnected(/*group=*/true, kNow);
  group.LearnRails({Address(0), Address(5)});
  group.LearnRails({});  // the next one has one rail
  group.OnBroken(absl::UnavailableError("broken"), kLease);
  group.OnFailed(Refused(RejectCode::kNotPrimary));
  EXPECT_EQ(Next(group), 0) << "the former primary comes last";
}

class GroupAttemptsTest : public ConnectAttemptsTest {
 protected:
  // Fails when it is time, and schedules the next attempt.
  void FailAt(int64_t now_ns, ConnectAttempts::Failure failure) {
    group_.OnFailed(std::move(failure));
    group_.ScheduleNext(now_ns);
  }
  static ConnectAttempts::Failure NotPrimary(std::optional<int> primary = std::nullopt) {
    ConnectAttempts::Failure failure = Refused(RejectCode::kNotPrimary);
    if (primary.has_value()) failure.primary = Address(*primary);
    return failure;
  }
  // Was connected to the address of this number, and lost the connection now.
  void BreakAt(int address) {
    while (Next(group_) != address) FailAt(kNow, NotPrimary());
    BreakAfter(kNow - kLease, kLease);
  }
  // Was connected at `connected_ns`, and for so long.
  void BreakAfter(int64_t connected_ns, int64_t lasted_ns) {
    group_.OnConnected(/*group=*/true, connected_ns);
    group_.OnBroken(absl::UnavailableError("broken"), kLease);
    group_.ScheduleNext(connected_ns + lasted_ns);
  }

  ConnectAttempts group_ = Of(4, /*reconnect=*/true, /*group=*/true);
};

TEST_F(GroupAttemptsTest, AfterABreakTheOthersAreAskedFirstAndTheFormerPrimaryLast) {
  BreakAt(1);
  EXPECT_EQ(group_.next_ns(), kNow);
  for (const int expected : {2, 3, 0, 1, 2, 3, 0, 1}) {
    EXPECT_EQ(Next(group_), expected);
    FailAt(kNow, NotPrimary());
    EXPECT_GE(group_.next_ns(), kNow + ConnectAttempts::kApartNs);
    EXPECT_LE(group_.next_ns(), kNow + 2 * ConnectAttempts::kApartNs);
  }
}

// A member takes the client and drops it at once, for as long as it likes.
TEST_F(GroupAttemptsTest, BriefConnectionsComeFartherAndFartherApart) {
  constexpr int64_t kLasts = 30 * kNsPerUs;
  int64_t now_ns = kNow;
  int64_t pause_ns = Backoff::kFirstNs;
  int connections = 0;
  for (; now_ns < kNow + 10 * kNsPerSecond; ++connections) {
    BreakAfter(now_ns, kLasts);
    EXPECT_GE(group_.next_ns() - now_ns - kLasts, pause_ns * 3 / 4);
    pause_ns = std::min(2 * pause_ns, Backoff::kMaxNs);
    now_ns = group_.next_ns();
  }
  EXPECT_LT(connections, 25);
  BreakAfter(now_ns, ConnectAttempts::kBriefNs);
  EXPECT_EQ(group_.next_ns(), now_ns + ConnectAttempts::kBriefNs) << "this one was not brief";
  now_ns = group_.next_ns();
  BreakAfter(now_ns, kLasts);
  EXPECT_LE(group_.next_ns(), now_ns + kLasts + Backoff::kFirstNs) << "the pauses begin anew";
}

TEST_F(GroupAttemptsTest, WhomAMemberNamesIsTriedNextAtOnce) {
  BreakAt(0);
  FailAt(kNow, NotPrimary(3));
  EXPECT_EQ(Next(group_), 3);
  EXPECT_EQ(group_.next_ns(), kNow);
  FailAt(kNow, NotPrimary(8));  // not in the list
  EXPECT_EQ(Next(group_), 8);
  EXPECT_EQ(group_.next_ns(), kNow);
  // They name each other. That ends when both were tried.
  FailAt(kNow, NotPrimary(3));
  EXPECT_EQ(Next(group_), 2);
  EXPECT_GT(group_.next_ns(), kNow);
  FailAt(kNow, NotPrimary(0));
  EXPECT_EQ(Next(group_), 0) << "the former primary, last";
  FailAt(kNow, NotPrimary());
  EXPECT_NE(Next(group_), 0);
}

TEST_F(GroupAttemptsTest, TheFormerPrimaryIsNotTriedBeforeTheOthersThoughTheyNameIt) {
  BreakAt(0);
  for (const int expected : {1, 2, 3}) {
    EXPECT_EQ(Next(group_), expected);
    FailAt(kNow, NotPrimary(0));
  }
  EXPECT_EQ(Next(group_), 0);
}

TEST_F(GroupAttemptsTest, ManyNamesTakeABoundedRoom) {
  for (int i = 0; i < 1000; ++i) {
    ConnectAttempts::Failure failure = NotPrimary();
    failure.primary =
        NumericAddress("10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256), 7471);
    FailAt(kNow, failure);
    EXPECT_EQ(group_.address().ToString(), failure.primary->ToString());
  }
  for (int tried = 0; Next(group_) == -1; ++tried) {
    ASSERT_LE(tried, 8);
    FailAt(kNow, NotPrimary());
  }
}

TEST_F(GroupAttemptsTest, IsStartingAndNotUnreachableAsLongAsAMemberAnswers) {
  BreakAt(0);
  for (int64_t round = 0; round < 40; ++round) {
    const int64_t now_ns = kNow + round * kNsPerSecond;
    FailAt(now_ns, NobodyListens());
    FailAt(now_ns, NotPrimary());
    EXPECT_TRUE(group_.starting());
    FailAt(now_ns, NobodyListens());
    FailAt(now_ns, NobodyListens());
    EXPECT_TRUE(group_.starting());
    EXPECT_FALSE(group_.unreachable());
  }
}

TEST_F(GroupAttemptsTest, IsUnreachableIfAllAreSilentForSeveralLeases) {
  BreakAt(0);
  for (int i = 0; i < 8; ++i) FailAt(kNow, NobodyListens());
  EXPECT_FALSE(group_.unreachable());
  const int64_t later_ns = kNow + ConnectAttempts::kPatientLeases * kLease;
  for (int i = 0; i < 4; ++i) FailAt(later_ns, NobodyListens());
  EXPECT_TRUE(group_.unreachable());
  FailAt(later_ns, NotPrimary());
  EXPECT_FALSE(group_.unreachable()) << "one is there again";
}

TEST_F(GroupAttemptsTest, AGroupOfWhichNobodyAnswersAtFirstIsUnreachableAtOnce) {
  for (int i = 0; i < 4; ++i) FailAt(kNow, NobodyListens());
  EXPECT_TRUE(group_.unreachable());
}

TEST_F(GroupAttemptsTest, AttemptsLastALeaseAndGrowWithTheTimeSinceTheBreak) {
  constexpr int64_t kTimeout = 5 * kNsPerSecond;
  BreakAt(0);
  EXPECT_EQ(group_.AttemptNs(kNow, kTimeout), kLease);
  EXPECT_EQ(group_.AttemptNs(kNow, kLease / 2), kLease / 2);
  EXPECT_EQ(group_.AttemptNs(kNow + 8 * kLease, kTimeout), 2 * kLease);
  EXPECT_EQ(group_.AttemptNs(kNow + kNsPerSecond * 1000, kTimeout), kTimeout);
  for (int i = 0; i < 3; ++i) FailAt(kNow, NobodyListens());
  EXPECT_EQ(Next(group_), 0);
  EXPECT_LT(group_.AttemptNs(kNow, kTimeout), kLease) << "it may be stopped";
  FailAt(kNow + 100 * kNsPerSecond, NobodyListens());
  EXPECT_GE(group_.next_ns(), kNow + 101 * kNsPerSecond);
}

TEST_F(GroupAttemptsTest, AServerOfAListOfOneThatIsNotPrimaryIsLeftForThePrimary) {
  ConnectAttempts one = Of(1, /*reconnect=*/false);
  one.OnFailed(NotPrimary(5));
  one.ScheduleNext(kNow);
  EXPECT_EQ(Next(one), 5);
  EXPECT_EQ(one.next_ns(), kNow);
  EXPECT_TRUE(one.starting());
}

TEST_F(GroupAttemptsTest, EachReasonIsNewsOnce) {
  BreakAt(0);
  EXPECT_TRUE(group_.IsNews(RejectCode::kNotPrimary));
  FailAt(kNow, NotPrimary());
  EXPECT_FALSE(group_.IsNews(RejectCode::kNotPrimary));
  EXPECT_TRUE(group_.IsNews({}));
  FailAt(kNow, NobodyListens());
  EXPECT_FALSE(group_.IsNews({}));
  EXPECT_FALSE(group_.IsNews(RejectCode::kNotPrimary));
  group_.OnConnected(/*group=*/true, kNow);
  EXPECT_TRUE(group_.IsNews(RejectCode::kNotPrimary));
}

}  // namespace
}  // namespace gannet
