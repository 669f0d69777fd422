#include "server/sessions/session/session_table.h"

#include "absl/container/flat_hash_map.h"
#include "common/base/hash.h"
#include "gtest/gtest.h"
#include "tests/common/base/boot_at.h"

namespace gannet {
namespace {

constexpr int64_t kGrace = 30'000;

class MixedNumbers final : public RandomSource {
 public:
  uint64_t Next() override { return Mix64(++n_); }

 private:
  uint64_t n_ = 0;
} random_numbers;

class AwkwardNumbers final : public RandomSource {
 public:
  uint64_t Next() override {
    constexpr uint64_t kAwkward[] = {0, ~0ull, ~0ull - 1, 5, 5, 8};
    return kAwkward[n_++ % 6];
  }

 private:
  size_t n_ = 0;
};

SessionTable::Options TestOptions() {
  SessionTable::Options options;
  options.credits = 4;
  options.grace_ns = kGrace;
  options.random = &random_numbers;
  return options;
}

TEST(SessionTableTest, FindsASessionByItsTokenOnly) {
  SessionTable table(TestOptions());
  Session* session = table.Create(BootAt(0));
  ASSERT_NE(session, nullptr);
  EXPECT_NE(session->token(), 0u);
  EXPECT_EQ(table.Find(session->token()), session);
  EXPECT_EQ(table.Find(session->token() + 1), nullptr);
  EXPECT_EQ(table.Find(0), nullptr);
}

TEST(SessionTableTest, SessionOutlivesItsConnectionsForTheGracePeriod) {
  SessionTable table(TestOptions());
  Session* session = table.Create(BootAt(0));
  const uint64_t token = session->token();
  table.Attach(session);
  table.Attach(session);
  session->established = true;
  table.Detach(session, BootAt(1000));
  table.Expire(BootAt(1000 + kGrace));
  EXPECT_EQ(table.Find(token), session) << "it still has a connection";
  table.Detach(session, BootAt(2000));
  table.Expire(BootAt(2000 + kGrace - 1));
  EXPECT_EQ(table.Find(token), session);
  table.Expire(BootAt(2000 + kGrace));
  EXPECT_EQ(table.Find(token), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(SessionTableTest, SessionThatNoClientKnowsGoesWithItsConnection) {
  SessionTable table(TestOptions());
  Session* session = table.Create(BootAt(0));
  table.Attach(session);
  table.Detach(session, BootAt(0));
  EXPECT_EQ(table.size(), 0u);
}

TEST(SessionTableTest, ResumedSessionRemembersItsAnswers) {
  SessionTable table(TestOptions());
  Session* session = table.Create(BootAt(0));
  const uint64_t token = session->token();
  table.Attach(session);
  ReplyHeader reply{};
  ASSERT_EQ(session->Admit(1, &reply), Session::Admission::kExecute);
  reply.write.version = 42;
  session->RecordAnswer(1, reply);
  table.Detach(session, BootAt(10));
  table.Expire(BootAt(11));

  session = table.Find(token);
  ASSERT_NE(session, nullptr);
  table.Attach(session);
  ReplyHeader recorded{};
  EXPECT_EQ(session->Admit(1, &recorded), Session::Admission::kReplay);
  EXPECT_EQ(recorded.write.version, 42u);
}

// As that of a write that waits for the disk when its client dies.
TEST(SessionTableTest, AnAnswerMayComeWhenTheLastConnectionIsGone) {
  SessionTable table(TestOptions());
  Session* session = table.Create(BootAt(0));
  const uint64_t token = session->token();
  table.Attach(session);
  ReplyHeader answer{};
  ASSERT_EQ(session->Admit(1, &answer), Session::Admission::kExecute);
  table.Detach(session, BootAt(0));
  ASSERT_EQ(table.Find(token), session);
  EXPECT_EQ(session->Admit(1, &answer), Session::Admission::kInProgress);
  session->RecordAnswer(1, {.opcode = static_cast<uint8_t>(Opcode::kPut), .sequence = 1});
  table.Attach(session);
  EXPECT_EQ(session->Admit(1, &answer), Session::Admission::kReplay);
  EXPECT_EQ(answer.sequence, 1u);
}

TEST(SessionTableTest, FullTableDropsTheSessionThatIsGoneLongest) {
  SessionTable::Options options = TestOptions();
  options.sessions_max = 3;
  SessionTable table(options);
  const uint64_t connected = table.Create(BootAt(0))->token();
  table.Attach(table.Find(connected));
  const uint64_t oldest = table.Create(BootAt(1))->token();
  const uint64_t younger = table.Create(BootAt(2))->token();
  ASSERT_NE(table.Create(BootAt(3)), nullptr);
  EXPECT_NE(table.Find(connected), nullptr);
  EXPECT_EQ(table.Find(oldest), nullptr);
  EXPECT_NE(table.Find(younger), nullptr);
}

TEST(SessionTableTest, FullTableOfConnectedSessionsTakesNoMore) {
  SessionTable::Options options = TestOptions();
  options.sessions_max = 2;
  SessionTable table(options);
  table.Attach(table.Create(BootAt(0)));
  table.Attach(table.Create(BootAt(0)));
  EXPECT_EQ(table.Create(BootAt(0)), nullptr);
}

TEST(SessionTableTest, TokensRouteToTheirWorkerAndIdsAreUnique) {
  SessionTable::Options options = TestOptions();
  options.workers = 3;
  absl::flat_hash_map<uint32_t, uint64_t> ids;
  for (uint32_t worker = 0; worker < 3; ++worker) {
    options.worker = worker;
    SessionTable table(options);
    for (int i = 0; i < 100; ++i) {
      Session* session = table.Create(BootAt(0));
      EXPECT_EQ(SessionTable::WorkerOf(session->token(), 3), worker);
      EXPECT_TRUE(ids.emplace(session->id(), session->token()).second);
    }
  }
}

TEST(SessionTableTest, AwkwardRandomNumbersStillMakeGoodTokens) {
  SessionTable::Options options = TestOptions();
  options.workers = 3;
  options.worker = 2;
  AwkwardNumbers awkward;
  options.random = &awkward;
  SessionTable table(options);
  for (int i = 0; i < 2; ++i) {
    const uint64_t token = table.Create(BootAt(0))->token();
    EXPECT_NE(token, 0u);
    EXPECT_EQ(SessionTable::WorkerOf(token, 3), 2u);
  }
  EXPECT_EQ(table.size(), 2u);
}

}  // namespace
}  // namespace gannet
