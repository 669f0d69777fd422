// A client of a cluster of groups whose partitions move: docs/partitions.md.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/partition_map.h"
#include "tests/client/engine/fake_run.h"
#include "tests/client/engine/moves_fixture.h"

namespace gannet {
namespace {

using Keys = std::vector<std::string>;

TEST_F(MovesTest, AClientAsksOneGroupForTheMapAndFindsAll) {
  ConnectToCluster();
  EXPECT_EQ(Asked(), 1u);
  const uint64_t low = BeginPut(KeyOfHalf(0), "v"), high = BeginPut(KeyOfHalf(1), "v");
  Settle();
  EXPECT_TRUE(HasEnded(low) && HasEnded(high));
  EXPECT_EQ(Got(0), Keys({KeyOfHalf(0)}));
  EXPECT_EQ(Got(1), Keys({KeyOfHalf(1)}));
}

TEST_F(MovesTest, HoweverManyGroupsThereAreTheMapIsAskedForOnceEvery32Seconds) {
  ConnectToCluster();
  PassMs(120'000, /*step_ms=*/100);
  EXPECT_EQ(Asked(), 8u) << "after 0, 1, 3, 7, 15, 31, 63 and 95 s";
}

TEST_F(MovesTest, WhatAGroupRefusesGoesToTheOwner) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  Close(key);
  Give(key, 1);
  Tell();
  Refuse();
  const uint64_t put = BeginPut(key, "v"), get = BeginKey(OpType::kGet, KeyOfHalf(1));
  PassMs(20);
  ASSERT_TRUE(HasEnded(put));
  EXPECT_EQ(ended_[put].outcome, Outcome::kOk);
  EXPECT_EQ(Got(0), Keys({key}));
  EXPECT_EQ(Got(1), Keys({key}));
  EXPECT_TRUE(HasEnded(get));
  EXPECT_EQ(Asked(), 2u);
}

TEST_F(MovesTest, WhileAPartitionIsClosedItsOperationsWaitWithoutReads) {
  const std::string key = KeyOfHalf(0);
  PutItem(0, key, "old");
  PutItem(1, key, "new");
  ConnectToCluster();
  Close(key);
  Tell();
  Refuse();
  const uint64_t put = BeginPut(key, "v", 10'000);
  Settle();
  EXPECT_EQ(Got(0).size(), 1u) << "from here on the map is known";
  const uint64_t get = BeginKey(OpType::kGet, key, 10'000), late = BeginPut(key, "v", 300);
  PassMs(400);
  EXPECT_FALSE(HasEnded(put) || HasEnded(get));
  ASSERT_TRUE(HasEnded(late)) << "deadlines hold";
  EXPECT_EQ(ended_[late].outcome, Outcome::kUnavailable) << "not applied";
  EXPECT_EQ(Got(0).size() + Got(1).size(), 1u);
  Give(key, 1);
  Tell();
  PassMs(100);
  ASSERT_TRUE(HasEnded(put) && HasEnded(get));
  EXPECT_EQ(ended_[get].value, "new");
  EXPECT_EQ(ended_[get].cost.reads, 2u) << "none of them of the closed partition";
  EXPECT_EQ(Got(1), Keys({key}));
}

TEST_F(MovesTest, WhileItWaitsTheClientAsksForTheMapLessAndLessOften) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  PassMs(1500);
  const uint32_t before = Asked();
  Close(key);
  Tell();
  Refuse();
  BeginPut(key, "v", 10'000);
  PassMs(400, /*step_ms=*/1);
  EXPECT_EQ(Asked() - before, 22u) << "after 0, 5 (the map was newer), 10, 20, 40, 60 ... 380 ms";
  PassMs(1000, /*step_ms=*/1);
  const uint32_t later = Asked();
  PassMs(1000, /*step_ms=*/1);
  EXPECT_LE(Asked() - later, 12u) << "every 100 ms, and as ever";
}

// The giver's memory still has the item, and its NIC serves the READ.
TEST_F(MovesTest, WhatWasReadOfAPartitionThatMovedIsReadAgain) {
  const std::string key = KeyOfHalf(0), stays = KeyOfHalf(0, 1);
  PutItem(0, key, "old");
  PutItem(1, key, "new");
  PutItem(0, stays, "stays");
  ConnectToCluster();
  has_lease_ = false;
  PassMs(kLeaseMs);
  const uint64_t moved = BeginHeldGet(key), other = BeginHeldGet(stays);
  Settle();
  EXPECT_FALSE(HasEnded(moved) || HasEnded(other));
  Close(key);
  Give(key, 1);
  Tell();
  has_lease_ = true;
  PassMs(200);
  ASSERT_TRUE(HasEnded(moved) && HasEnded(other));
  EXPECT_EQ(ended_[moved].value, "new");
  EXPECT_EQ(ended_[other].value, "stays");
  EXPECT_EQ(ended_[other].cost.reads, 2u) << "what did not move is not READ again";
}

// Its READs are done only once the client knows the map that closes the partition. Nobody else asks
// for the next map.
TEST_F(MovesTest, AnOperationThatBeginsAnewWhileItsPartitionIsClosedHasTheMapAskedFor) {
  const std::string key = KeyOfHalf(0);
  PutItem(0, key, "old");
  PutItem(1, key, "new");
  ConnectToCluster();
  PassMs(1500);
  Close(key);
  Tell();
  has_lease_ = false;
  PassMs(kLeaseMs);
  const uint64_t get = BeginHeldGet(key);
  has_lease_ = true;
  PassMs(100);
  EXPECT_FALSE(HasEnded(get));
  Give(key, 1);
  Tell();
  PassMs(200);
  ASSERT_TRUE(HasEnded(get));
  EXPECT_EQ(ended_[get].value, "new");
}

// It was away meanwhile, and the owner's name does not tell.
TEST_F(MovesTest, WhatWasReadOfAPartitionThatCameBackIsReadAgain) {
  const std::string key = KeyOfHalf(0);
  PutItem(0, key, "old");
  ConnectToCluster();
  has_lease_ = false;
  PassMs(kLeaseMs);
  const uint64_t get = BeginHeldGet(key);  // the window
  Settle();
  PutItem(0, key, "new");
  Close(key);
  Give(key, 1);
  Close(key);
  Give(key, 0);
  Tell();
  has_lease_ = true;
  PassMs(200);
  ASSERT_TRUE(HasEnded(get));
  EXPECT_EQ(ended_[get].value, "new");
}

TEST_F(MovesTest, OnlyThePlacesOfPartitionsThatChangedAreForgotten) {
  const std::string key = KeyOfHalf(0), stays = KeyOfHalf(0, 1);
  PutItem(0, key, "value");
  PutItem(0, stays, "stays");
  ConnectToCluster();
  const auto reads_of = [this](const std::string& of) {
    const uint64_t get = BeginKey(OpType::kGet, of);
    PassMs(20);
    EXPECT_TRUE(ended_[get].found);
    return ended_[get].cost.reads;
  };
  for (int i = 0; i < 3; ++i) reads_of(key), reads_of(stays);
  EXPECT_EQ(reads_of(key), 1u);
  EXPECT_EQ(reads_of(stays), 1u);
  Close(key);
  Give(key, 0);  // it is opened again
  Tell();
  PassMs(kLeaseMs);
  EXPECT_EQ(reads_of(key), 2u);
  EXPECT_EQ(reads_of(stays), 1u);
}

TEST_F(MovesTest, ARequestThatWasSentStaysWithItsGroup) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  Of(0).answer = nullptr;
  Of(0).alter_grant = [](const ConnectRequest& request, Grant* grant) {
    grant->resumed = request.session_token != 0;
  };
  const uint64_t put = BeginPut(key, "v", 10'000);
  Settle();
  Close(key);
  Give(key, 1);
  Tell();
  PassMs(1'500);
  EXPECT_GT(Asked(), 1u) << "the new map is known";
  EXPECT_EQ(Got(1), Keys());
  Of(0).BreakAll();
  PassMs(500);
  EXPECT_EQ(Got(0), Keys({key, key})) << "also over another connection";
  EXPECT_EQ(Got(1), Keys());
  EXPECT_FALSE(HasEnded(put));
  Of(0).AnswerNow(Of(0).requests().back(), Refusal(Of(0).requests().back()));
  Settle();
  EXPECT_TRUE(HasEnded(put));
  EXPECT_EQ(Got(1), Keys({key})) << "it was not executed";
}

// Three PUTs of a key: one was answered before the partition closed, one is refused, and one was
// begun when the new map was known.
TEST_F(MovesTest, WritesOfAKeyKeepTheirOrder) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  Of(0).answer = nullptr;
  Of(1).answer = nullptr;
  BeginPut(key, "1", 10'000);
  const uint64_t second = BeginPut(key, "22", 10'000);
  Settle();
  ASSERT_EQ(Got(0).size(), 2u);
  Close(key);
  Give(key, 1);
  Tell();
  PassMs(1'500);
  BeginPut(key, "333", 10'000);
  Settle();
  EXPECT_EQ(Got(1), Keys()) << "those ahead may be refused";
  Of(0).AnswerNow(Of(0).requests()[0], ReplyStatus::kOk);
  Settle();
  EXPECT_EQ(Got(1), Keys());
  Of(0).AnswerNow(Of(0).requests()[1], Refusal(Of(0).requests()[1]));
  Settle();
  ASSERT_EQ(Got(1).size(), 1u);
  EXPECT_EQ(Of(1).requests()[0].header.value_bytes, 2u);
  Of(1).AnswerNow(Of(1).requests()[0], ReplyStatus::kOk);
  Settle();
  EXPECT_TRUE(HasEnded(second));
  ASSERT_EQ(Got(1).size(), 2u);
  EXPECT_EQ(Of(1).requests()[1].header.value_bytes, 3u);
}

// All are refused, and the client learns of the map only then.
TEST_F(MovesTest, WritesThatAreRefusedKeepTheirOrder) {
  constexpr uint32_t kWrites = 6;
  const std::string key = KeyOfHalf(0);
  Of(0).grant().credits = 2;  // so some are sent, and some wait
  ConnectToCluster();
  Of(0).answer = nullptr;
  std::vector<uint64_t> puts;
  const std::string value(kWrites, 'v');  // stays until all have ended
  for (uint32_t i = 1; i <= kWrites; ++i) {
    puts.push_back(BeginPut(key, std::string_view(value).substr(0, i)));
  }
  Settle();
  ASSERT_EQ(Got(0).size(), 2u);
  Close(key);
  Give(key, 1);
  Tell();
  Refuse();
  for (int i = 0; i < 2; ++i) Of(0).AnswerNow(Of(0).requests()[i], Refusal(Of(0).requests()[i]));
  PassMs(100);
  for (const uint64_t put : puts) EXPECT_EQ(ended_[put].outcome, Outcome::kOk);
  ASSERT_EQ(Got(1).size(), kWrites);
  for (uint32_t i = 0; i < kWrites; ++i) {
    EXPECT_EQ(Of(1).requests()[i].header.value_bytes, i + 1);
  }
}

// One is refused, the answer to the one behind it is lost, and the move is given up. The next
// primary of the group does not know what was refused.
TEST_F(MovesTest, WhatIsBehindARefusedWriteDoesNotOvertakeItOverTheNextConnection) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  Of(0).answer = nullptr;
  Of(0).alter_grant = [](const ConnectRequest& request, Grant* grant) {
    grant->resumed = request.session_token != 0;
  };
  const uint64_t first = BeginPut(key, "1", 10'000), second = BeginPut(key, "22", 10'000);
  Settle();
  ASSERT_EQ(Got(0).size(), 2u);
  Close(key);
  Of(0).AnswerNow(Of(0).requests()[0], Refusal(Of(0).requests()[0]));
  Settle();
  Of(0).answer = [](const FakeServer::Request& request) { return FakeServer::ReplyTo(request); };
  Of(0).BreakAll();
  PassMs(500);
  EXPECT_EQ(Got(0).size(), 2u) << "the first one waits for a newer map";
  Give(key, 0);
  Tell();
  PassMs(500);
  EXPECT_TRUE(HasEnded(first) && HasEnded(second));
  ASSERT_EQ(Got(0).size(), 4u);
  EXPECT_EQ(Of(0).requests()[2].header.value_bytes, 1u);
  EXPECT_EQ(Of(0).requests()[2].header.flags, kSentAgain);
  EXPECT_EQ(Of(0).requests()[3].header.value_bytes, 2u);
  EXPECT_EQ(Of(0).requests()[3].header.flags, 0);
}

// A next primary may refuse that one, and must not take the word of what is behind it for an
// answer.
TEST_F(MovesTest, AWriteBehindOneWithoutAnAnswerDoesNotSayThatTheClientWasTold) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  Of(0).answer = nullptr;
  BeginPut(key, "1", 10'000);
  BeginPut(key, "22", 10'000);
  Settle();
  ASSERT_EQ(Got(0).size(), 2u);
  const auto refuse = [this](size_t request) {
    Of(0).AnswerNow(Of(0).requests()[request], Refusal(Of(0).requests()[request]));
    PassMs(100);
  };
  refuse(1);
  ASSERT_EQ(Got(0).size(), 3u);
  EXPECT_EQ(Of(0).requests()[2].header.flags, 0);
  Of(0).AnswerNow(Of(0).requests()[0], ReplyStatus::kOk);
  Settle();
  refuse(2);
  ASSERT_EQ(Got(0).size(), 4u);
  EXPECT_EQ(Of(0).requests()[3].header.flags, kSentAgain);
}

TEST_F(MovesTest, OnlyTheServerThatToldHearsThatTheClientWasTold) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  Close(key);
  Give(key, 1);
  Tell();
  Refuse();
  const uint64_t put = BeginPut(key, "v");
  PassMs(100);
  EXPECT_TRUE(HasEnded(put));
  ASSERT_EQ(Got(1).size(), 1u);
  EXPECT_EQ(Of(1).requests()[0].header.flags, 0);
}

// The owner has not seen its own map yet.
TEST_F(MovesTest, AnOwnerThatRefusesIsAskedAgain) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  const uint64_t old = map_.revision;
  Close(key);
  Give(key, 1);
  Tell();
  Refuse();
  bool knows = false;
  Of(1).answer = [&](const FakeServer::Request& request) {
    if (knows) return FakeServer::ReplyTo(request);
    ReplyHeader reply = FakeServer::ReplyTo(request, ReplyStatus::kElsewhere);
    reply.write.version = old;
    return reply;
  };
  const uint64_t put = BeginPut(key, "v");
  PassMs(100);
  EXPECT_FALSE(HasEnded(put));
  EXPECT_GT(Got(1).size(), 2u);
  EXPECT_LT(Got(1).size(), 10u) << "not all the time";
  knows = true;
  PassMs(100);
  EXPECT_EQ(ended_[put].outcome, Outcome::kOk);
}

TEST_F(MovesTest, LocksOfAPartitionThatMovedAreLost) {
  const std::string key = KeyOfHalf(0), stays = KeyOfHalf(0, 1);
  ConnectToCluster();
  const Lock lost = TakeLock(key), kept = TakeLock(stays);
  const uint64_t word = Of(0).region().HashOf(key).LockIndex(Of(0).grant().lock_words);
  EXPECT_NE(Of(0).lock_word(word), 0u);
  Close(key);
  Give(key, 1);
  Tell();
  PassMs(1'500);
  const auto write_under = [this](const Lock& under) {
    PutOptions options;
    options.only_if_version = 1;
    options.lock = &under;
    const uint64_t put = Begin(PutRequest(under.key, "v", options));
    Settle();
    return ended_[put].outcome;
  };
  EXPECT_EQ(write_under(lost), Outcome::kLockLost);
  EXPECT_EQ(write_under(kept), Outcome::kOk);
  EXPECT_EQ(Got(1), Keys());
  const uint64_t unlock = Begin(UnlockRequest(lost)), unlock_kept = Begin(UnlockRequest(kept));
  Settle();
  EXPECT_EQ(ended_[unlock].outcome, Outcome::kLockLost);
  EXPECT_EQ(Of(0).lock_word(word), 0u) << "others may share the word";
  EXPECT_EQ(ended_[unlock_kept].outcome, Outcome::kOk);
}

// The server still has the lock's word, and does not know what happened elsewhere.
TEST_F(MovesTest, ALockWhosePartitionWasAwayIsNotExtended) {
  const std::string key = KeyOfHalf(0), stays = KeyOfHalf(0, 1);
  ConnectToCluster();
  const Lock lost = TakeLock(key), kept = TakeLock(stays);
  Close(key);
  Give(key, 1);
  Close(key);
  Give(key, 0);
  Tell();
  PassMs(kLeaseMs);  // an idle client hears of no map
  ASSERT_EQ(engine_->known_map().revision, 0u);
  const uint64_t extend = Begin(*ExtendRequest(lost, std::chrono::milliseconds(5'000)));
  const uint64_t extend_kept = Begin(*ExtendRequest(kept, std::chrono::milliseconds(5'000)));
  PassMs(100);
  EXPECT_GE(Got(0).size(), 2u) << "both were answered with OK";
  EXPECT_EQ(ended_[extend].outcome, Outcome::kLockLost);
  EXPECT_EQ(ended_[extend_kept].outcome, Outcome::kOk);
}

TEST_F(MovesTest, GroupsComeAndGo) {
  const std::string key = KeyOfHalf(0);
  ConnectToCluster();
  map_.groups.push_back({"g3", {}});
  Change(key);
  Tell();
  PassMs(1'000);
  EXPECT_EQ(engine_->servers().size(), 2u) << "none of its members was started";
  map_.groups[2].addresses = {Of(2).endpoint()};
  Close(key);
  Give(key, 2);
  Tell();
  Refuse();
  const uint64_t put = BeginPut(key, "v", 10'000);
  PassMs(200);
  EXPECT_EQ(ended_[put].outcome, Outcome::kOk);
  EXPECT_EQ(Got(2), Keys({key}));
  EXPECT_EQ(engine_->servers().Info().size(), 3u);
  EXPECT_EQ(engine_->servers().Info()[2].name, "g3");
  // g2 goes, and others have other numbers.
  for (uint16_t& group : map_.partitions) group = group == 1 ? 0 : group == 2 ? 1 : 0;
  map_.groups.erase(map_.groups.begin() + 1);
  for (uint32_t p = kPartitions / 2; p < kPartitions; ++p) map_.changed[p] = map_.revision + 1;
  ++map_.revision;
  Tell();
  PassMs(5'000, /*step_ms=*/100);
  ASSERT_EQ(engine_->servers().Info().size(), 2u);
  EXPECT_EQ(engine_->servers().Info()[1].name, "g3");
  const uint64_t again = BeginPut(key, "v"), high = BeginPut(KeyOfHalf(1), "v");
  Of(0).answer = Of(1).answer;
  Settle();
  EXPECT_EQ(ended_[again].outcome, Outcome::kOk);
  EXPECT_EQ(ended_[high].outcome, Outcome::kOk);
  EXPECT_EQ(Got(2), Keys({key, key}));
  EXPECT_EQ(Got(1), Keys());
}

// A client of the only group, whose map is of revision 0 and looks at no key.
TEST_F(MovesTest, AClientOfTheOnlyGroupBecomesOneOfSeveral) {
  const std::string key = KeyOfHalf(0);
  PutItem(1, key, "new");
  map_.groups.pop_back();
  map_.partitions.assign(kPartitions, 0);
  Tell();
  Connect(8, [this](Engine::Settings& settings) {
    settings.endpoints = {absl::StrCat("cluster:", Of(0).endpoint())};
  });
  EXPECT_EQ(engine_->servers().size(), 1u);
  map_.groups.push_back({"g2", {Of(1).endpoint()}});
  Close(key);
  Give(key, 1);
  Tell();
  const uint64_t get = BeginKey(OpType::kGet, key, 5'000);
  Settle();
  EXPECT_FALSE(ended_[get].found) << "the lease is valid for the old map still";
  PassMs(kLeaseMs);
  const uint64_t again = BeginKey(OpType::kGet, key, 5'000);
  PassMs(200);
  EXPECT_EQ(ended_[again].value, "new");
  EXPECT_EQ(engine_->servers().size(), 2u);
}

TEST_F(MovesTest, AMapThatIsWantedIsAskedForSoonAlthoughNoOperationWaits) {
  ConnectToCluster();
  PassMs(1500);
  Close(KeyOfHalf(0));
  Tell();
  engine_->WantMap(1);
  PassMs(10);
  EXPECT_EQ(engine_->known_map().revision, 1u);
  EXPECT_FALSE(engine_->known_map().all_served);
  const uint32_t asked = Asked();
  PassMs(500);
  EXPECT_LE(Asked(), asked + 1) << "it is there";
  Give(KeyOfHalf(0), 1);
  Tell();
  engine_->WantMap(2);
  PassMs(10);
  EXPECT_EQ(engine_->known_map().revision, 2u);
  EXPECT_TRUE(engine_->known_map().all_served);
}

// Those answers hold all credits, and the question for the map needs one. Only group 0 knows the
// new map.
TEST_F(MovesTest, AnswersAreTakenUnderTheServersLeaseAlthoughTheMapIsOld) {
  Of(0).grant().credits = 2;
  ConnectToCluster();
  has_lease_ = false;
  PassMs(kLeaseMs);
  const uint64_t put = BeginPut(KeyOfHalf(0), "v", 5'000);
  const uint64_t other = BeginPut(KeyOfHalf(0, 1), "v", 5'000);
  Settle();
  EXPECT_EQ(Got(0).size(), 2u);
  EXPECT_FALSE(HasEnded(put) || HasEnded(other)) << "nobody knows whether it is primary";
  Close(KeyOfHalf(0, 2));
  Of(0).map = EncodePartitionMap(map_);
  Of(0).leases_from = lost_;
  has_lease_ = true;
  PassMs(500);
  EXPECT_TRUE(HasEnded(put) && HasEnded(other));
  EXPECT_EQ(engine_->known_map().revision, 1u);
}

}  // namespace
}  // namespace gannet
