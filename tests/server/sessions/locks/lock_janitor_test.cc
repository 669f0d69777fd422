#include "server/sessions/locks/lock_janitor.h"

#include <vector>

#include "common/base/boot_time.h"
#include "common/layout/lock_word.h"
#include "gtest/gtest.h"
#include "server/sessions/locks/cpu_lock_cas.h"

namespace gannet {
namespace {

// Tests the janitor on words that only the CPU changes. tests/server/rpc tests it over the loopback
// queue pair.
class LockJanitorTest : public testing::Test {
 protected:
  static constexpr size_t kWords = 40'000;

  // Steps through one whole pass, which must be due.
  void RunPass() {
    bool in_pass = true;
    for (int i = 0; in_pass; ++i) {
      ASSERT_LT(i, 100'000);
      in_pass = janitor_.Poll(now_);
      cas_.Poll();
    }
    cas_.Poll();
  }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(kWords);
  ConnectionIds ids_;
  CpuLockCas cas_{words_};
  const LockWordTable table_{words_};
  LockJanitor janitor_{table_, &ids_, &cas_};
  BootTime now_ = BootTime::FromNs(1'000'000'000);
};

TEST_F(LockJanitorTest, BreaksLocksOfTheDeadOnly) {
  const uint32_t dead = *ids_.Take();
  const uint32_t living = *ids_.Take();
  for (size_t i = 0; i < kWords; i += 2) words_[i] = LockWord::Of(dead, 1, 1).word();
  const uint64_t held = LockWord::Of(living, 1, 1).word();
  words_[1] = words_[kWords - 1] = held;
  ids_.Retire(dead);
  janitor_.Hasten(now_);
  RunPass();
  for (size_t i = 0; i < kWords; ++i) {
    ASSERT_EQ(words_[i], i == 1 || i == kWords - 1 ? held : 0) << i;
  }
  EXPECT_EQ(janitor_.locks_broken(), kWords / 2);
}

TEST_F(LockJanitorTest, BreaksALockThatTheDeadTookLate) {
  const uint32_t dead = *ids_.Take();
  ids_.Retire(dead);
  janitor_.Hasten(now_);
  RunPass();
  words_[17] = LockWord::Of(dead, 2, 1).word();  // its CAS was still on the way
  now_ = now_ + 100'000'000;
  RunPass();
  EXPECT_EQ(words_[17], 0u);
  EXPECT_EQ(janitor_.locks_broken(), 1u);
}

TEST_F(LockJanitorTest, FindsALateLockEvenLongAfterTheDeath) {
  const uint32_t dead = *ids_.Take();
  ids_.Retire(dead);
  janitor_.Hasten(now_);
  RunPass();
  now_ = now_ + 10 * LockJanitor::kQuickNs;
  RunPass();
  words_[17] = LockWord::Of(dead, 2, 1).word();
  ASSERT_FALSE(janitor_.Poll(now_)) << "no pass is due";
  now_ = janitor_.next_pass();
  RunPass();
  EXPECT_EQ(words_[17], 0u);
}

TEST_F(LockJanitorTest, DeathDuringAPassStartsAnother) {
  const uint32_t dead = *ids_.Take();
  words_[0] = LockWord::Of(dead, 1, 1).word();
  ASSERT_TRUE(janitor_.Poll(now_)) << "the first piece, past word 0, while the holder lived";
  ids_.Retire(dead);
  janitor_.Hasten(now_);
  RunPass();
  RunPass();
  EXPECT_EQ(words_[0], 0u);
}

TEST_F(LockJanitorTest, DoesABoundedPieceAtATime) {
  EXPECT_TRUE(janitor_.Poll(now_));
  EXPECT_TRUE(janitor_.Poll(now_));
  EXPECT_FALSE(janitor_.Poll(now_));
  EXPECT_GT(janitor_.next_pass(), now_);
}

TEST_F(LockJanitorTest, DoesNotBreakALockThatChangedHandsMeanwhile) {
  const uint32_t dead = *ids_.Take();
  const uint32_t living = *ids_.Take();
  const LockWord stale = LockWord::Of(dead, 1, 1);
  const LockWord taken = LockWord::Of(living, 1, 1);
  words_[3] = taken.word();
  uint64_t seen = 0;
  ASSERT_TRUE(cas_.Start(3, stale.word(), 0, [&](bool, uint64_t old) { seen = old; }));
  EXPECT_TRUE(cas_.Poll());
  EXPECT_EQ(seen, taken.word());
  EXPECT_EQ(words_[3], taken.word());
}

TEST(CpuLockCasTest, RefusesWhenFullAndReportsEachOnce) {
  std::vector<uint64_t> words(1);
  CpuLockCas cas(words);
  size_t done = 0;
  size_t started = 0;
  while (cas.Start(0, started, started + 1, [&](bool ok, uint64_t) { done += ok; })) ++started;
  EXPECT_EQ(started, cas.depth());
  EXPECT_EQ(done, 0u) << "never from Start";
  EXPECT_TRUE(cas.Poll());
  EXPECT_FALSE(cas.Poll());
  EXPECT_EQ(done, started);
  EXPECT_EQ(words[0], started);
}

}  // namespace
}  // namespace gannet
