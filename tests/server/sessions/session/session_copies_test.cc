// What a backup knows of the sessions of its group.

#include "server/sessions/session/session_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "server/sessions/session/session_updates.h"
#include "softverbs/tests/support/test_seed.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint8_t Code(Opcode opcode) { return static_cast<uint8_t>(opcode); }
constexpr uint8_t Code(ReplyStatus status) { return static_cast<uint8_t>(status); }

SessionRecord Begun(uint64_t token, uint16_t credits = 4) {
  return {.kind = SessionRecord::Kind::kBegun,
          .token = token,
          .id = static_cast<uint32_t>(token + 100),
          .key_id = 3,
          .credits = credits,
          .read_only = true,
          .answers = {}};
}

Change PutBy(uint64_t token, uint64_t sequence, uint64_t version, Opcode opcode = Opcode::kPut) {
  return {.version = version,
          .key = "key",
          .value = "value",
          .session_token = token,
          .sequence = sequence,
          .opcode = Code(opcode)};
}

SessionAnswer AnswerTo(uint64_t sequence, ReplyStatus status) {
  return {.sequence = sequence,
          .words = {1, 0, 2},
          .opcode = Code(Opcode::kDelete),
          .status = Code(status),
          .zero = {}};
}

void TakeAnswer(SessionCopies* copies, uint64_t token, uint64_t sequence, ReplyStatus status,
                uint64_t undone_by = 0) {
  const SessionAnswer answer = AnswerTo(sequence, status);
  copies->Take(SessionRecord::Answers(token, std::span(&answer, 1), undone_by));
}

// The answers of a session as "number:status:version".
std::vector<std::string> AnswersOf(const SessionCopies& copies, uint64_t token) {
  std::vector<std::string> texts;
  for (const SessionCopy& copy : copies.All()) {
    if (copy.token != token) continue;
    for (const SessionAnswer& answer : copy.answers) {
      texts.push_back(std::to_string(answer.sequence) + ":" + std::to_string(answer.status) + ":" +
                      std::to_string(answer.words[0]));
    }
  }
  return texts;
}

TEST(SessionCopiesTest, ASessionIsAsItBegan) {
  SessionCopies copies;
  copies.Take(Begun(7));
  const auto all = copies.All();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].token, 7u);
  EXPECT_EQ(all[0].id, 107u);
  EXPECT_EQ(all[0].key_id, 3u);
  EXPECT_EQ(all[0].credits, 4u);
  EXPECT_TRUE(all[0].read_only);
  EXPECT_THAT(all[0].answers, IsEmpty());
}

TEST(SessionCopiesTest, AChangeIsTheAnswerToItsRequest) {
  SessionCopies copies;
  copies.Take(Begun(7, 8));
  copies.Take(PutBy(7, 1, 50));
  Change sum = PutBy(7, 2, 51, Opcode::kIncrement);
  sum.number = 42;
  copies.Take(sum);
  Change append = PutBy(7, 3, 52, Opcode::kAppend);
  append.number = 42;  // means nothing here
  copies.Take(append);
  Change deletion = PutBy(7, 4, 53, Opcode::kDelete);
  deletion.kind = Change::Kind::kDelete;
  copies.Take(deletion);
  const auto answers = copies.All().at(0).answers;
  ASSERT_EQ(answers.size(), 4u);
  using Words = ReplyHeader::AnswerWords;
  EXPECT_EQ(answers[0].words, (Words{50, 0, 0}));
  EXPECT_EQ(answers[1].words, (Words{51, 0, 42}));
  EXPECT_EQ(answers[2].words, (Words{52, 0, 0}));
  EXPECT_EQ(answers[3].words, (Words{0, 0, 0})) << "the item is gone";
  EXPECT_EQ(answers[3].opcode, Code(Opcode::kDelete));
  for (const SessionAnswer& answer : answers) EXPECT_EQ(answer.status, Code(ReplyStatus::kOk));
}

TEST(SessionCopiesTest, WhatNobodyAnnouncedIsUnknown) {
  SessionCopies copies;
  copies.Take(PutBy(7, 1, 50));
  copies.Take(PutBy(0, 0, 51));
  TakeAnswer(&copies, 7, 2, ReplyStatus::kNotFound);
  EXPECT_EQ(copies.size(), 0u);
}

TEST(SessionCopiesTest, RemembersAsManyAnswersAsASession) {
  SessionCopies copies;
  copies.Take(Begun(7, 3));
  for (uint64_t n = 1; n <= 6; ++n) copies.Take(PutBy(7, n, 50 + n));
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("4:0:54", "5:0:55", "6:0:56"));
  copies.Take(PutBy(7, 3, 99));  // below the window: the client is done with it
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("4:0:54", "5:0:55", "6:0:56"));
  copies.Take(PutBy(7, 1'000'000'000, 60));  // reads came between
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("1000000000:0:60"));
  copies.Take(PutBy(7, 999'999'998, 61));
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("999999998:0:61", "1000000000:0:60"));
}

TEST(SessionCopiesTest, NoNumberMakesItForgetAnother) {
  SessionCopies copies;
  copies.Take(Begun(7));
  copies.Take(PutBy(7, 1, 50));
  copies.Take(PutBy(7, 0, 51));
  copies.Take(PutBy(7, 2, 52, Opcode::kGet));  // nobody records such a change
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("1:0:50"));
  copies.Take(PutBy(7, UINT64_MAX, 53));  // nor such a number
  copies.Take(PutBy(7, 2, 54));
  EXPECT_LE(copies.All().at(0).answers.size(), 4u);
}

TEST(SessionCopiesTest, TheLastAnswerCounts) {
  SessionCopies copies;
  copies.Take(Begun(7));
  TakeAnswer(&copies, 7, 1, ReplyStatus::kNotFound);
  TakeAnswer(&copies, 7, 2, ReplyStatus::kExists);
  copies.Take(PutBy(7, 2, 50));
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("1:1:1", "2:0:50"));
  TakeAnswer(&copies, 7, 1, ReplyStatus::kTryAgain);
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("2:0:50")) << "it is to be executed again";
}

TEST(SessionCopiesTest, AnUndoCountsFromItsDeletionOn) {
  SessionCopies copies;
  copies.Take(Begun(7));
  copies.Take(Begun(8));
  copies.Take(PutBy(7, 1, 50));
  copies.Take(PutBy(8, 2, 51));
  TakeAnswer(&copies, 7, 1, ReplyStatus::kIndexFull, 60);
  TakeAnswer(&copies, 8, 2, ReplyStatus::kTryAgain, 60);
  TakeAnswer(&copies, 9, 3, ReplyStatus::kIndexFull, 60);
  copies.Take(PutBy(8, 3, 52));
  copies.Take({.kind = Change::Kind::kDelete, .version = 59, .key = "other"});
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("1:0:50"));
  EXPECT_THAT(AnswersOf(copies, 8), ElementsAre("2:0:51", "3:0:52"));
  copies.Take({.kind = Change::Kind::kDelete, .version = 60, .key = "key"});
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("1:12:1"));
  EXPECT_THAT(AnswersOf(copies, 8), ElementsAre("3:0:52"));
}

TEST(SessionCopiesTest, AnUndoWithoutItsDeletionDoesNotCount) {
  SessionCopies copies;
  copies.Take(Begun(7));
  copies.Take(PutBy(7, 1, 50));
  TakeAnswer(&copies, 7, 1, ReplyStatus::kIndexFull, 60);
  copies.ForgetUndone();  // the primary died in between
  copies.Take({.kind = Change::Kind::kDelete, .version = 60, .key = "key"});
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("1:0:50"));
  TakeAnswer(&copies, 7, 1, ReplyStatus::kIndexFull, 70);  // the disk refused the deletion
  TakeAnswer(&copies, 7, 1, ReplyStatus::kTryAgain, 71);
  copies.Take({.kind = Change::Kind::kDelete, .version = 70, .key = "key"});
  EXPECT_THAT(AnswersOf(copies, 7), ElementsAre("1:0:50"));
  copies.Take({.kind = Change::Kind::kDelete, .version = 71, .key = "key"});
  EXPECT_THAT(AnswersOf(copies, 7), IsEmpty());
}

TEST(SessionCopiesTest, AnEndedSessionDoesNotComeBack) {
  SessionCopies copies;
  copies.Take(Begun(7));
  copies.Take(PutBy(7, 1, 50));
  TakeAnswer(&copies, 7, 1, ReplyStatus::kIndexFull, 60);
  copies.Take(SessionRecord::Ended(7));
  copies.Take({.kind = Change::Kind::kDelete, .version = 60, .key = "key"});
  TakeAnswer(&copies, 7, 2, ReplyStatus::kNotFound);
  copies.Take(PutBy(7, 3, 51));
  EXPECT_EQ(copies.size(), 0u);
  copies.Take(SessionRecord::Ended(7));
  EXPECT_EQ(copies.size(), 0u);
}

class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : random_(seed) {}

  // Gives the next record to all of them.
  void Next(std::span<SessionCopies* const> all) {
    const uint64_t token = 1 + Below(5);
    const uint64_t sequence = (numbers_[token] += Below(3)) + Below(2);
    switch (Below(10)) {
      case 0:
        for (SessionCopies* copies : all) copies->Take(Begun(token, static_cast<uint16_t>(token)));
        return;
      case 1:
        if (Below(4) != 0) return;
        for (SessionCopies* copies : all) copies->Take(SessionRecord::Ended(token));
        return;
      case 2:
      case 3:
        for (SessionCopies* copies : all) TakeAnswer(copies, token, sequence, ReplyStatus::kExists);
        return;
      case 4:
        ++undo_;
        for (SessionCopies* copies : all) {
          TakeAnswer(copies, token, sequence,
                     undo_ % 2 == 0 ? ReplyStatus::kIndexFull : ReplyStatus::kTryAgain, undo_ / 2);
        }
        return;
      case 5:
        for (SessionCopies* copies : all) {
          copies->Take({.kind = Change::Kind::kDelete, .version = undo_ / 2, .key = "key"});
        }
        return;
      default:
        ++version_;
        for (SessionCopies* copies : all) copies->Take(PutBy(token, sequence, version_));
    }
  }
  uint64_t Below(uint64_t n) { return random_() % n; }

 private:
  std::mt19937_64 random_;
  uint64_t numbers_[6] = {};
  uint64_t version_ = 1'000;
  uint64_t undo_ = 2;
};

std::vector<std::string> Texts(const SessionCopies& copies) {
  std::vector<std::string> texts;
  for (uint64_t token = 1; token <= 5; ++token) {
    for (const std::string& text : AnswersOf(copies, token)) {
      texts.push_back(std::to_string(token) + " " + text);
    }
  }
  return texts;
}

// The records that tell a joiner of a session go to all backups, in several pieces, and between
// those the stream goes on. All have the same in the end, as has one that joins later.
TEST(SessionCopiesTest, AJoinerHasWhatTheOthersHave) {
  const uint64_t first = test_support::TestSeed();
  size_t remembered = 0;
  for (uint64_t seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream stream(seed);
    SessionCopies primary, backup, joiner, later;
    const std::vector<SessionCopies*> old = {&primary, &backup};
    const std::vector<SessionCopies*> all = {&primary, &backup, &joiner};
    for (uint64_t n = stream.Below(100); n > 0; --n) stream.Next(old);
    const auto to_all = [&all](const SessionRecord& record) {
      for (SessionCopies* copies : all) copies->Take(record);
    };
    const std::vector<uint64_t> tokens = primary.Tokens();
    const SessionCopies at_first = primary;
    at_first.RecordsOfUndone(to_all);
    for (const uint64_t token : tokens) {
      for (uint64_t n = stream.Below(4); n > 0; --n) stream.Next(all);
      const SessionCopies now = primary;
      now.RecordsOf(token, to_all);
    }
    for (uint64_t n = stream.Below(100); n > 0; --n) stream.Next(all);
    EXPECT_EQ(Texts(backup), Texts(primary));
    EXPECT_EQ(Texts(joiner), Texts(primary));
    EXPECT_EQ(joiner.size(), primary.size());
    primary.ForEachRecord([&later](const SessionRecord& record) { later.Take(record); });
    const std::vector<SessionCopies*> both = {&primary, &later};
    for (uint64_t n = stream.Below(10); n > 0; --n) stream.Next(both);
    EXPECT_EQ(Texts(later), Texts(primary));
    remembered += Texts(primary).size();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(remembered, 300u);
}

// Many updates at once, of sessions that are known and of others, with numbers in order, twice, far
// ahead, and over.
TEST(SessionCopiesTest, ManyUpdatesAreTakenAsChangesAre) {
  const uint64_t first = test_support::TestSeed();
  size_t remembered = 0;
  for (uint64_t seed = first; seed < first + 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto below = [&random](uint64_t n) { return random() % n; };
    SessionCopies one_by_one, many;
    for (const uint64_t token : {1, 2, 3, 4}) {
      one_by_one.Take(Begun(token, static_cast<uint16_t>(token)));
      many.Take(Begun(token, static_cast<uint16_t>(token)));
    }
    uint64_t version = 100;
    uint64_t numbers[6] = {};
    for (uint64_t batches = below(6); batches > 0; --batches) {
      SessionCopies::Updates updates(&many);
      uint64_t token = below(6);  // 0: of no session; 5: nobody knows it
      for (uint64_t n = below(30); n > 0; --n) {
        if (below(4) == 0) token = below(6);
        const uint64_t behind = below(8) == 0 ? std::min(numbers[token], below(6)) : 0;
        const uint64_t sequence = (numbers[token] += below(20) == 0 ? below(9) : 1) - behind;
        one_by_one.Take(PutBy(token, sequence, ++version));
        updates.Take(token, sequence, version);
        if (below(10) == 0) {
          updates.Flush();
          TakeAnswer(&one_by_one, token, sequence, ReplyStatus::kExists);
          TakeAnswer(&many, token, sequence, ReplyStatus::kExists);
        }
      }
    }
    EXPECT_EQ(Texts(many), Texts(one_by_one));
    remembered += Texts(many).size();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(remembered, 300u);
}

// Of a primary that takes over with fewer members than its group wants.
TEST(SessionCopiesTest, ADoubtedAnswerSaysThatTheOutcomeIsUnknown) {
  SessionCopies sessions;
  sessions.Take(Begun(7, 4));
  sessions.Take(PutBy(7, 1, 100));
  TakeAnswer(&sessions, 7, 2, ReplyStatus::kExists);
  std::vector<SessionCopy> copies = sessions.All();
  DoubtAnswers(&copies);
  ASSERT_EQ(copies.size(), 1u);
  ASSERT_EQ(copies[0].answers.size(), 2u);
  EXPECT_EQ(copies[0].answers[0].status, static_cast<uint8_t>(ReplyStatus::kOutcomeUnknown));
  EXPECT_EQ(copies[0].answers[0].words, ReplyHeader::AnswerWords{});
  EXPECT_EQ(copies[0].answers[1].status, static_cast<uint8_t>(ReplyStatus::kExists));
}

}  // namespace
}  // namespace gannet
