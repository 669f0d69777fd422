// A store that joins a primary by READs, while the primary's items change.

#include "server/group/members/joiner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "softverbs/tests/support/key_file.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/group/members/join_fixture.h"
#include "tests/server/memory/store/at.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMegabyte = 1 << 20;

class JoinerTest : public JoinFixture {
 protected:
  static std::string Key(uint64_t i) { return absl::StrCat("key", i); }

  void PutKeys(uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) Put(Key(i), absl::StrCat("value of ", i));
  }
  // Joins once, while `keys` keys change at random and the stream is applied late. Returns what is
  // different in the end, or "".
  std::string JoinAtRandom(uint64_t seed, uint32_t keys) {
    std::mt19937_64 random(seed);
    MakeBackup(64 * kMegabyte, 256);
    for (uint32_t i = 0; i < 2 * keys; ++i) ChangeSomething(keys, random);
    Join();
    const uint64_t changes_max = 1 + random() % 8;
    const uint64_t applied_max = random() % 10;
    const auto between = [&] {
      for (uint64_t n = random() % (changes_max + 1); n > 0; --n) ChangeSomething(keys, random);
      ApplySome(random() % (applied_max + 1));
      if (random() % 4 == 0) PassSome(kNsPerMs);
    };
    EXPECT_EQ(Finish(between), Joiner::Step::kDone) << joiner().status();
    ApplySome(UINT64_MAX);
    return Difference();
  }
  // Returns whether one of many random joins goes wrong.
  bool GoesWrong() {
    for (int i = 0; i < 200; ++i) {
      if (!JoinAtRandom(random_(), 300).empty()) return true;
    }
    return false;
  }

  std::mt19937_64 random_{test_support::TestSeed()};
};

TEST_F(JoinerTest, HasAllThatThePrimaryHasAlthoughItChangesMeanwhile) {
  StartPrimary([](Server::Options* options) { options->memory_bytes = 64 * kMegabyte; });
  for (int i = 0; i < 30; ++i) {
    const uint64_t seed = random_();
    ASSERT_EQ(JoinAtRandom(seed, 300 + seed % 1000), "") << "join " << i << ", seed " << seed;
    EXPECT_GT(joiner().items(), 0u);
  }
  EXPECT_EQ(stats().rpcs, 0u) << "the primary's CPU served the joiner";
}

TEST_F(JoinerTest, GoesWrongIfItDoesNotKnowWhatTheStreamDeleted) {
  StartPrimary([](Server::Options* options) { options->memory_bytes = 64 * kMegabyte; });
  told_ = Told::kNoDeletions;
  EXPECT_TRUE(GoesWrong());
}

// One key, and a change of it after each number of Polls since the joiner was connected, until the
// joiner is done before it.
class MomentTest : public JoinerTest {
 protected:
  // Joins, and makes the change at that moment. Returns false if the joiner was done before.
  bool JoinAndChangeAt(int moment, std::string_view value, const std::function<void()>& change) {
    MakeBackup(64 * kMegabyte, 1000);
    Put("key", value);
    Join();
    bool changed = false;
    const auto between = [&, poll = 0]() mutable {
      if (!joiner().session().ready() || poll++ != moment) return;
      changed = true;
      change();
    };
    EXPECT_EQ(Finish(between), Joiner::Step::kDone) << joiner().status();
    return changed;
  }
  // Returns how many joins went wrong.
  int JoinAtEachMoment(std::string_view value, const std::function<void()>& change) {
    int wrong = 0;
    for (moments_ = 0; JoinAndChangeAt(moments_, value, change); ++moments_) {
      ApplySome(UINT64_MAX);
      wrong += Difference().empty() ? 0 : 1;
    }
    return wrong;
  }
  void PutAndLetExpire() {
    Put("key", "new", {.expiry = Expiry::At(now().server_time + 5)});
    ApplySome(UINT64_MAX);
    Advance(10 * kNsPerMs);
    backup()->Sweep(now().server_time, 100'000);
  }

  int moments_ = 0;
};

TEST_F(MomentTest, TheWalkOverwritesNothingOfTheStreams) {
  StartPrimary();
  EXPECT_EQ(JoinAtEachMoment("old",
                             [this] {
                               Put("key", "new");
                               ApplySome(UINT64_MAX);
                             }),
            0);
  EXPECT_GT(moments_, 10);
}

TEST_F(MomentTest, ADeletedKeyDoesNotComeBack) {
  StartPrimary();
  const auto change = [this] {
    Delete("key");
    ApplySome(UINT64_MAX);
  };
  EXPECT_EQ(JoinAtEachMoment("old", change), 0);
  told_ = Told::kNoDeletions;
  EXPECT_GT(JoinAtEachMoment("old", change), 0);
}

TEST_F(MomentTest, AKeyThatExpiredAndWasSweptDoesNotComeBack) {
  StartPrimary();
  EXPECT_EQ(JoinAtEachMoment("old", [this] { PutAndLetExpire(); }), 0);
  told_ = Told::kNoExpiring;
  EXPECT_GT(JoinAtEachMoment("old", [this] { PutAndLetExpire(); }), 0);
}

// Another long value gets the block of a key that moves. The stream tells nothing of moves. The
// memory has room for two such values.
TEST_F(MomentTest, OfALongValueThatMovesNothingElseIsBelieved) {
  StartPrimary([](Server::Options* options) { options->index_slots = 100; });
  const std::string value(12 * kMegabyte, 'v');
  const std::string other(value.size(), 'o');
  Put("third", other);
  const auto slot_of = [&](std::string_view key) {
    return server().store().Get(key, {}, now().server_time).slot;
  };
  const auto move = [&] {
    const uint64_t slot = slot_of("key");
    Put("key", "short for a moment");
    Put("other", other);
    EXPECT_EQ(Slot(slot_of("other")).offset(), Slot(slot).offset());
    Delete("third");
    Put("key", value);
    relay_.Begin();
  };
  int wrong = 0;
  for (moments_ = 0; wrong == 0 && JoinAndChangeAt(moments_, value, move); ++moments_) {
    std::string copied(value.size(), '\0');
    backup()->Get("key", std::as_writable_bytes(std::span(copied)), At(1));
    wrong += copied == value ? 0 : 1;
    Delete("other");
    Put("third", other);
  }
  EXPECT_EQ(wrong, 0) << "after " << moments_;
  EXPECT_GT(moments_, 5);
}

TEST_F(JoinerTest, GoesOnWhileThePrimarysIndexGrows) {
  StartPrimary([](Server::Options* options) {
    options->memory_bytes = 64 * kMegabyte;
    options->index_slots = 2000;
  });
  MakeBackup(64 * kMegabyte, 2000);
  PutKeys(1500);
  Join();
  uint64_t next = 1500;
  const auto between = [&] {
    if (next < 40'000) {
      for (int i = 0; i < 40; ++i, ++next) Put(Key(next), Key(next));
    }
    ApplySome(random_() % 30);
    PassSome(kNsPerMs);
  };
  EXPECT_EQ(Finish(between), Joiner::Step::kDone) << joiner().status();
  ApplySome(UINT64_MAX);
  EXPECT_EQ(Difference(), "");
  EXPECT_GE(stats().index_growths, 1u);
  EXPECT_GE(backup().Stats().index_growths, 1u);
  EXPECT_EQ(stats().rpcs, 0u);
}

// The primary frees the memory of an old index once all its clients say that they READ it no more.
TEST_F(JoinerTest, SaysThatItREADsAnOldIndexNoMore) {
  StartPrimary([](Server::Options* options) {
    options->index_slots = 20'000;
    options->silence_ms = 2000;
  });
  MakeBackup(32 * kMegabyte, 20'000);
  PutKeys(16'000);
  for (const bool walks : {true, false}) {
    auto joiner = Joiner::Begin(JoinOptions());
    ASSERT_TRUE(joiner.ok()) << joiner.status();
    const auto poll = [&] {
      // Ten of them are a heartbeat, by which it hears of the new index while it walks.
      if ((*joiner)->session().ready()) Advance(20 * kNsPerMs);
      return (*joiner)->Poll(boot_now()) != Joiner::Step::kGoesOn;
    };
    EXPECT_TRUE(StepUntil([&] { return poll() || (*joiner)->session().ready(); }));
    if (walks) (*joiner)->BeginWalk();
    const uint64_t generation = server().store().index_generation();
    uint64_t next = 0;
    const auto grown = [&] { return server().store().index_generation() > generation; };
    EXPECT_TRUE(StepUntil([&] {
      for (int i = 0; i < 500; ++i, ++next) Put(absl::StrCat(walks, Key(next)), "");
      return poll() || grown();
    }));
    const auto freed = [&] {
      const Superblock superblock = server().store().superblock();
      const uint64_t one = superblock.index.buckets() * kBucketBytes;
      return server().store().heap().use().table_bytes() < one + one / 4;
    };
    EXPECT_TRUE(StepUntil([&] { return freed() || poll(); }));
    EXPECT_TRUE(freed()) << (*joiner)->status();
  }
}

TEST_F(JoinerTest, CopiesLongValuesByREADsOfTheirPieces) {
  StartPrimary([](Server::Options* options) { options->memory_bytes = 256 * kMegabyte; });
  MakeBackup(256 * kMegabyte, 1000);
  std::string value(70 * kMegabyte / 2, '\0');
  for (char& byte : value) byte = static_cast<char>(random_());
  Put("longest", value);
  for (int i = 0; i < 20; ++i) Put(Key(i), value.substr(i, 4000 + i * 50'000));
  Join();
  EXPECT_EQ(Finish(), Joiner::Step::kDone) << joiner().status();
  EXPECT_EQ(joiner().items(), 21u);
  std::string copied(value.size(), '\0');
  EXPECT_EQ(backup()->Get("longest", std::as_writable_bytes(std::span(copied)), At(1)).status,
            ReplyStatus::kOk);
  EXPECT_TRUE(copied == value);
}

// Other threads write while the joiner's device READs.
TEST_F(JoinerTest, HasAllThatThePrimaryHasAlthoughThreadsWriteMeanwhile) {
  StartPrimary([](Server::Options* options) { options->memory_bytes = 256 * kMegabyte; });
  MakeBackup(256 * kMegabyte, 256);
  constexpr uint32_t kKeys = 20'000;
  PutKeys(kKeys);
  Join();
  std::atomic<bool> stop = false;
  const uint64_t seed = random_();
  std::thread writer([&, time = now().server_time] {
    std::mt19937_64 random(seed);
    while (!stop) {
      const std::string key = Key(random() % 4 == 0 ? random() % 10 : random() % kKeys);
      if (random() % 3 == 0) {
        server().writes().Delete(key, {}, time);
      } else {
        server().writes().Put(key, RandomValue(random), {}, {}, time);
      }
    }
  });
  const Joiner::Step step = Finish([this] { ApplySome(random_() % 200); });
  stop = true;
  writer.join();
  EXPECT_EQ(step, Joiner::Step::kDone) << joiner().status();
  ApplySome(UINT64_MAX);
  EXPECT_EQ(Difference(), "");
  std::cout << joiner().items() << " items, " << joiner().retries() << " retries" << std::endl;
}

TEST_F(JoinerTest, InsertsNothingThatHasExpired) {
  StartPrimary();
  MakeBackup(32 * kMegabyte, 1000);
  Put("gone", "value", {.expiry = Expiry::At(now().server_time + 10)});
  Put("lives", "value", {.expiry = Expiry::At(now().server_time + 10'000)});
  Advance(20 * kNsPerMs);
  Join();
  EXPECT_EQ(Finish(), Joiner::Step::kDone);
  EXPECT_EQ(joiner().items(), 1u);
  EXPECT_EQ(Difference(), "");
}

TEST_F(JoinerTest, NextVersionIsAboveAllThatItSaw) {
  StartPrimary();
  MakeBackup(32 * kMegabyte, 1000);
  PutKeys(10);
  const uint64_t version = server().store().NextVersion();
  Join();
  EXPECT_EQ(Finish(), Joiner::Step::kDone);
  EXPECT_EQ(joiner().version_next(), version);
  joiner().OnApplied({.kind = Change::Kind::kDelete, .version = version + 5, .key = "key"});
  EXPECT_EQ(joiner().version_next(), version + 6);
}

TEST_F(JoinerTest, READsNothingBeforeItMayBeginTheWalk) {
  StartPrimary();
  MakeBackup(32 * kMegabyte, 1000);
  PutKeys(10);
  auto joiner = Joiner::Begin(JoinOptions());
  ASSERT_TRUE(joiner.ok()) << joiner.status();
  EXPECT_TRUE(StepUntil([&] {
    EXPECT_EQ((*joiner)->Poll(boot_now()), Joiner::Step::kGoesOn);
    return (*joiner)->session().ready();
  }));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ((*joiner)->Poll(boot_now()), Joiner::Step::kGoesOn);
    EXPECT_EQ((*joiner)->session().in_flight(), 0u);
  }
  (*joiner)->BeginWalk();
  EXPECT_TRUE(StepUntil([&] { return (*joiner)->Poll(boot_now()) == Joiner::Step::kDone; }));
  EXPECT_EQ((*joiner)->items(), 10u);
}

TEST_F(JoinerTest, HeartbeatsKeepItsSession) {
  StartPrimary([](Server::Options* options) { options->silence_ms = 1000; });
  MakeBackup(32 * kMegabyte, 1000);
  auto joiner = Joiner::Begin(JoinOptions());
  ASSERT_TRUE(joiner.ok()) << joiner.status();
  uint64_t heard = 0;
  for (int i = 0; i < 200; ++i) {
    // Time passes by steps here, so this waits until the device has delivered what was sent.
    EXPECT_TRUE(StepUntil([&] {
      return (*joiner)->Poll(boot_now()) != Joiner::Step::kGoesOn ||
             ((*joiner)->session().ready() && (i % 5 != 4 || stats().heartbeats > heard));
    }));
    EXPECT_EQ((*joiner)->Poll(boot_now()), Joiner::Step::kGoesOn) << (*joiner)->status();
    if (i % 5 == 4) heard = stats().heartbeats;
    Pass(50 * kNsPerMs);
  }
  EXPECT_EQ(stats().connections, 1u);
  EXPECT_GE(stats().heartbeats, 60u);
  EXPECT_LE(stats().heartbeats, 110u);
}

TEST_F(JoinerTest, SleepsUntilAHeartbeatIsDueOrAnswered) {
  StartPrimary([](Server::Options* options) { options->silence_ms = 1000; });
  MakeBackup(32 * kMegabyte, 1000);
  auto joiner = Joiner::Begin(JoinOptions());
  ASSERT_TRUE(joiner.ok()) << joiner.status();
  const auto readable = [&](int timeout_ms) {
    std::vector<int> fds;
    (*joiner)->AddFds(&fds);
    std::vector<pollfd> waits;
    for (const int fd : fds) waits.push_back({fd, POLLIN, 0});
    return ::poll(waits.data(), waits.size(), timeout_ms) > 0;
  };
  EXPECT_TRUE(StepUntil([&] {
    EXPECT_EQ((*joiner)->Poll(boot_now()), Joiner::Step::kGoesOn);
    return (*joiner)->session().ready();
  }));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(StepUntil([&] { return (*joiner)->PrepareToSleep(boot_now()); }));
    EXPECT_EQ((*joiner)->deadline(), boot_now() + 100 * kNsPerMs);
    Advance(100 * kNsPerMs);
    (*joiner)->Poll(boot_now());
    EXPECT_TRUE(StepUntil([&] { return stats().heartbeats > static_cast<uint64_t>(i); }));
    EXPECT_TRUE(readable(20'000)) << "the answer wakes nobody";
  }
  EXPECT_EQ(stats().heartbeats, 10u);
}

TEST_F(JoinerTest, FailsIfThePrimaryFallsSilent) {
  StartPrimary([](Server::Options* options) { options->silence_ms = 1000; });
  MakeBackup(32 * kMegabyte, 1000);
  auto joiner = Joiner::Begin(JoinOptions());
  ASSERT_TRUE(joiner.ok()) << joiner.status();
  EXPECT_TRUE(StepUntil([&] {
    (*joiner)->Poll(boot_now());
    return (*joiner)->session().ready();
  }));
  int steps = 0;
  while ((*joiner)->Poll(boot_now()) == Joiner::Step::kGoesOn && ++steps < 100) {
    Advance(50 * kNsPerMs);
  }
  EXPECT_THAT((*joiner)->status().message(), HasSubstr("silent for 1000 ms"));
  EXPECT_GE(steps, 20);
}

TEST_F(JoinerTest, FailsIfTheStoreHasNoRoom) {
  StartPrimary();
  MakeBackup(4 * kMegabyte, 1000);
  for (int i = 0; i < 100; ++i) Put(Key(i), std::string(100'000, 'v'));
  Join();
  EXPECT_EQ(Finish(), Joiner::Step::kFailed);
  EXPECT_EQ(joiner().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(joiner().status().message(), HasSubstr("no room"));
}

TEST_F(JoinerTest, FailsIfTheIndexHasNoSlotForLong) {
  StartPrimary();
  MakeBackup(32 * kMegabyte, 100, /*grows=*/false);
  PutKeys(1000);
  Joiner::Options options = JoinOptions();
  options.stuck_ns_max = kNsPerSecond;  // sooner than anybody seems silent
  Join(std::move(options));
  const auto between = [this] {
    if (joiner().session().ready()) PassSome(100 * kNsPerMs);
  };
  EXPECT_EQ(Finish(between), Joiner::Step::kFailed);
  EXPECT_EQ(joiner().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(joiner().status().message(), HasSubstr("no slot"));
}

TEST_F(JoinerTest, FailsIfMoreKeysAreDeletedThanItCanNote) {
  StartPrimary();
  MakeBackup(32 * kMegabyte, 1000);
  PutKeys(11);
  Joiner::Options options = JoinOptions();
  options.filter_hashes_max = 10;
  Join(std::move(options));
  for (int i = 0; i < 11; ++i) Delete(Key(i));
  ApplySome(UINT64_MAX);
  EXPECT_EQ(Finish(), Joiner::Step::kFailed);
  EXPECT_EQ(joiner().status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(JoinerTest, ProvesThatItHasAKey) {
  const test_support::KeyFile file("1 000102030405060708090a0b0c0d0e0f\n");
  StartPrimary([&](Server::Options* options) { options->auth_file = file.path(); });
  MakeBackup(32 * kMegabyte, 1000);
  PutKeys(10);
  Join();
  EXPECT_EQ(Finish(), Joiner::Step::kFailed);
  EXPECT_EQ(joiner().status().code(), absl::StatusCode::kPermissionDenied) << joiner().status();
  auto keys = AuthFile::Open(file.path());
  ASSERT_TRUE(keys.ok());
  Joiner::Options options = JoinOptions();
  options.keys = &*keys;
  Join(std::move(options));
  EXPECT_EQ(Finish(), Joiner::Step::kDone) << joiner().status();
  EXPECT_EQ(joiner().items(), 10u);
}

// Prints how fast it is. GANNET_JOIN_BYTES=1073741824 measures what the documents say.
class JoinSpeedTest : public JoinerTest {
 protected:
  void Measure(uint64_t value_bytes) {
    const char* given = std::getenv("GANNET_JOIN_BYTES");
    const uint64_t bytes = given != nullptr ? std::strtoull(given, nullptr, 10) : 8 * kMegabyte;
    const uint64_t items = bytes / value_bytes;
    const uint64_t memory = 2 * bytes + items * 100 + 64 * kMegabyte;
    StartPrimary([memory](Server::Options* options) { options->memory_bytes = memory; });
    MakeBackup(memory, items * 5 / 4 + 1000);
    const std::string value(value_bytes, 'v');
    for (uint64_t i = 0; i < items; ++i) {
      Put(Key(i), value);
      if (i % 1024 == 0) relay_.Begin();
    }
    Join();
    const int64_t began_ns = MonotonicNs();
    // The primary answers heartbeats, and nobody else has anything to do.
    for (uint64_t polls = 0; joiner().Poll(boot_now()) == Joiner::Step::kGoesOn; ++polls) {
      if (polls % 1024 == 0 || !joiner().session().ready()) {
        PassSome(kNsPerMs);
        Step();
        backup()->Tidy(now().server_time);
      }
      ASSERT_LT(polls, 1'000'000'000u);
    }
    EXPECT_TRUE(joiner().status().ok()) << joiner().status();
    const double seconds = static_cast<double>(MonotonicNs() - began_ns) / kNsPerSecond;
    EXPECT_EQ(joiner().items(), items);
    EXPECT_EQ(stats().rpcs, 0u);
    std::cout << absl::StreamFormat("%d items of %d B: %.3f s, %.0f items/s, %.2f s per GiB\n",
                                    items, value_bytes, seconds, items / seconds,
                                    seconds * (1 << 30) / static_cast<double>(bytes));
  }
};

TEST_F(JoinSpeedTest, OfShortValues) { Measure(100); }
TEST_F(JoinSpeedTest, OfLongValues) { Measure(kMegabyte); }

}  // namespace
}  // namespace gannet
