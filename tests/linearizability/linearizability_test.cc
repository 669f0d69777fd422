#include "tests/linearizability/linearizability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "softverbs/tests/support/test_seed.h"

namespace gannet::linearizability {
namespace {

using History = std::vector<Operation>;

Operation Get(uint32_t client, uint64_t value, int64_t from, int64_t to) {
  return {.client = client,
          .kind = Kind::kGet,
          .value = value,
          .found = value != kAbsent,
          .invoke_ns = from,
          .respond_ns = to};
}
Operation Put(uint32_t client, uint64_t value, int64_t from, int64_t to) {
  return {
      .client = client, .kind = Kind::kPut, .value = value, .invoke_ns = from, .respond_ns = to};
}
Operation Replace(uint32_t client, uint64_t value, Outcome outcome, int64_t from, int64_t to) {
  return {.client = client,
          .kind = Kind::kReplace,
          .value = value,
          .invoke_ns = from,
          .respond_ns = to,
          .outcome = outcome};
}
Operation Delete(uint32_t client, bool found, int64_t from, int64_t to) {
  return {
      .client = client, .kind = Kind::kDelete, .found = found, .invoke_ns = from, .respond_ns = to};
}
Operation Cas(uint32_t client, uint64_t expected, uint64_t value, Outcome outcome, int64_t from,
              int64_t to) {
  return {.client = client,
          .kind = Kind::kCompareAndSet,
          .value = value,
          .expected = expected,
          .invoke_ns = from,
          .respond_ns = to,
          .outcome = outcome};
}
Operation DeleteIf(uint32_t client, uint64_t expected, Outcome outcome, int64_t from, int64_t to) {
  return {.client = client,
          .kind = Kind::kCompareAndDelete,
          .expected = expected,
          .invoke_ns = from,
          .respond_ns = to,
          .outcome = outcome};
}
Operation Clear(int64_t from, int64_t to) {
  return {.kind = Kind::kClear, .invoke_ns = from, .respond_ns = to};
}
Operation Unknown(Operation operation) {
  operation.outcome = Outcome::kUnknown;
  operation.respond_ns = kNever;
  return operation;
}

// As Unknown, if all who could apply it were gone at `until_ns`.
Operation UnknownUntil(Operation operation, int64_t until_ns) {
  operation = Unknown(operation);
  operation.until_ns = until_ns;
  return operation;
}

bool Linearizable(const History& history) {
  std::string why;
  return Check(history, &why);
}

bool LinearizableWithEvictions(const History& history) {
  std::string why;
  return Check(history, Evictions::kAnyTime, &why);
}

TEST(LinearizabilityTest, AcceptsAnEmptyHistory) { EXPECT_TRUE(Linearizable({})); }

TEST(LinearizabilityTest, AcceptsOneClient) {
  EXPECT_TRUE(Linearizable({Get(1, 0, 0, 1), Put(1, 7, 2, 3), Get(1, 7, 4, 5),
                            Delete(1, true, 6, 7), Delete(1, false, 8, 9), Get(1, 0, 10, 11)}));
}

TEST(LinearizabilityTest, RejectsAStaleRead) {
  std::string why;
  EXPECT_FALSE(Check(History{Put(1, 7, 0, 1), Put(1, 8, 2, 3), Get(2, 7, 4, 5)}, &why));
  EXPECT_NE(why.find("client 2: GET 7 [4, 5]"), std::string::npos) << why;
}

TEST(LinearizabilityTest, RejectsAFalseMiss) {
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), Get(2, 0, 2, 3)}));
}

TEST(LinearizabilityTest, RejectsAReadFromTheFuture) {
  EXPECT_FALSE(Linearizable({Get(2, 7, 0, 1), Put(1, 7, 2, 3)}));
}

TEST(LinearizabilityTest, RejectsAValueNeverWritten) {
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 10), Get(2, 8, 1, 9)}));
}

TEST(LinearizabilityTest, LetsConcurrentReadsSeeOldOrNew) {
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 1), Put(1, 8, 2, 9), Get(2, 7, 3, 4), Get(3, 8, 5, 6)}));
}

// Reads the new value, then the old one. Each read alone would be fine.
TEST(LinearizabilityTest, RejectsNewThenOld) {
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), Put(1, 8, 2, 9), Get(2, 8, 3, 4), Get(3, 7, 5, 6)}));
}

TEST(LinearizabilityTest, CountsTouchingIntervalsAsConcurrent) {
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 5), Get(2, 0, 5, 6)}));
}

TEST(LinearizabilityTest, ChecksReplace) {
  EXPECT_TRUE(Linearizable({Replace(1, 7, Outcome::kRefused, 0, 1), Put(1, 8, 2, 3),
                            Replace(2, 9, Outcome::kDone, 4, 5), Get(1, 9, 6, 7)}));
  EXPECT_FALSE(Linearizable({Replace(1, 7, Outcome::kDone, 0, 1)}));
  EXPECT_FALSE(Linearizable({Put(1, 8, 0, 1), Replace(2, 9, Outcome::kRefused, 2, 3)}));
  EXPECT_TRUE(Linearizable({Put(1, 8, 0, 1), Unknown(Replace(2, 9, Outcome::kDone, 2, 3)),
                            Get(1, 8, 4, 5), Get(1, 9, 6, 7)}));
  EXPECT_FALSE(Linearizable({Unknown(Replace(2, 9, Outcome::kDone, 0, 1)), Get(1, 9, 2, 3)}));
}

TEST(LinearizabilityTest, ChecksCompareAndSet) {
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 1), Cas(1, 7, 8, Outcome::kDone, 2, 3),
                            Cas(2, 7, 9, Outcome::kRefused, 4, 5), Get(2, 8, 6, 7)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), Cas(1, 7, 8, Outcome::kRefused, 2, 3)}));
}

TEST(LinearizabilityTest, ChecksCompareAndDelete) {
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 1), DeleteIf(1, 7, Outcome::kDone, 2, 3),
                            DeleteIf(2, 7, Outcome::kRefused, 4, 5), Get(2, 0, 6, 7)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), DeleteIf(1, 7, Outcome::kRefused, 2, 3)}));
  EXPECT_FALSE(
      Linearizable({Put(1, 7, 0, 1), DeleteIf(1, 7, Outcome::kDone, 2, 3), Get(2, 7, 4, 5)}));
}

// An item that expires goes at some time after that, once, and no other item goes in its place.
TEST(LinearizabilityTest, LetsAnUnknownCompareAndDeleteExplainAMissOfItsValueOnly) {
  const Operation expiry = Unknown(DeleteIf(0, 7, Outcome::kDone, 5, 5));
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 1), expiry, Get(2, 7, 6, 7), Get(2, 0, 8, 9)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), expiry, Get(2, 0, 2, 3)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), expiry, Get(2, 0, 6, 7), Get(2, 7, 8, 9)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), Put(1, 8, 2, 3), expiry, Get(2, 0, 6, 7)}));
}

TEST(LinearizabilityTest, ClearsWhateverIsThere) {
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 1), Clear(2, 3), Get(2, 0, 4, 5)}));
  EXPECT_TRUE(Linearizable({Clear(0, 1), Clear(2, 3), Get(2, 0, 4, 5)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), Clear(2, 3), Get(2, 7, 4, 5)}));
}

TEST(LinearizabilityTest, LetsAnEvictionExplainAnyMiss) {
  const History missed = {Put(1, 7, 0, 1), Get(2, 7, 2, 3), Get(2, 0, 4, 5)};
  EXPECT_FALSE(Linearizable(missed));
  EXPECT_TRUE(LinearizableWithEvictions(missed));
  EXPECT_TRUE(LinearizableWithEvictions(
      {Put(1, 7, 0, 1), Get(2, 0, 2, 3), Put(1, 8, 4, 5), Get(2, 8, 6, 7), Get(2, 0, 8, 9)}));
  EXPECT_TRUE(LinearizableWithEvictions({Put(1, 7, 0, 1), Delete(2, false, 2, 3)}));
  // Old, then gone, then new, all during one write.
  EXPECT_TRUE(LinearizableWithEvictions({Put(1, 7, 0, 1), Put(1, 8, 2, 9), Get(2, 7, 3, 4),
                                         Get(2, 0, 5, 6), Get(2, 8, 7, 8), Get(2, 0, 10, 11)}));
}

TEST(LinearizabilityTest, RejectsAStaleReadInSpiteOfEvictions) {
  std::string why;
  EXPECT_FALSE(
      Check(History{Put(1, 7, 0, 1), Put(1, 8, 2, 3), Get(2, 7, 4, 5)}, Evictions::kAnyTime, &why));
  EXPECT_NE(why.find("client 2: GET 7 [4, 5]"), std::string::npos) << why;
  // What was evicted does not come back.
  EXPECT_FALSE(LinearizableWithEvictions({Put(1, 7, 0, 1), Get(2, 0, 2, 3), Get(2, 7, 4, 5)}));
  EXPECT_FALSE(LinearizableWithEvictions(
      {Put(1, 7, 0, 1), Put(1, 8, 2, 9), Get(2, 8, 3, 4), Get(2, 0, 5, 6), Get(2, 7, 7, 8)}));
}

TEST(LinearizabilityTest, RejectsAValueNeverWrittenInSpiteOfEvictions) {
  EXPECT_FALSE(LinearizableWithEvictions({Put(1, 7, 0, 10), Get(2, 8, 1, 9)}));
  EXPECT_FALSE(LinearizableWithEvictions({Get(2, 7, 0, 1), Put(1, 7, 2, 3)}));
}

// A condition is decided against a value that is there, or against none after an eviction.
TEST(LinearizabilityTest, ChecksConditionsWithEvictions) {
  // That the key is absent can always be so.
  EXPECT_TRUE(LinearizableWithEvictions({Put(1, 7, 0, 1), Cas(2, 0, 8, Outcome::kDone, 2, 3)}));
  EXPECT_TRUE(LinearizableWithEvictions({Put(1, 7, 0, 1), Cas(2, 7, 8, Outcome::kRefused, 2, 3)}));
  EXPECT_TRUE(LinearizableWithEvictions({Put(1, 7, 0, 1), Replace(2, 8, Outcome::kRefused, 2, 3)}));
  EXPECT_TRUE(
      LinearizableWithEvictions({Put(1, 7, 0, 1), DeleteIf(2, 7, Outcome::kRefused, 2, 3)}));
  // That it is there cannot.
  EXPECT_FALSE(LinearizableWithEvictions({Cas(2, 0, 8, Outcome::kRefused, 0, 1)}));
  EXPECT_FALSE(LinearizableWithEvictions({Replace(2, 8, Outcome::kDone, 0, 1)}));
  EXPECT_FALSE(LinearizableWithEvictions(
      {Put(1, 7, 0, 1), Put(1, 8, 2, 3), Cas(2, 7, 9, Outcome::kDone, 4, 5)}));
  EXPECT_FALSE(LinearizableWithEvictions(
      {Put(1, 7, 0, 1), Get(2, 0, 2, 3), Cas(2, 7, 9, Outcome::kDone, 4, 5)}));
  EXPECT_FALSE(
      LinearizableWithEvictions({Put(1, 7, 0, 1), Get(2, 0, 2, 3), Delete(2, true, 4, 5)}));
  // Two writers overwrote the same value.
  EXPECT_FALSE(LinearizableWithEvictions(
      {Put(1, 7, 0, 1), Cas(1, 7, 8, Outcome::kDone, 2, 9), Cas(2, 7, 9, Outcome::kDone, 2, 9)}));
}

// Two writers overwrote the same value.
TEST(LinearizabilityTest, RejectsALostUpdate) {
  EXPECT_FALSE(Linearizable(
      {Put(1, 7, 0, 1), Cas(1, 7, 8, Outcome::kDone, 2, 9), Cas(2, 7, 9, Outcome::kDone, 2, 9)}));
}

TEST(LinearizabilityTest, RejectsADeleteThatTwoClientsWon) {
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), Delete(1, true, 2, 9), Delete(2, true, 2, 9)}));
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 1), Delete(1, true, 2, 9), Delete(2, false, 2, 9)}));
}

TEST(LinearizabilityTest, LetsAnUnknownWriteHappenLateOrNever) {
  const Operation unknown = Unknown(Put(1, 7, 0, 0));
  EXPECT_TRUE(Linearizable({unknown, Get(2, 0, 100, 101)}));
  EXPECT_TRUE(Linearizable({unknown, Get(2, 0, 100, 101), Get(2, 7, 200, 201)}));
  EXPECT_FALSE(Linearizable({unknown, Get(2, 7, 100, 101), Get(2, 0, 200, 201)}));
}

TEST(LinearizabilityTest, LetsAnUnknownWriteNobodySawExplainOthers) {
  const Operation unknown = Unknown(Put(1, 7, 0, 0));
  EXPECT_TRUE(Linearizable({unknown, Delete(2, true, 1, 2)}));
  EXPECT_FALSE(Linearizable({unknown, Delete(2, true, 1, 2), Delete(2, true, 3, 4)}));
  EXPECT_TRUE(Linearizable({unknown, Cas(2, 0, 9, Outcome::kRefused, 1, 2)}));
}

TEST(LinearizabilityTest, LetsAnUnknownDeleteExplainAMiss) {
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 1), Unknown(Delete(1, false, 2, 2)), Get(2, 0, 5, 6)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), Unknown(Delete(1, false, 2, 2)), Get(2, 0, 5, 6),
                             Put(3, 8, 7, 8), Get(2, 0, 9, 10)}));
}

TEST(LinearizabilityTest, EndsAnUnknownWriteWhenNobodyCanApplyItAnyMore) {
  const Operation put = UnknownUntil(Put(1, 7, 0, 1), 5);
  EXPECT_TRUE(Linearizable({put, Get(2, 7, 6, 7)}));
  EXPECT_TRUE(Linearizable({put, Get(2, 0, 6, 7)}));
  EXPECT_TRUE(Linearizable({put, Get(2, 0, 2, 3), Get(2, 7, 6, 7)}));
  EXPECT_FALSE(Linearizable({put, Get(2, 0, 6, 7), Get(2, 7, 8, 9)})) << "later than possible";
  const Operation remove = UnknownUntil(Delete(1, true, 2, 3), 5);
  EXPECT_TRUE(Linearizable({Put(1, 7, 0, 1), remove, Get(2, 0, 6, 7)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), remove, Get(2, 7, 6, 7), Get(2, 0, 8, 9)}));
}

TEST(LinearizabilityTest, RejectsHistoriesThatAreWrongThemselves) {
  EXPECT_FALSE(Linearizable({Put(1, 7, 0, 1), Put(1, 7, 2, 3)}));
  EXPECT_FALSE(Linearizable({Put(1, 7, 1, 0)}));
}

// The definition by brute force: tries any order of any subset that has all known operations, and,
// if the store evicts, an eviction before any of them.
bool LinearizableByDefinition(const History& history, Evictions evictions, uint64_t value,
                              uint32_t done) {
  if (evictions == Evictions::kAnyTime && value != kAbsent &&
      LinearizableByDefinition(history, evictions, kAbsent, done)) {
    return true;
  }
  bool all_known_done = true;
  int64_t first_return = kNever;
  int64_t last_call = 0;  // of those that are done
  for (size_t i = 0; i < history.size(); ++i) {
    if ((done >> i & 1) != 0) last_call = std::max(last_call, history[i].invoke_ns);
    if ((done >> i & 1) != 0 || history[i].outcome == Outcome::kUnknown) continue;
    all_known_done = false;
    first_return = std::min(first_return, history[i].respond_ns);
  }
  if (all_known_done) return true;
  for (size_t i = 0; i < history.size(); ++i) {
    const Operation& op = history[i];
    if ((done >> i & 1) != 0 || op.invoke_ns > first_return) continue;
    if (op.outcome == Outcome::kUnknown && op.until_ns < last_call) continue;
    uint64_t after = value;
    bool fits = true;
    if (op.kind == Kind::kGet) fits = value == op.value;
    if (op.kind == Kind::kPut) after = op.value;
    if (op.kind == Kind::kDelete) {
      fits = op.outcome == Outcome::kUnknown || op.found == (value != kAbsent);
      after = kAbsent;
    }
    if (op.kind == Kind::kCompareAndSet || op.kind == Kind::kCompareAndDelete) {
      const bool equal = value == op.expected;
      fits = op.outcome == Outcome::kUnknown || equal == (op.outcome == Outcome::kDone);
      if (equal) after = op.kind == Kind::kCompareAndSet ? op.value : kAbsent;
    }
    if (op.kind == Kind::kClear) after = kAbsent;
    if (fits && LinearizableByDefinition(history, evictions, after, done | 1u << i)) return true;
  }
  return false;
}

// Makes random answers, right or wrong, over a few values.
History RandomHistory(std::mt19937_64& random) {
  const auto pick = [&random](int n) { return static_cast<int>(random() % n); };
  const int operations = 7;
  uint64_t next_value = 1;
  History history;
  for (int i = 0; i < operations; ++i) {
    const int64_t from = pick(12);
    const int64_t to = from + 1 + pick(6);
    switch (pick(8)) {
      case 0:
      case 1:
        history.push_back(Put(i, next_value++, from, to));
        break;
      case 2:
        history.push_back(Delete(i, pick(2), from, to));
        break;
      case 3:
        history.push_back(
            Cas(i, pick(3), next_value++, pick(2) ? Outcome::kDone : Outcome::kRefused, from, to));
        break;
      case 4:
        history.push_back(
            DeleteIf(i, pick(3), pick(2) ? Outcome::kDone : Outcome::kRefused, from, to));
        break;
      case 5:
        history.push_back(Clear(from, to));
        continue;
      default:
        history.push_back(Get(i, pick(4), from, to));
    }
    if (history.back().kind == Kind::kGet || pick(4) != 0) continue;
    history.back() = pick(2) == 0 ? Unknown(history.back()) : UnknownUntil(history.back(), to);
  }
  return history;
}

class DefinitionTest : public testing::TestWithParam<Evictions> {};

TEST_P(DefinitionTest, IsWhatTheSearchDecides) {
  std::mt19937_64 random(test_support::TestSeed());
  int linearizable = 0;
  constexpr int kHistories = 20'000;
  for (int i = 0; i < kHistories; ++i) {
    const History history = RandomHistory(random);
    const bool expected = LinearizableByDefinition(history, GetParam(), kAbsent, 0);
    linearizable += expected;
    std::string why;
    ASSERT_EQ(Check(history, GetParam(), &why), expected) << [&] {
      std::string all = why;
      for (const Operation& op : history) all += "\n" + ToString(op);
      return all;
    }();
  }
  EXPECT_GT(linearizable, kHistories / 20);
  EXPECT_LT(linearizable, kHistories * 19 / 20);
}

INSTANTIATE_TEST_SUITE_P(Evictions, DefinitionTest,
                         testing::Values(Evictions::kNone, Evictions::kAnyTime));

// Simulates `clients` clients on a true register. Each operation takes effect at a random moment of
// its interval, and some writes end with unknown outcome. A register that evicts loses its value
// before every 16th operation or so.
History TrueHistory(std::mt19937_64& random, int clients, int operations,
                    Evictions evictions = Evictions::kNone) {
  struct Moment {
    int64_t at;
    Operation op;
    bool happens;
  };
  std::vector<Moment> moments;
  uint64_t next_value = 1;
  for (int client = 0; client < clients; ++client) {
    int64_t now = static_cast<int64_t>(random() % 1000);
    for (int i = 0; i < operations / clients; ++i) {
      const int64_t to = now + 1 + static_cast<int64_t>(random() % 1000);
      const int64_t at = now + static_cast<int64_t>(random() % (to - now + 1));
      Operation op = Get(client, 0, now, to);
      const int kind = static_cast<int>(random() % 8);
      if (kind >= 4 && kind < 6) op = Put(client, next_value++, now, to);
      if (kind == 6) op = Delete(client, false, now, to);
      if (kind == 7) op = Cas(client, 0, next_value++, Outcome::kDone, now, to);
      const bool unknown = op.kind != Kind::kGet && random() % 64 == 0;
      if (unknown) op.outcome = Outcome::kUnknown;
      if (unknown && random() % 2 == 0) op.until_ns = to;
      moments.push_back({at, op, !unknown || random() % 2 == 0});
      now = to + 1 + static_cast<int64_t>(random() % 100);
    }
  }
  std::sort(moments.begin(), moments.end(),
            [](const Moment& a, const Moment& b) { return a.at < b.at; });
  uint64_t value = kAbsent;
  std::vector<uint64_t> read;  // what a compare-and-set may expect
  History history;
  for (Moment& moment : moments) {
    Operation& op = moment.op;
    if (evictions == Evictions::kAnyTime && random() % 16 == 0) value = kAbsent;
    if (op.kind == Kind::kGet) {
      op = Get(op.client, value, op.invoke_ns, op.respond_ns);
      read.push_back(value);
    }
    if (op.kind == Kind::kDelete) op.found = value != kAbsent;
    if (op.kind == Kind::kCompareAndSet) {
      const size_t back = 1 + random() % 4;
      op.expected = read.size() < back ? kAbsent : read[read.size() - back];
      const bool applied = op.expected == value;
      if (op.outcome != Outcome::kUnknown && !applied) op.outcome = Outcome::kRefused;
      moment.happens &= applied;
    }
    if (moment.happens && op.kind == Kind::kDelete) value = kAbsent;
    if (moment.happens && (op.kind == Kind::kPut || op.kind == Kind::kCompareAndSet)) {
      value = op.value;
    }
    history.push_back(op);
  }
  return history;
}

TEST(LinearizabilityTest, AcceptsLongTrueHistories) {
  std::mt19937_64 random(test_support::TestSeed());
  for (const int clients : {1, 4, 8}) {
    const History history = TrueHistory(random, clients, 10'000);
    std::string why;
    EXPECT_TRUE(Check(history, &why)) << clients << " clients: " << why;
  }
}

TEST(LinearizabilityTest, AcceptsLongTrueHistoriesWithEvictions) {
  std::mt19937_64 random(test_support::TestSeed());
  for (const int clients : {1, 4, 8}) {
    const History history = TrueHistory(random, clients, 10'000, Evictions::kAnyTime);
    std::string why;
    EXPECT_TRUE(Check(history, Evictions::kAnyTime, &why)) << clients << " clients: " << why;
    EXPECT_FALSE(Check(history, &why)) << clients << " clients";
  }
}

class StaleReadTest : public testing::TestWithParam<Evictions> {};

// One wrong answer among ten thousand must be found.
TEST_P(StaleReadTest, IsFoundInALongHistory) {
  std::mt19937_64 random(test_support::TestSeed());
  for (int round = 0; round < 3; ++round) {
    History history = TrueHistory(random, 8, 10'000, GetParam());
    // A value that a known write replaced five thousand operations ago.
    uint64_t stale = kAbsent;
    for (size_t i = 100; stale == kAbsent; ++i) {
      if (history[i].kind == Kind::kPut && history[i].outcome == Outcome::kDone) {
        stale = history[i].value;
      }
    }
    size_t read = 5000;
    while (history[read].kind != Kind::kGet) ++read;
    history[read] =
        Get(history[read].client, stale, history[read].invoke_ns, history[read].respond_ns);
    std::string why;
    EXPECT_FALSE(Check(history, GetParam(), &why));
    EXPECT_NE(why.find(ToString(history[read])), std::string::npos) << why;
  }
}

INSTANTIATE_TEST_SUITE_P(Evictions, StaleReadTest,
                         testing::Values(Evictions::kNone, Evictions::kAnyTime));

}  // namespace
}  // namespace gannet::linearizability
