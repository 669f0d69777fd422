#include "server/sessions/session/session.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "softverbs/tests/support/test_seed.h"

namespace gannet {
namespace {

using Admission = Session::Admission;

ReplyHeader AnswerTo(uint64_t sequence) {
  ReplyHeader reply{};
  reply.sequence = sequence;
  reply.write.version = sequence * 1000;
  return reply;
}

class SessionTest : public testing::Test {
 protected:
  static constexpr uint16_t kCredits = 4;

  void Answer(uint64_t sequence) {
    ReplyHeader unused;
    ASSERT_EQ(session_.Admit(sequence, &unused), Admission::kExecute) << sequence;
    session_.RecordAnswer(sequence, AnswerTo(sequence));
  }
  Admission Admit(uint64_t sequence) { return session_.Admit(sequence, &recorded_); }

  Session session_{7, 0xabc, kCredits};
  ReplyHeader recorded_{};
};

TEST_F(SessionTest, AnswersADuplicateFromTheRecord) {
  Answer(1);
  EXPECT_EQ(Admit(1), Admission::kReplay);
  EXPECT_EQ(recorded_.write.version, 1000u);
  EXPECT_EQ(Admit(1), Admission::kReplay) << "as often as it is asked";
}

TEST_F(SessionTest, RemembersWhatIsTheOwnOfEachKindOfAnswer) {
  const auto replayed = [this](uint64_t sequence, const ReplyHeader& reply) {
    EXPECT_EQ(Admit(sequence), Admission::kExecute);
    session_.RecordAnswer(sequence, reply);
    EXPECT_EQ(Admit(sequence), Admission::kReplay);
    EXPECT_EQ(recorded_.opcode, reply.opcode);
    EXPECT_EQ(recorded_.words, reply.words);
    return recorded_;
  };
  ReplyHeader reply{.opcode = static_cast<uint8_t>(Opcode::kIncrement)};
  reply.increment = {.version = 1, .slot = 2, .number = -3};
  EXPECT_EQ(replayed(1, reply).increment.number, -3);
  reply = {.opcode = static_cast<uint8_t>(Opcode::kFlush)};
  reply.flush = {.next = 4, .removed = 5};
  EXPECT_EQ(replayed(2, reply).flush.removed, 5u);
  reply = {.opcode = static_cast<uint8_t>(Opcode::kLock),
           .status = static_cast<uint8_t>(ReplyStatus::kLockHeld)};
  reply.lock.lock_word = 6;
  EXPECT_EQ(replayed(3, reply).lock.lock_word, 6u);
  reply = {.opcode = static_cast<uint8_t>(Opcode::kPut),
           .status = static_cast<uint8_t>(ReplyStatus::kLockLost)};
  reply.write = {.version = 7, .slot = 8, .lock_word = 9};
  EXPECT_EQ(replayed(4, reply).write.lock_word, 9u);
}

TEST_F(SessionTest, RemembersTheLastCreditsAnswers) {
  for (uint64_t n = 1; n <= 10; ++n) Answer(n);
  for (uint64_t n = 7; n <= 10; ++n) {
    EXPECT_EQ(Admit(n), Admission::kReplay) << n;
    EXPECT_EQ(recorded_.write.version, n * 1000);
  }
  for (uint64_t n = 1; n <= 6; ++n) EXPECT_EQ(Admit(n), Admission::kStale) << n;
}

TEST_F(SessionTest, NeverExecutesANumberThatFellOutOfTheWindow) {
  Answer(1);
  Answer(5);  // 1 is over for the client, 2 to 4 may still come
  EXPECT_EQ(Admit(1), Admission::kStale);
  EXPECT_EQ(Admit(2), Admission::kExecute);
}

TEST_F(SessionTest, ANumberWaitsForThoseBeforeItIfNoneIsLeftOut) {
  Answer(1);
  Answer(3);  // the client may give some up
  session_.aside = std::make_unique<RequestsAside>(kCredits);
  EXPECT_EQ(Admit(5), Admission::kTooEarly);
  EXPECT_EQ(Admit(7), Admission::kTooEarly);
  EXPECT_EQ(Admit(8), Admission::kOverrun) << "more than `credits` beyond the highest";
  EXPECT_EQ(Admit(std::numeric_limits<uint64_t>::max()), Admission::kOverrun);
  Answer(4);
  EXPECT_EQ(Admit(3), Admission::kReplay);
  Answer(5);
  EXPECT_EQ(Admit(8), Admission::kTooEarly);
  session_.aside.reset();
  Answer(8);
}

RequestsAside::Copy CopyBy(uint32_t connection, size_t bytes = 64) {
  return {.connection = connection, .message = std::vector<std::byte>(bytes)};
}

TEST(RequestsAsideTest, GivesThemBackInTheOrderOfTheirNumbers) {
  RequestsAside aside(4);
  for (const uint64_t number : {5, 3, 4})
    EXPECT_EQ(aside.Keep(number, CopyBy(number)), RequestsAside::Keeping::kDone);
  EXPECT_FALSE(aside.Take(2).has_value());
  EXPECT_EQ(aside.Take(4)->connection, 3u);
  EXPECT_EQ(aside.Take(4)->connection, 4u);
  EXPECT_FALSE(aside.Take(4).has_value());
  EXPECT_EQ(aside.Take(5)->connection, 5u);
  EXPECT_TRUE(aside.empty());
}

TEST(RequestsAsideTest, KeepsACopyForEachConnection) {
  RequestsAside aside(4);
  EXPECT_EQ(aside.Keep(3, CopyBy(7)), RequestsAside::Keeping::kDone);
  EXPECT_EQ(aside.Keep(3, CopyBy(6)), RequestsAside::Keeping::kDone);
  EXPECT_EQ(aside.Keep(3, CopyBy(7)), RequestsAside::Keeping::kTwice);
  EXPECT_EQ(aside.Keep(4, CopyBy(7)), RequestsAside::Keeping::kDone);
  aside.DropThoseOf(7);
  EXPECT_EQ(aside.size(), 1u);
  EXPECT_EQ(aside.Take(3)->connection, 6u);
}

TEST(RequestsAsideTest, HasABoundOfCopiesAndOfBytes) {
  RequestsAside aside(4);
  uint32_t kept = 0;
  while (kept < 100 && aside.Keep(2, CopyBy(kept)) == RequestsAside::Keeping::kDone) ++kept;
  EXPECT_EQ(kept, 8u);
  aside.DropThoseOf(0);
  for (uint32_t i = 1; i < 8; ++i) aside.DropThoseOf(i);
  for (kept = 0; kept < 100; ++kept) {
    if (aside.Keep(2, CopyBy(kept, kMessageBytesMax)) != RequestsAside::Keeping::kDone) break;
  }
  EXPECT_EQ(kept, 4u);
  EXPECT_TRUE(aside.Take(2).has_value());
  EXPECT_EQ(aside.Keep(2, CopyBy(99, kMessageBytesMax)), RequestsAside::Keeping::kDone);
}

TEST(RequestsAsideTest, SaysSinceWhenAConnectionsWait) {
  RequestsAside aside(4);
  EXPECT_EQ(aside.WaitsSince(7), BootTime::Never());
  const BootTime began, later = began + 5;
  for (const auto& [number, since] : {std::pair{3, later}, std::pair{4, began}}) {
    RequestsAside::Copy copy = CopyBy(7);
    copy.since = since;
    aside.Keep(number, std::move(copy));
  }
  EXPECT_EQ(aside.WaitsSince(7), began);
  EXPECT_EQ(aside.WaitsSince(6), BootTime::Never());
}

TEST_F(SessionTest, RemembersTheAnswerOfTheNextRequest) {
  EXPECT_FALSE(session_.IsNext(0));
  EXPECT_FALSE(session_.IsNext(2));
  for (uint64_t n = 1; n <= 10; ++n) {
    ASSERT_TRUE(session_.IsNext(n)) << n;
    ASSERT_EQ(session_.AnswerNext(Opcode::kPut, n * 1000, n * 7), n);
    ASSERT_FALSE(session_.IsNext(n)) << n;
  }
  EXPECT_EQ(Admit(6), Admission::kStale);
  ASSERT_EQ(Admit(7), Admission::kReplay);
  EXPECT_EQ(recorded_.opcode, static_cast<uint8_t>(Opcode::kPut));
  EXPECT_EQ(recorded_.status, static_cast<uint8_t>(ReplyStatus::kOk));
  EXPECT_EQ(recorded_.sequence, 7u);
  EXPECT_EQ(recorded_.write.version, 7000u);
  EXPECT_EQ(recorded_.write.slot, 49u);
  EXPECT_EQ(recorded_.write.lock_word, 0u);
}

TEST_F(SessionTest, NoRequestIsJustTheNextWhileOneIsInProgress) {
  ASSERT_EQ(Admit(1), Admission::kExecute);
  EXPECT_FALSE(session_.IsNext(2));
  session_.RecordAnswer(1, AnswerTo(1));
  EXPECT_TRUE(session_.IsNext(2));
}

TEST_F(SessionTest, TellsADuplicateOfARequestInProgress) {
  EXPECT_EQ(Admit(1), Admission::kExecute);
  EXPECT_EQ(Admit(1), Admission::kInProgress);
  EXPECT_EQ(session_.in_progress(), 1u);
  session_.RecordAnswer(1, AnswerTo(1));
  EXPECT_EQ(Admit(1), Admission::kReplay);
  EXPECT_EQ(session_.in_progress(), 0u);
}

TEST_F(SessionTest, ExecutesAForgottenRequestAgain) {
  EXPECT_EQ(Admit(1), Admission::kExecute);
  session_.Forget(1);
  EXPECT_EQ(Admit(1), Admission::kExecute);
}

TEST_F(SessionTest, ExecutesRepeatableRequestsAgain) {
  EXPECT_EQ(Admit(1), Admission::kExecute);
  session_.RecordRepeatable(1);
  EXPECT_EQ(Admit(1), Admission::kExecute);
}

TEST_F(SessionTest, AcceptsNumbersInAnyOrderWithinTheWindow) {
  Answer(4);
  Answer(2);
  Answer(3);
  Answer(1);
  for (uint64_t n = 1; n <= 4; ++n) EXPECT_EQ(Admit(n), Admission::kReplay) << n;
}

TEST_F(SessionTest, RefusesMoreThanCreditsUnanswered) {
  for (uint64_t n = 1; n <= kCredits; ++n) EXPECT_EQ(Admit(n), Admission::kExecute);
  EXPECT_EQ(Admit(5), Admission::kOverrun);
  session_.RecordAnswer(2, AnswerTo(2));
  EXPECT_EQ(Admit(5), Admission::kOverrun) << "1 is still in progress";
  session_.RecordAnswer(1, AnswerTo(1));
  EXPECT_EQ(Admit(5), Admission::kExecute);
  EXPECT_EQ(Admit(2), Admission::kReplay) << "the refused one moved no window";
}

TEST_F(SessionTest, SaysWhatKeepsANumberOut) {
  for (uint64_t n = 1; n <= kCredits; ++n) Admit(n);
  session_.RecordAnswer(2, AnswerTo(2));
  using Numbers = std::vector<uint64_t>;
  EXPECT_EQ(session_.InTheWayOf(4), Numbers{});
  EXPECT_EQ(session_.InTheWayOf(5), Numbers{1});
  EXPECT_EQ(session_.InTheWayOf(7), (Numbers{1, 3}));
  EXPECT_EQ(session_.InTheWayOf(kCredits + Session::kSequenceJumpMax + 1), Numbers{});
  session_.Forget(1);
  EXPECT_EQ(Admit(5), Admission::kExecute);
}

TEST_F(SessionTest, ToleratesSkippedNumbersUpToABound) {
  Answer(1);
  Answer(1 + Session::kSequenceJumpMax);
  EXPECT_EQ(Admit(2 + 2 * Session::kSequenceJumpMax), Admission::kOverrun);
}

TEST_F(SessionTest, RefusesHostileNumbers) {
  constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(Admit(0), Admission::kStale);
  EXPECT_EQ(Admit(kTop), Admission::kOverrun);
  EXPECT_EQ(Admit(kTop - 1), Admission::kOverrun);
  Answer(1);
  EXPECT_EQ(Admit(kTop), Admission::kOverrun);
  EXPECT_EQ(Admit(1), Admission::kReplay);
}

TEST(SessionMemoryTest, StaysWithinItsBudget) {
  const Session session(1, 1, kCreditsDefault);
  EXPECT_LE(session.MemoryBytes(), 8u * 1024);
}

// A client that resends at random, on a server that forgets at random, against the rule itself: a
// request whose answer was recorded is never executed again.
TEST(SessionRandomTest, NeverExecutesAnAnsweredRequestTwice) {
  std::mt19937 random(static_cast<uint32_t>(test_support::TestSeed()));
  constexpr uint16_t kCredits = 8;
  Session session(1, 1, kCredits);
  std::map<uint64_t, uint64_t> answers;  // by sequence, the version told
  uint64_t oldest = 1;                   // unanswered by the client's own account
  for (uint64_t step = 1; step < 100'000; ++step) {
    const uint64_t sequence = oldest + random() % kCredits;
    ReplyHeader reply{};
    if (session.IsNext(sequence) && random() % 2 == 0) {
      ASSERT_FALSE(answers.contains(sequence)) << sequence;
      ASSERT_EQ(session.AnswerNext(Opcode::kPut, step, 0), sequence);
      answers[sequence] = step;
      while (answers.contains(oldest)) ++oldest;
      continue;
    }
    switch (session.Admit(sequence, &reply)) {
      case Admission::kExecute:
        ASSERT_FALSE(answers.contains(sequence)) << sequence;
        if (random() % 4 == 0) {
          session.Forget(sequence);
        } else {
          reply = AnswerTo(sequence);
          reply.write.version = step;
          session.RecordAnswer(sequence, reply);
          answers[sequence] = step;
        }
        break;
      case Admission::kReplay:
        ASSERT_EQ(answers.at(sequence), reply.write.version);
        break;
      default:
        FAIL() << "a well-behaved client was refused at " << sequence;
    }
    while (answers.contains(oldest)) ++oldest;
  }
  EXPECT_GT(oldest, 1000u);
}

}  // namespace
}  // namespace gannet
