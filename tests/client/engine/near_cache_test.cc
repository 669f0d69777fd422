// GETs that a client answers from copies of leased items: each rule by which it may, with a server
// whose header and words the test writes.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/layout/item_proof.h"
#include "tests/client/engine/fake_run.h"
#include "tests/client/engine/moves_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kWords = 16;
constexpr uint32_t kItemLeaseMs = 20;
constexpr uint64_t kServerStartMs = 1'700'000'000'000;

void UseNearCache(Engine::Settings& settings) { settings.options.near_cache_bytes = 1 << 20; }

class NearCacheTest : public FakeRun {
 protected:
  void SetUp() override {
    server_->time_ms = [this] { return ServerMs(); };
    server_->LeaseItems(kWords, kItemLeaseMs);
    AnswerEverything();
    AddItem("hot", "hot value");
    AddItem("other", "other value");
  }
  uint64_t ServerMs() const {
    const auto passed_ns = static_cast<double>(clock_.now_ns - started_ns_);
    return kServerStartMs + static_cast<uint64_t>(passed_ns * server_rate_ / 1e6);
  }
  // Adds an item, and returns its commit word.
  uint64_t AddItem(const std::string& key, std::string_view value, uint64_t expiry_ms = 0) {
    HandMadeRegion& region = server_->region();
    const Slot slot = region.AddItem(key, value, key, expiry_ms);
    region.SetSlot(region.HomeOf(key), next_slot_++, slot);
    server_->PublishRegion();
    return words_[key] = ItemField<uint64_t>(region.at(slot.offset()), 0);
  }
  void Lease(uint32_t place, const std::string& key) {
    server_->SetLeaseWord(place, words_.at(key));
  }
  void Renew() { server_->SetLeaseHeader(generation_, end_ms_ = ServerMs() + kItemLeaseMs); }
  Ended Get(const std::string& key) {
    const uint64_t get = BeginKey(OpType::kGet, key);
    Settle();
    EXPECT_TRUE(HasEnded(get));
    return ended_[get];
  }
  bool IsLocal(const std::string& key) { return Get(key).cost.from_near_cache; }
  // GETs it until it is answered from a copy.
  void Warm(const std::string& key) {
    for (int i = 0; i < 100 && !IsLocal(key); ++i) {
    }
    ASSERT_TRUE(IsLocal(key));
  }
  void ConnectAndWarm() {
    Connect(8, UseNearCache);
    Lease(0, "hot");
    Renew();
    Warm("hot");
  }
  // By clocks that differ in their rates. The client knows an upper bound of the server's.
  // `is_local` GETs "hot", and returns whether a copy answers.
  template <class F>
  void AskAtTheEndOfTheLease(F is_local) {
    for (const double rate : {1.0, 1.0018, 0.9982}) {
      server_rate_ = rate;
      ConnectAndWarm();
      PassMs(400);
      Renew();
      Warm("hot");
      int64_t answered = 0;
      for (int i = 0; i < 60; ++i) {
        clock_.now_ns += kNsPerMs / 2;
        const bool over = ServerMs() >= end_ms_;
        const bool local = is_local();
        EXPECT_FALSE(over && local) << i;
        answered += local;
      }
      EXPECT_GE(answered, 20) << "of 40 halves of a ms";
      EXPECT_LE(answered, 36) << "the bound is 2 ms above the clock";
    }
  }
  // "short" is leased, too, and expires in 100 ms.
  void ConnectAndWarmOneThatExpires() {
    expiry_ms_ = ServerMs() + 100;
    AddItem("short", "lived", expiry_ms_);
    Connect(8, UseNearCache);
    Lease(0, "short");
    Renew();
    Warm("short");
  }
  // is_local() GETs it, and returns whether a copy answered.
  template <class IsLocal>
  void ExpectAnswersUntilItExpires(IsLocal is_local) {
    int64_t answered = 0;
    for (int ms = 0; ms < 120; ++ms) {
      clock_.now_ns += kNsPerMs;
      Renew();
      const bool over = ServerMs() >= expiry_ms_;
      const bool local = is_local();
      EXPECT_FALSE(local && over);
      answered += local;
    }
    EXPECT_GE(answered, 80);
  }
  uint64_t ReadsOfLeases() { return engine_->servers().Info()[0].near_cache_reads; }

  const int64_t started_ns_ = clock_.now_ns;
  double server_rate_ = 1;
  std::map<std::string, uint64_t> words_;
  uint32_t next_slot_ = 0;
  uint64_t generation_ = 1;
  uint64_t end_ms_ = 0;
  uint64_t expiry_ms_ = 0;
};

TEST_F(NearCacheTest, ALeasedItemIsAnsweredWithoutVerbs) {
  ConnectAndWarm();
  const Ended got = Get("hot");
  EXPECT_EQ(got.outcome, Outcome::kOk);
  EXPECT_TRUE(got.found);
  EXPECT_EQ(got.value, "hot value");
  EXPECT_EQ(got.info.flags, 7u);
  EXPECT_NE(got.info.version, 0u);
  EXPECT_EQ(got.info.value_bytes, 9u);
  EXPECT_EQ(got.cost.reads + got.cost.sends + got.cost.posts + got.cost.completions, 0);
  EXPECT_GE(engine_->servers().Info()[0].near_cache_answers, 1u);
  EXPECT_EQ(engine_->servers().Info()[0].near_cache_items, 1u);
  EXPECT_FALSE(IsLocal("other")) << "it is not leased";
  EXPECT_EQ(engine_->busy(), 0u);
}

// To a caller of Poll who gave room for completions.
TEST_F(NearCacheTest, AnAnswerIsReportedAtOnce) {
  ConnectAndWarm();
  std::array<std::byte, 64> out;
  ASSERT_TRUE(engine_->BeginGet("hot", out, kNsPerSecond, 77));
  std::array<Completion, 2> done;
  ASSERT_EQ(engine_->Poll(clock_.now_ns, done), 1u);
  EXPECT_EQ(done[0].user_data, 77u);
  EXPECT_TRUE(done[0].found && done[0].cost.from_near_cache);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), done[0].info.value_bytes),
            "hot value");
  EXPECT_EQ(engine_->alive(), 0u);
}

// GETs that are reported at once do not overtake writes of their keys.
class ReportedAtOnceTest : public NearCacheTest {
 protected:
  // Polls once. Returns whether the GET with this `user_data` was answered from a copy.
  bool IsLocalIn(uint64_t user_data) {
    std::array<Completion, 8> done;
    const size_t n = engine_->Poll(clock_.now_ns, done);
    return std::any_of(done.begin(), done.begin() + n, [&](const Completion& it) {
      return it.user_data == user_data && it.cost.from_near_cache;
    });
  }
  bool IsLocalAtOnce(const std::string& key) {
    EXPECT_TRUE(engine_->BeginGet(key, out_, kNsPerSecond, ++begun_));
    return IsLocalIn(begun_);
  }

  std::array<std::byte, 64> out_;
};

TEST_F(ReportedAtOnceTest, NoGetBehindAWriteThatIsUnderWay) {
  ConnectAndWarm();
  server_->answer = nullptr;
  const uint64_t put = BeginPut("hot", "new");
  EXPECT_FALSE(IsLocalAtOnce("hot")) << "both begin in the same Poll";
  EXPECT_FALSE(IsLocalAtOnce("hot")) << "it was begun in an earlier one";
  AnswerEverything();
  PassMs(2'000);
  ASSERT_TRUE(HasEnded(put));
  Renew();
  Warm("hot");
  EXPECT_TRUE(IsLocalAtOnce("hot"));
}

TEST_F(ReportedAtOnceTest, AGetBesideAWriteOfAnotherKeyOrBeforeOneOfItsKey) {
  ConnectAndWarm();
  server_->answer = nullptr;
  BeginPut("other", "new");
  EXPECT_TRUE(IsLocalAtOnce("hot")) << "both begin in the same Poll";
  EXPECT_TRUE(IsLocalAtOnce("hot")) << "the write is under way";
  ASSERT_TRUE(engine_->BeginGet("hot", out_, kNsPerSecond, ++begun_));
  const uint64_t get = begun_;
  BeginPut("hot", "new");
  EXPECT_TRUE(IsLocalIn(get)) << "the write was begun behind it";
}

TEST_F(ReportedAtOnceTest, WhatFindsNoRoomIsAnsweredAllTheSame) {
  ConnectAndWarm();
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(engine_->BeginGet("hot", out_, kNsPerSecond, ++begun_));
  }
  std::array<Completion, 1> done;
  ASSERT_EQ(engine_->Poll(clock_.now_ns, done), 1u);
  EXPECT_TRUE(done[0].cost.from_near_cache);
  Settle();
  EXPECT_TRUE(ended_.at(begun_ - 1).cost.from_near_cache);
  EXPECT_EQ(ended_.at(begun_).value, "hot value");
}

TEST_F(ReportedAtOnceTest, OfAnItemThatHasExpiredNothing) {
  ConnectAndWarmOneThatExpires();
  ExpectAnswersUntilItExpires([&] {
    const bool local = IsLocalAtOnce("short");
    Settle();
    return local;
  });
}

// Polls that have nothing else to do leave out the sessions, but not for long.
TEST_F(ReportedAtOnceTest, LeasesAreRenewedByPollsThatOnlyAnswer) {
  ConnectAndWarm();
  constexpr int kStepsOfMs = 20, kMs = 500;
  int others = 0;
  for (int i = 0; i < kMs * kStepsOfMs; ++i) {
    clock_.now_ns += kNsPerMs / kStepsOfMs;
    if (i % (5 * kStepsOfMs) == 0) Renew();
    others += !IsLocalAtOnce("hot");
    while (softverbs_step() > 0) {
    }
    server_->Step();
  }
  EXPECT_LE(others, kMs / 20);
  EXPECT_GT(ReadsOfLeases(), static_cast<uint64_t>(kMs) / 20);
}

// What a caller is told who waits: without an operation.
class AskedAtOnceTest : public NearCacheTest {
 protected:
  bool IsLocalNow(const std::string& key) {
    return engine_->FindNear(key, clock_.now_ns) != nullptr;
  }
};

TEST_F(AskedAtOnceTest, ACopyIsFoundWithoutAnOperation) {
  ConnectAndWarm();
  const uint64_t answers = engine_->servers().Info()[0].near_cache_answers;
  const ItemCopies::Copy* const copy = engine_->FindNear("hot", clock_.now_ns);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->value, "hot value");
  const ItemInfo info = engine_->servers()[0].MakeItemInfo(copy->header, clock_.now_ns);
  EXPECT_EQ(info.flags, 7u);
  EXPECT_EQ(info.value_bytes, 9u);
  EXPECT_NE(info.version, 0u);
  EXPECT_EQ(engine_->servers().Info()[0].near_cache_answers, answers + 1);
  EXPECT_FALSE(IsLocalNow("other")) << "it is not leased";
  EXPECT_EQ(engine_->busy(), 0u);
}

TEST_F(AskedAtOnceTest, KeysOfEachLength) {
  Connect(8, UseNearCache);
  std::vector<std::string> keys;
  for (const size_t bytes : {1, 9, 16, 100}) {
    const auto place = static_cast<uint32_t>(keys.size());
    keys.emplace_back(bytes, 'k');
    AddItem(keys.back(), "value");
    Lease(place, keys.back());
  }
  Renew();
  for (const std::string& key : keys) {
    Warm(key);
    EXPECT_TRUE(IsLocalNow(key)) << key;
  }
  EXPECT_FALSE(IsLocalNow(""));
  EXPECT_FALSE(IsLocalNow(std::string(kKeyBytesMax + 1, 'k')));
}

TEST_F(AskedAtOnceTest, NothingBehindAWriteOfItsKey) {
  ConnectAndWarm();
  server_->answer = nullptr;
  const uint64_t put = BeginPut("hot", "new");
  EXPECT_FALSE(IsLocalNow("hot")) << "it begins in the next Poll";
  PollOnce();
  EXPECT_FALSE(IsLocalNow("hot")) << "it is under way";
  BeginPut("other", "new");
  PollOnce();
  AnswerEverything();
  PassMs(2'000);
  ASSERT_TRUE(HasEnded(put));
  Renew();
  Warm("hot");
  EXPECT_TRUE(IsLocalNow("hot"));
}

TEST_F(AskedAtOnceTest, NothingAtTheEndOfTheLease) {
  AskAtTheEndOfTheLease([this] {
    const bool local = IsLocalNow("hot");
    if (!local) IsLocal("hot");  // it is time for a Poll
    return local;
  });
}

TEST_F(AskedAtOnceTest, OfAnItemThatHasExpiredNothing) {
  ConnectAndWarmOneThatExpires();
  const ItemCopies::Copy* const copy = engine_->FindNear("short", clock_.now_ns);
  ASSERT_NE(copy, nullptr);
  EXPECT_GT(engine_->servers()[0].MakeItemInfo(copy->header, clock_.now_ns).ttl_left.count(), 0);
  ExpectAnswersUntilItExpires([&] { return IsLocalNow("short") || IsLocal("short"); });
}

// As it is a Poll that READs the header, and tells of uses.
TEST_F(AskedAtOnceTest, LeasesAreRenewedByCallsThatOnlyAsk) {
  ConnectAndWarm();
  constexpr int kStepsOfMs = 20, kMs = 500;
  int operations = 0, others = 0;
  for (int i = 0; i < kMs * kStepsOfMs; ++i) {
    clock_.now_ns += kNsPerMs / kStepsOfMs;
    if (i % (5 * kStepsOfMs) == 0) Renew();
    if (IsLocalNow("hot")) continue;
    ++operations;
    others += !IsLocal("hot");
  }
  EXPECT_LE(others, kMs / 20);
  EXPECT_GE(operations, kMs / 10);
  EXPECT_LE(operations, kMs);
}

TEST_F(NearCacheTest, TheServerIsAskedOnceASessionAndNotWithoutNearCache) {
  Connect(8);
  PassMs(20);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(IsLocal("hot"));
  EXPECT_EQ(server_->asked_for_leases(), 0u);
  ConnectAndWarm();
  EXPECT_EQ(server_->asked_for_leases(), 1u);
}

TEST_F(NearCacheTest, AServerWithoutLeasesIsNotAsked) {
  server_->grant().features &= static_cast<uint16_t>(~kGrantItemLeases);
  Connect(8, UseNearCache);
  PassMs(20);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(IsLocal("hot"));
  EXPECT_EQ(server_->asked_for_leases(), 0u);
  EXPECT_EQ(ReadsOfLeases(), 0u);
}

TEST_F(NearCacheTest, NothingIsAnsweredAtTheEndOfTheLease) {
  AskAtTheEndOfTheLease([this] { return IsLocal("hot"); });
}

TEST_F(NearCacheTest, AnswersGoOnAsLongAsTheServerRenews) {
  ConnectAndWarm();
  int others = 0;
  const uint64_t reads = ReadsOfLeases();
  for (int i = 0; i < 1000; ++i) {
    clock_.now_ns += kNsPerMs;
    if (i % 5 == 0) Renew();
    others += !IsLocal("hot");
  }
  EXPECT_LE(others, 10);
  EXPECT_LE(ReadsOfLeases() - reads, 250u) << "of 64 bytes, in a second";
}

// The word goes, and then the generation grows. Copies count again when the words were READ anew.
TEST_F(NearCacheTest, WordsCountForOneGeneration) {
  ConnectAndWarm();
  Lease(1, "other");
  server_->SetLeaseWord(0, 0);
  ++generation_;
  clock_.now_ns += 15 * kNsPerMs;
  Renew();
  IsLocal("hot");  // right, as the former end is not over
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(IsLocal("hot"));
  Warm("other");
}

// Whatever happens between the READs: words that were there before the header of their generation
// was READ do not count. The word goes after the first READ of memory, whichever that is.
TEST_F(NearCacheTest, WordsAreReadBehindTheirHeader) {
  ConnectAndWarm();
  ++generation_;
  clock_.now_ns += 30 * kNsPerMs;
  Renew();
  for (int i = 0; i < 8; ++i) BeginKey(OpType::kGet, "hot");
  const uint64_t reads = ReadsOfLeases();
  ASSERT_EQ(softverbs_set_faults("seed=1,delay_post=1:1us", nullptr, 0), 0);
  PollOnce();
  ASSERT_EQ(ReadsOfLeases(), reads + 1) << "one at a time";
  while (softverbs_step() > 0) {
  }
  softverbs_clear_faults();
  server_->SetLeaseWord(0, 0);
  ++generation_;
  Renew();
  Settle();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(IsLocal("hot"));
}

TEST_F(NearCacheTest, AnItemThatHasExpiredIsNotAnsweredThoughItIsLeased) {
  ConnectAndWarmOneThatExpires();
  EXPECT_EQ(Get("short").info.expiry_ms, expiry_ms_);
  ExpectAnswersUntilItExpires([&] { return IsLocal("short"); });
}

TEST_F(NearCacheTest, AGetBehindAWriteOfItsKeyIsRead) {
  ConnectAndWarm();
  const uint64_t put = BeginPut("hot", "new");
  const uint64_t behind = BeginKey(OpType::kGet, "hot");
  const uint64_t other_put = BeginPut("other", "new");
  Settle();
  ASSERT_TRUE(HasEnded(put) && HasEnded(behind) && HasEnded(other_put));
  EXPECT_FALSE(ended_[behind].cost.from_near_cache);
  BeginPut("other", "new");
  const uint64_t beside = BeginKey(OpType::kGet, "hot");
  Settle();
  EXPECT_TRUE(ended_[beside].cost.from_near_cache) << "the write is of another key";
}

TEST_F(NearCacheTest, LocksUseNoCopies) {
  ConnectAndWarm();
  const uint64_t locked = BeginKey(OpType::kLockAndGet, "hot");
  Settle();
  EXPECT_FALSE(ended_[locked].cost.from_near_cache);
  EXPECT_GE(ended_[locked].cost.reads, 1);
}

TEST_F(NearCacheTest, NothingIsAnsweredOnAnotherConnectionUntilTheWordsAreReadAgain) {
  ConnectAndWarm();
  server_->SetLeaseWord(0, 0);
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  for (int ms = 0; ms < 100; ++ms) {
    PassMs(1, 1);
    Renew();
  }
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(IsLocal("hot"));
  EXPECT_EQ(server_->asked_for_leases(), 2u);
}

// No leases, items that are READ again and again: it looks for words, but seldom.
TEST_F(NearCacheTest, WordsThatAnswerNothingAreReadSeldom) {
  Connect(8, UseNearCache);
  Lease(0, "other");
  for (int ms = 0; ms < 10'000; ms += 5) {
    clock_.now_ns += 5 * kNsPerMs;
    Renew();
    for (int i = 0; i < 8; ++i) EXPECT_FALSE(IsLocal("hot"));
  }
  EXPECT_LE(ReadsOfLeases(), 30u) << "in 10 s";
  EXPECT_GE(ReadsOfLeases(), 2u);
}

// The longer they answered nothing, the more seldom.
TEST_F(NearCacheTest, WordsThatAnswerNothingAreHardlyReadAnyMore) {
  Connect(8, UseNearCache);
  Lease(0, "other");
  const auto reads_in_s = [this](int seconds) {
    const uint64_t before = ReadsOfLeases();
    for (int ms = 0; ms < seconds * 1000; ms += 5) {
      clock_.now_ns += 5 * kNsPerMs;
      Renew();
      for (int i = 0; i < 8; ++i) Get("hot");
    }
    return ReadsOfLeases() - before;
  };
  reads_in_s(20);
  EXPECT_LE(reads_in_s(40), 8u) << "header and words: in a pause that is over, or twice as often";
}

// Items that are READ evenly for hours.
TEST_F(NearCacheTest, WordsThatAnswerNothingAreNotReadInTheEnd) {
  Connect(8, UseNearCache);
  Lease(0, "other");
  constexpr uint32_t kItems = 4;
  for (uint32_t i = 0; i < kItems; ++i) AddItem(std::to_string(i), "value");
  uint32_t gets = 0;
  const auto reads_in_an_hour = [&] {
    const uint64_t before = ReadsOfLeases();
    for (int s = 0; s < 3600; s += 4) {
      PassMs(4'000, 100);
      Renew();
      for (uint32_t i = 0; i < 2 * NearCache::kSampleEvery; ++i) {
        Get(std::to_string(Mix64(++gets) % kItems));
      }
    }
    return ReadsOfLeases() - before;
  };
  EXPECT_LE(reads_in_an_hour(), 50u);
  EXPECT_LE(reads_in_an_hour(), 6u) << "header and words each time";
}

// It is leased in the pause.
TEST_F(NearCacheTest, WhatIsReadOftenIsLookedForBeforeThePauseIsOver) {
  Connect(8, UseNearCache);
  Lease(0, "other");
  Renew();
  for (int i = 0; i < 64; ++i) EXPECT_FALSE(IsLocal("hot"));
  const uint64_t reads = ReadsOfLeases();
  EXPECT_GE(reads, 2u);
  Lease(1, "hot");
  const int64_t from_ns = clock_.now_ns;
  int gets = 0;
  for (; gets < 10'000 && !IsLocal("hot"); ++gets) {
    clock_.now_ns += kNsPerMs / 100;
    Renew();
  }
  EXPECT_GE(gets, 900);
  EXPECT_LE(gets, 2048);
  EXPECT_LT(clock_.now_ns - from_ns, 200 * kNsPerMs);
  EXPECT_LE(ReadsOfLeases(), reads + 2);
}

TEST_F(NearCacheTest, ForGetsThatComeSeldomTheHeaderIsNotRead) {
  ConnectAndWarm();
  const uint64_t reads = ReadsOfLeases();
  for (int i = 0; i < 200; ++i) {
    clock_.now_ns += 25 * kNsPerMs;
    Renew();
    IsLocal("hot");
  }
  EXPECT_EQ(ReadsOfLeases(), reads);
}

TEST_F(NearCacheTest, TheMemoryIsLimited) {
  Connect(8, [](Engine::Settings& settings) {
    settings.options.near_cache_bytes = NearCache::kBytesMin;
  });
  constexpr uint32_t kItems = 10;
  for (uint32_t i = 0; i < kItems; ++i) {
    const std::string key = "key" + std::to_string(i);
    AddItem(key, std::string(600, 'v'));
    Lease(i, key);
  }
  Renew();
  for (int round = 0; round < 50; ++round) {
    for (uint32_t i = 0; i < kItems; ++i) Get("key" + std::to_string(i));
  }
  EXPECT_LE(engine_->servers().Info()[0].near_cache_items, NearCache::kBytesMin / 600);
  EXPECT_GE(engine_->servers().Info()[0].near_cache_items, 1u);
}

TEST_F(NearCacheTest, BytesThatCannotBeAreRefused) {
  for (const uint64_t bytes : {uint64_t{1}, NearCache::kBytesMin - 1, NearCache::kBytesMax + 1}) {
    Engine::Settings settings{.endpoints = {server_->endpoint()}, .clock = clock_};
    settings.options.near_cache_bytes = bytes;
    const absl::Status status = Engine::Create(std::move(settings)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find("near_cache_bytes"), std::string::npos) << status;
  }
}

// A write that the server puts off comes again when the lease is over, and not before.
TEST_F(NearCacheTest, AWriteComesAgainWhenTheServerSays) {
  Connect(8, UseNearCache);
  bool leased = true;
  server_->answer = [&leased](const FakeServer::Request& request) {
    ReplyHeader reply =
        FakeServer::ReplyTo(request, leased ? ReplyStatus::kTryAgain : ReplyStatus::kOk);
    if (leased) reply.words[0] = kPutOffInOrder;
    if (leased) reply.words[kPutOffMsWord] = 17;
    return reply;
  };
  const uint64_t put = BeginPut("hot", "new");
  Settle();
  leased = false;
  PassMs(16, 1);
  EXPECT_EQ(server_->Count(Opcode::kPut), 1u);
  EXPECT_FALSE(HasEnded(put));
  PassMs(1, 1);
  EXPECT_TRUE(HasEnded(put));
  EXPECT_EQ(server_->Count(Opcode::kPut), 2u);
}

// A server in a group, whose primary's lease is far longer than that of items.
class NearCacheInGroupTest : public NearCacheTest {
 protected:
  static constexpr int64_t kPrimaryLeaseMs = 400;

  void SetUp() override {
    NearCacheTest::SetUp();
    server_->grant().history = 7;
    server_->lease_left_ms = [this] {
      const int64_t left_ms = (primary_until_ns_ - clock_.now_ns) / kNsPerMs;
      return static_cast<uint16_t>(std::clamp<int64_t>(left_ms, 0, kPrimaryLeaseMs));
    };
  }

  int64_t primary_until_ns_ = INT64_MAX / 2;
};

TEST_F(NearCacheInGroupTest, NothingIsAnsweredWithoutThePrimarysLease) {
  ConnectAndWarm();
  primary_until_ns_ = clock_.now_ns + kPrimaryLeaseMs * kNsPerMs;
  for (int ms = 0; ms < 3 * kPrimaryLeaseMs; ++ms) {
    clock_.now_ns += kNsPerMs;
    Renew();
    const uint64_t get = BeginKey(OpType::kGet, "hot", 10'000);
    Settle();
    const bool local = HasEnded(get) && ended_[get].cost.from_near_cache;
    EXPECT_FALSE(local && clock_.now_ns >= primary_until_ns_) << ms;
    EXPECT_TRUE(local || ms >= kPrimaryLeaseMs / 2) << ms;
  }
}

// Answers without verbs keep the session from being idle: so it asks for the lease.
TEST_F(NearCacheInGroupTest, AnswersAskForThePrimarysLease) {
  ConnectAndWarm();
  constexpr int kStepsOfMs = 20;
  int others = 0;
  for (int i = 0; i < 3 * kPrimaryLeaseMs * kStepsOfMs; ++i) {
    clock_.now_ns += kNsPerMs / kStepsOfMs;
    if (i % (5 * kStepsOfMs) == 0) Renew();
    others += !IsLocal("hot");
  }
  EXPECT_LE(others, 4);
}

// Two groups of one cluster. A newer map ends what was READ of leases.
class NearCacheOfClusterTest : public MovesTest {
 protected:
  void ConnectWithNearCache() {
    Connect(8, [this](Engine::Settings& settings) {
      settings.endpoints = {absl::StrCat("cluster:", Of(0).endpoint())};
      UseNearCache(settings);
    });
    Settle();
    ASSERT_EQ(engine_->servers().size(), 2u);
  }
};

TEST_F(NearCacheOfClusterTest, NothingIsAnsweredByWordsOfAnOlderMap) {
  const std::string key = KeyOfHalf(0), moved = KeyOfHalf(0, 1);
  for (FakeServer* server : groups_) {
    server->time_ms = [this] { return static_cast<uint64_t>(clock_.now_ns / kNsPerMs); };
    server->LeaseItems(kWords, 100);
  }
  PutItem(0, key, "value");
  ConnectWithNearCache();
  HandMadeRegion& region = Of(0).region();
  const Slot slot(region.bucket(region.HomeOf(key)).slots[0]);
  Of(0).SetLeaseWord(0, ItemField<uint64_t>(region.at(slot.offset()), 0));
  const auto renew = [this] {
    Of(0).SetLeaseHeader(1, static_cast<uint64_t>(clock_.now_ns / kNsPerMs) + 100);
  };
  const auto is_local = [&] {
    const uint64_t get = BeginKey(OpType::kGet, key);
    Settle();
    EXPECT_TRUE(HasEnded(get));
    return ended_[get].cost.from_near_cache;
  };
  renew();
  for (int i = 0; i < 100 && !is_local(); ++i) {
  }
  ASSERT_TRUE(is_local());
  Of(0).SetLeaseWord(0, 0);
  Give(moved, 1);
  Tell();
  ASSERT_TRUE(is_local()) << "the client does not know of the map";
  engine_->WantMap(map_.revision);
  for (int i = 0; i < 100 && engine_->known_map().revision < map_.revision; ++i) PassMs(1, 1);
  ASSERT_EQ(engine_->known_map().revision, map_.revision);
  renew();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(is_local());
}

}  // namespace
}  // namespace gannet
