// What the stream of a group hears of sessions, and how the next primary has them.

#include "server/sessions/session/session_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "server/log/changes/change_stream.h"
#include "server/sessions/session/session_copies.h"
#include "server/sessions/session/session_table.h"
#include "tests/common/base/boot_at.h"

namespace gannet {
namespace {

using Admission = Session::Admission;
using ::testing::ElementsAre;

constexpr int64_t kGraceNs = 1'000;

// A backup: it has what the stream tells.
class Backup : public ChangeConsumer {
 public:
  bool Take(const Change& change, ChangePlace*) override {
    copies.Take(change);
    return true;
  }
  void TakeSession(const SessionRecord& record) override {
    constexpr const char* kNames[] = {"begun", "ended", "answers"};
    heard.push_back(kNames[static_cast<size_t>(record.kind)]);
    copies.Take(record);
  }

  SessionCopies copies;
  std::vector<std::string> heard;
};

class SessionStreamTest : public testing::Test, private RandomSource {
 protected:
  void SetUp() override { changes_.Add(&backup_, ChangeStream::Need::kHears); }

  SessionTable::Options Options(bool primary = true) {
    return {.credits = 4,
            .grace_ns = kGraceNs,
            .worker = 1,
            .workers = 3,
            .sessions_max = 2,
            .random = this,
            .stream = primary ? &stream_ : nullptr};
  }
  uint64_t Next() override { return Mix64(++random_); }
  SessionCopy Copy() { return backup_.copies.All().at(0); }

  uint64_t random_ = 0;
  Backup backup_;
  ChangeStream changes_;
  SessionStream stream_{&changes_};
};

ReplyHeader ReplyOf(Opcode opcode, ReplyStatus status, uint64_t sequence) {
  ReplyHeader reply{};
  reply.opcode = static_cast<uint8_t>(opcode);
  reply.status = static_cast<uint8_t>(status);
  reply.sequence = sequence;
  reply.words = {11, 12, 13, 0, 0, 0};
  return reply;
}

TEST_F(SessionStreamTest, HearsOfEachBeginningAndEnd) {
  SessionTable table(Options());
  const auto key = std::make_shared<SessionKey>(AuthKey{.id = 9, .read_only = true});
  Session* const first = table.Create(BootAt(0), key);
  EXPECT_THAT(backup_.heard, ElementsAre("begun"));
  EXPECT_EQ(Copy().token, first->token());
  EXPECT_EQ(Copy().id, first->id());
  EXPECT_EQ(Copy().key_id, 9u);
  EXPECT_TRUE(Copy().read_only);
  EXPECT_EQ(Copy().credits, 4u);
  table.Attach(first);
  table.Detach(first, BootAt(0));  // no client can know of it
  EXPECT_EQ(table.size(), 0u);
  EXPECT_THAT(backup_.heard, ElementsAre("begun", "ended"));
  table.Create(BootAt(0));
  table.Create(BootAt(1));
  table.Create(BootAt(2));  // takes the place of the oldest
  EXPECT_EQ(backup_.copies.size(), 2u);
  table.Expire(BootAt(2 + kGraceNs));
  EXPECT_EQ(backup_.copies.size(), 0u);
}

TEST_F(SessionStreamTest, HearsOfAnswersThatAnotherServerCanGive) {
  SessionTable table(Options());
  const uint64_t token = table.Create(BootAt(0))->token();
  stream_.Answered(token, ReplyOf(Opcode::kGet, ReplyStatus::kNotFound, 1));
  stream_.Answered(token, ReplyOf(Opcode::kLock, ReplyStatus::kOk, 1));
  stream_.Answered(token, ReplyOf(Opcode::kUnlock, ReplyStatus::kOk, 1));
  stream_.Answered(token, ReplyOf(Opcode::kPut, ReplyStatus::kTryAgain, 1));
  EXPECT_THAT(backup_.heard, ElementsAre("begun"));
  stream_.Answered(token, ReplyOf(Opcode::kPut, ReplyStatus::kExists, 1));
  stream_.Answered(token, ReplyOf(Opcode::kIncrement, ReplyStatus::kNotANumber, 2));
  stream_.Answered(token, ReplyOf(Opcode::kFlush, ReplyStatus::kOk, 3));
  EXPECT_THAT(backup_.heard, ElementsAre("begun", "answers", "answers", "answers"));
  const auto answers = Copy().answers;
  ASSERT_EQ(answers.size(), 3u);
  using Words = ReplyHeader::AnswerWords;
  EXPECT_EQ(answers[0].words, (Words{11, 0, 13})) << "a place in the primary's memory";
  EXPECT_EQ(answers[1].words, (Words{11, 0, 13})) << "the same";
  EXPECT_EQ(answers[2].words, (Words{11, 12, 13})) << "the number of removed items";
  EXPECT_EQ(answers[0].status, static_cast<uint8_t>(ReplyStatus::kExists));
}

TEST_F(SessionStreamTest, TheNextPrimaryGivesTheSameAnswers) {
  SessionTable old_table(Options());
  const Session* const old = old_table.Create(BootAt(0));
  changes_.Record({.version = 50,
                   .key = "key",
                   .value = "value",
                   .session_token = old->token(),
                   .sequence = 1,
                   .opcode = static_cast<uint8_t>(Opcode::kPut)});
  stream_.Answered(old->token(), ReplyOf(Opcode::kDelete, ReplyStatus::kNotFound, 3));

  SessionTable table(Options());
  ASSERT_TRUE(table.Adopt(Copy(), BootAt(5'000)));
  EXPECT_THAT(backup_.heard, ElementsAre("begun", "answers")) << "it began before";
  Session* const session = table.Find(old->token());
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->id(), old->id());
  EXPECT_EQ(session->highest(), 3u);
  ReplyHeader reply{};
  EXPECT_EQ(session->Admit(1, &reply), Admission::kReplay);
  EXPECT_EQ(reply.status, static_cast<uint8_t>(ReplyStatus::kOk));
  EXPECT_EQ(reply.write.version, 50u);
  EXPECT_EQ(reply.write.slot, 0u) << "unknown";
  EXPECT_EQ(session->Admit(2, &reply), Admission::kExecute) << "nobody told of it";
  session->RecordRepeatable(2);
  EXPECT_EQ(session->Admit(3, &reply), Admission::kReplay);
  EXPECT_EQ(reply.status, static_cast<uint8_t>(ReplyStatus::kNotFound));
  EXPECT_EQ(session->Admit(4, &reply), Admission::kExecute);
}

TEST_F(SessionStreamTest, AnAdoptedSessionHasItsGracePeriod) {
  SessionTable old_table(Options());
  const uint64_t token = old_table.Create(BootAt(0))->token();
  SessionTable table(Options());
  ASSERT_TRUE(table.Adopt(Copy(), BootAt(5'000)));
  EXPECT_EQ(table.next_expiry(), BootAt(5'000 + kGraceNs));
  Session* const session = table.Find(token);
  table.Attach(session);
  table.Detach(session, BootAt(6'000));
  EXPECT_EQ(table.Find(token), session) << "its client knows of it";
  const size_t bytes = table.MemoryBytes();
  table.Expire(BootAt(6'000 + kGraceNs));
  EXPECT_EQ(table.size(), 0u);
  EXPECT_LT(table.MemoryBytes(), bytes);
  EXPECT_EQ(backup_.heard.back(), "ended");
}

// The former primary answered any number of reads, of which the stream knows nothing.
TEST_F(SessionStreamTest, TheFirstNumberAfterAnAdoptionMaySkipAnyNumberOfReads) {
  SessionTable old_table(Options());
  const uint64_t token = old_table.Create(BootAt(0))->token();
  SessionTable table(Options());
  ASSERT_TRUE(table.Adopt(Copy(), BootAt(0)));
  Session* const session = table.Find(token);
  ReplyHeader reply{};
  const uint64_t far = 10 * Session::kSequenceJumpMax;
  EXPECT_EQ(session->Admit(far, &reply), Admission::kExecute);
  EXPECT_EQ(session->Admit(far - 2, &reply), Admission::kExecute) << "sent again behind it";
  EXPECT_EQ(session->Admit(far - 4, &reply), Admission::kStale);
  session->RecordRepeatable(far);
  session->RecordRepeatable(far - 2);
  EXPECT_EQ(session->Admit(far + Session::kSequenceJumpMax + 1, &reply), Admission::kOverrun);
  EXPECT_EQ(session->Admit(far + 1, &reply), Admission::kExecute);
}

TEST_F(SessionStreamTest, AnAdoptedSessionTakesItsKeyByTheId) {
  const auto key = [](uint32_t id, bool read_only) {
    return std::make_shared<const SessionKey>(AuthKey{.id = id, .read_only = read_only});
  };
  SessionTable old_table(Options());
  const uint64_t token = old_table.Create(BootAt(0), key(9, true))->token();
  SessionTable table(Options());
  ASSERT_TRUE(table.Adopt(Copy(), BootAt(0)));
  Session* const session = table.Find(token);
  EXPECT_FALSE(session->TakesKey(nullptr));
  EXPECT_FALSE(session->TakesKey(key(8, true)));
  EXPECT_FALSE(session->TakesKey(key(9, false))) << "other rights";
  const auto own = key(9, true);
  EXPECT_TRUE(session->TakesKey(own));
  EXPECT_TRUE(session->read_only());
  EXPECT_FALSE(session->TakesKey(key(9, true))) << "from now on it is this one";
  EXPECT_TRUE(session->TakesKey(own));
}

TEST_F(SessionStreamTest, AnAdoptedSessionWithoutAKeyTakesNone) {
  SessionTable old_table(Options());
  const uint64_t token = old_table.Create(BootAt(0))->token();
  SessionTable table(Options());
  ASSERT_TRUE(table.Adopt(Copy(), BootAt(0)));
  Session* const session = table.Find(token);
  EXPECT_FALSE(session->TakesKey(std::make_shared<const SessionKey>(AuthKey{.id = 9})));
  EXPECT_TRUE(session->TakesKey(nullptr));
}

TEST_F(SessionStreamTest, OnlyWhatCanBeServedIsAdopted) {
  SessionTable old_table(Options());
  old_table.Create(BootAt(0));
  const SessionCopy good = Copy();
  SessionTable table(Options());
  SessionCopy bad = good;
  bad.token = good.token + 1;
  EXPECT_FALSE(table.Adopt(bad, BootAt(0))) << "another worker's";
  bad = good;
  bad.credits = 5;
  EXPECT_FALSE(table.Adopt(bad, BootAt(0)));
  bad = good;
  bad.token = 0;
  EXPECT_FALSE(table.Adopt(bad, BootAt(0)));
  EXPECT_TRUE(table.Adopt(good, BootAt(0)));
  EXPECT_FALSE(table.Adopt(good, BootAt(0))) << "it is there";
  SessionCopy next = good;
  next.token += 3;
  next.id = 1 + 1 + 3 * 41;  // the 41st after the first
  EXPECT_TRUE(table.Adopt(next, BootAt(0)));
  next.token += 3;
  EXPECT_FALSE(table.Adopt(next, BootAt(0))) << "there are two already";
  EXPECT_EQ(table.size(), 2u);
  // The ids go on behind all that were given.
  EXPECT_EQ(table.Create(BootAt(1))->id(), next.id + 3);
}

}  // namespace
}  // namespace gannet
