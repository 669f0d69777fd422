#include <gannet/client.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "common/auth/auth_file.h"
#include "common/protocol/versions.h"
#include "server/group/members/backup.h"
#include "server/main/disk/run_directories.h"
#include "softverbs/tests/support/key_file.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/client/api/patient_options.h"
#include "tests/server/group/members/three_servers.h"

namespace gannet {
namespace {

// So long that a busy machine starves nobody.
GroupTerms Terms(uint32_t lease_ms = 2000) {
  return {.history = 77, .lease_ms = lease_ms, .members = {"n1", "n2", "n3"}};
}

// For values of many MiB, also where ThreadSanitizer looks at each of their bytes.
constexpr Client::Milliseconds kLong(60'000);

std::unique_ptr<Client> Connect(const std::string& address) {
  auto client = Client::Connect({address}, PatientOptions());
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

TEST(GroupServersTest, OneAloneFoundsTheGroupAndServes) {
  ThreeServers group(Terms());
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  const auto client = Connect(group.nodes[0].address);
  ASSERT_TRUE(client->Put("a", "1").ok());
  EXPECT_EQ(client->Get("a")->value().data, "1");
  EXPECT_TRUE(group.Has(0, "a", "1"));
}

// No client keeps its workers awake, so the member has to wake them.
TEST(GroupServersTest, AnIdlePrimaryEndsWhatAMapHasClosed) {
  ThreeServers group(Terms(200));
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  GroupPartitions partitions = {.revision = 3, .lost = 3, .alone = false};
  partitions.served.set().reset(7);
  group.shared.SetPartitions(partitions);
  const Member& member = *group.nodes[0].threads->server().member();
  EXPECT_TRUE(ThreeServers::Await([&] { return member.Look().as_primary.ended_map == 3; }));
}

TEST(GroupServersTest, BackupsHaveWhatThePrimaryHas) {
  // A long value takes a while, in which nobody should count as silent.
  ThreeServers group(Terms(10'000));
  for (size_t i = 0; i < 3; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(3));
  const auto client = Connect(group.nodes[*group.Primary()].address);
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(client->Put("key" + std::to_string(i), std::string(100 + i, 'x')).ok());
  }
  ASSERT_TRUE(client->Delete("key7").ok());
  ASSERT_TRUE(client->Incr("n", 5).ok());
  // Longer than the ring. ThreadSanitizer is slow: a few parts must do.
  const std::string longest(test_support::kThreadSanitizer ? 2 << 20 : 20 << 20, 'l');
  ASSERT_TRUE(client->Put("long", longest, {}, kLong).ok());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(ThreeServers::Await([&] { return group.Has(i, "long", longest); })) << i;
    EXPECT_TRUE(group.Has(i, "key499", std::string(599, 'x'))) << i;
    EXPECT_FALSE(group.Has(i, "key7", std::string(107, 'x'))) << i;
    EXPECT_TRUE(group.Has(i, "n", "5")) << i;
  }
}

TEST(GroupServersTest, ABackupTakesOverWithAllThatWasAcknowledged) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 3; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(3));
  const size_t first = *group.Primary();
  {
    const auto client = Connect(group.nodes[first].address);
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(client->Put("key" + std::to_string(i), std::to_string(i)).ok());
    }
  }
  group.Stop(first);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary().has_value(); }));
  const size_t second = *group.Primary();
  EXPECT_NE(first, second);
  EXPECT_EQ(group.shared.now().configuration.epoch, 2);
  const auto client = Connect(group.nodes[second].address);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(client->Get("key" + std::to_string(i))->value().data, std::to_string(i));
  }
  EXPECT_TRUE(client->Put("key0", "new").ok());
}

// Rule 3 of docs/partitions.md. What was closed before it took over, it never serves.
TEST(GroupServersTest, ANewPrimaryKnowsTheMapBeforeItTakesClients) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(2));
  const size_t first = *group.Primary();
  group.shared.SetWatchesLate();
  GroupPartitions partitions = {.revision = 3, .lost = 3, .alone = false};
  partitions.served.set().reset(PartitionOf("closed"));
  group.shared.SetPartitions(partitions);
  group.Stop(first);
  const Server& server = group.nodes[1 - first].threads->server();
  ASSERT_TRUE(ThreeServers::Await([&] { return server.serves(); }));
  EXPECT_EQ(server.context().standing->partitions().revision(), 3u);
  EXPECT_FALSE(server.context().standing->partitions().Serves("closed"));
}

// A third member sends its takeover, and dies; then the register executes it.
TEST(GroupServersTest, ABackupThatADeadProcessTookOutKeepsItsItemsForAnOperator) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(2));
  const size_t first = *group.Primary();
  const size_t other = 1 - first;
  ASSERT_TRUE(Connect(group.nodes[first].address)->Put("key", "value").ok());
  group.shared.TakeOver({.node = "n3", .incarnation = 1});
  const Member& member = *group.nodes[other].threads->server().member();
  ASSERT_TRUE(ThreeServers::Await([&] { return member.Look().role != Member::Role::kBackup; }));
  EXPECT_FALSE(member.ended());
  group.shared.Force(ThreeServers::NameOf(other), 99);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == other; }));
  const auto client = Connect(group.nodes[other].address);
  EXPECT_EQ(client->Get("key")->value().data, "value");
  EXPECT_TRUE(client->Put("key", "new").ok());
}

// There is a primary, which has all.
TEST(GroupServersTest, ABackupThatIsTakenOutStartsAgainOnceItFindsAPrimary) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(2));
  const Member& member = *group.nodes[1 - *group.Primary()].threads->server().member();
  group.shared.RemoveAllButThePrimary();
  EXPECT_TRUE(ThreeServers::Await([&] { return member.ended(); }));
}

TEST(GroupServersTest, HandsOverToTheOneThatAnOperatorNames) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 3; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(3));
  const size_t first = *group.Primary();
  ASSERT_TRUE(Connect(group.nodes[first].address)->Put("a", "1").ok());
  const size_t next = (first + 1) % 3;
  ASSERT_TRUE(group.HandOverTo(next));
  EXPECT_EQ(Connect(group.nodes[next].address)->Get("a")->value().data, "1");
  // The former primary has no place any more.
  EXPECT_TRUE(
      ThreeServers::Await([&] { return group.nodes[first].threads->server().member()->ended(); }));
  EXPECT_EQ(group.nodes[first].threads->Wait().code(), absl::StatusCode::kAborted);
}

TEST(GroupServersTest, APrimaryThatStopsWaitsForABackupThatIsSilentForAMoment) {
  Member::Seen seen{.role = Member::Role::kPrimary};
  EXPECT_FALSE(Member::MayStepDown(seen)) << "it is alone";
  seen.as_primary.backups.push_back(
      {.node = "n2", .in_sync = false, .linked = true, .heard = true});
  EXPECT_FALSE(Member::MayStepDown(seen)) << "a joiner has not all items";
  seen.as_primary.backups.push_back({.node = "n3", .in_sync = true, .linked = false});
  EXPECT_FALSE(Member::MayStepDown(seen)) << "it is dead";
  seen.as_primary.hands_over = true;
  EXPECT_TRUE(Member::MayStepDown(seen)) << "its successor broke the link";
  seen.as_primary.hands_over = false;
  seen.as_primary.backups.back().linked = true;
  EXPECT_TRUE(Member::MayStepDown(seen));
  seen.role = Member::Role::kBackup;
  EXPECT_FALSE(Member::MayStepDown(seen));
}

TEST(GroupServersTest, RefusesWritesWithFewerCopiesThanTheTermsWant) {
  GroupTerms terms = Terms();
  terms.min_copies = 2;
  ThreeServers group(terms);
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  const auto client = Connect(group.nodes[0].address);
  // It is told so at once, whatever the deadline.
  for (const std::string& value : {std::string("1"), std::string(2 << 20, 'l')}) {
    const absl::Status refused = client->Put("a", value, {}, kLong).status();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_NE(refused.message().find("min_copies"), std::string_view::npos) << refused;
  }
  EXPECT_FALSE(client->Delete("a", {}, kLong).value()) << "what is not there needs no copy";
  EXPECT_FALSE(group.HasKey(0, "a"));
  EXPECT_FALSE(client->Get("a")->has_value());
  group.Start(1);
  ASSERT_TRUE(group.AwaitInSync(2));
  // The register says so before the primary knows.
  EXPECT_TRUE(ThreeServers::Await([&] { return client->Put("a", "1").ok(); }));
  EXPECT_TRUE(group.Has(0, "a", "1"));
}

TEST(GroupServersTest, ServesWhileTheRegisterIsAway) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(2));
  const auto client = Connect(group.nodes[*group.Primary()].address);
  group.shared.SetAway(true);
  // Several leases long.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
    ASSERT_TRUE(client->Put("a", std::to_string(i)).ok());
    ASSERT_EQ(client->Get("a")->value().data, std::to_string(i));
  }
  EXPECT_EQ(group.shared.now().configuration.epoch, 1);
  group.shared.SetAway(false);
}

TEST(GroupServersTest, MembersSayThatTheRegisterTakesNothing) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(2));
  for (const std::string& why : {std::string("no space"), std::string()}) {
    group.shared.SetNotAnnounced(why);
    for (size_t i = 0; i < 2; ++i) {
      const Member& member = *group.nodes[i].threads->server().member();
      EXPECT_TRUE(ThreeServers::Await([&] { return member.Look().not_announced == why; })) << i;
    }
  }
}

TEST(GroupServersTest, OneThatJoinsLaterGetsAllItems) {
  ThreeServers group(Terms());
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  const auto client = Connect(group.nodes[0].address);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(client->Put("key" + std::to_string(i), std::to_string(i)).ok());
  }
  const std::string longest(10 << 20, 'l');
  ASSERT_TRUE(client->Put("long", longest, {}, kLong).ok());
  group.Start(1);
  // Changes go on meanwhile.
  int changed = 0;
  while (group.shared.now().configuration.in_sync.size() < 2) {
    ASSERT_TRUE(client->Put("key" + std::to_string(changed % 5000), "new").ok());
    ASSERT_TRUE(client->Delete("key" + std::to_string((changed + 2500) % 5000)).ok());
    ASSERT_LT(++changed, 100'000);
  }
  EXPECT_TRUE(group.Has(1, "long", longest));
  for (int i = 0; i < 5000; ++i) {
    const std::string key = "key" + std::to_string(i);
    const auto value = client->Get(key);
    ASSERT_TRUE(value.ok());
    if (*value) {
      EXPECT_TRUE(ThreeServers::Await([&] { return group.Has(1, key, (*value)->data); })) << key;
    } else {
      EXPECT_TRUE(ThreeServers::Await([&] { return !group.HasKey(1, key); })) << key;
    }
  }
}

// Each member's memory is in other pieces, so a backup needs some more than its primary to take the
// same items.
TEST(GroupServersTest, APrimaryIsFullBeforeItsBackupsAre) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(2));
  const size_t primary = *group.Primary();
  const auto client = Connect(group.nodes[primary].address);
  const std::string value(64 << 10, 'v');
  absl::Status status;
  std::string last;
  for (int i = 0; i < 2'000 && status.ok(); ++i) {
    const std::string key = "key" + std::to_string(i);
    status = client->Put(key, value, {}, kLong).status();
    if (status.ok()) last = key;
    // A backup that is slower than the flood would lose its link.
    if (i % 50 == 49) ThreeServers::Await([&] { return group.Has(1 - primary, last, value); });
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  const Heap& heap = group.nodes[primary].threads->server().context().store.heap();
  EXPECT_LE(heap.ActiveBytes(), heap.capacity_bytes() / 100 * 97);
  EXPECT_TRUE(ThreeServers::Await([&] { return group.Has(1 - primary, last, value); }));
  EXPECT_EQ(group.shared.now().configuration.in_sync.size(), 2u);
}

TEST(GroupServersTest, OfTwoProcessesWithOneNameTheOneInSyncHasIt) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.Start(i);
  ASSERT_TRUE(group.AwaitInSync(2));
  const size_t backup = 1 - *group.Primary();
  group.names[2] = ThreeServers::NameOf(backup);
  group.Start(2);
  // The later one ends, and does not start again: they would replace each other for ever.
  const absl::Status why = group.nodes[2].threads->Wait();
  EXPECT_TRUE(absl::IsFailedPrecondition(why)) << why;
  EXPECT_NE(why.message().find("another process is called"), std::string_view::npos) << why;
  EXPECT_FALSE(group.nodes[backup].threads->server().member()->ended());
  EXPECT_EQ(group.shared.now().configuration.in_sync.size(), 2u);
}

TEST(GroupServersTest, MembersShowThePrimaryAKeyWithTheRightReplica) {
  constexpr char kClients[] = "1 000102030405060708090a0b0c0d0e0f\n";
  constexpr char kMembers[] = "2 101112131415161718191a1b1c1d1e1f replica\n";
  test_support::KeyFile keys(kClients);
  ThreeServers group(Terms());
  group.auth_files.fill(keys.path());
  const absl::Status refused = group.TryStart(0);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_NE(refused.message().find("kvcli genkey --replica"), std::string_view::npos) << refused;
  keys.Write(std::string(kClients) + kMembers);
  for (size_t i = 0; i < 2; ++i) group.Start(i);
  EXPECT_TRUE(group.AwaitInSync(2));
}

TEST(GroupServersTest, EachLinkShowsTheKeyThatTheFileHasNow) {
  constexpr char kBefore[] = "2 101112131415161718191a1b1c1d1e1f replica\n";
  constexpr char kAfter[] = "3 202122232425262728292a2b2c2d2e2f replica\n";
  test_support::KeyFile file(kBefore);
  AuthFile keys = AuthFile::Open(file.path()).value();
  EXPECT_EQ(ReplicaKeyOf(&keys)->id, 2u);
  file.Write(kAfter);
  EXPECT_EQ(ReplicaKeyOf(&keys)->id, 3u);
  file.Write("what is no key\n");
  EXPECT_EQ(ReplicaKeyOf(&keys)->id, 3u) << "the keys stay as they were";
}

// A group of one keeps some items on its disk, and ends.
void FillAndStop(ThreeServers* group) {
  group->Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group->Primary() == 0; }));
  const auto client = Connect(group->nodes[0].address);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(client->Put("key" + std::to_string(i), std::to_string(i)).ok());
  }
  ASSERT_TRUE(client->Delete("key7").ok());
  ASSERT_TRUE(ThreeServers::Await([&] { return group->Applied(0) > 0; }));
  group->Stop(0);
}

TEST(GroupServersTest, AForcedMemberBeginsWithWhatItsDiskHas) {
  const test_support::TemporaryDirectory data[2];  // outlive the servers
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.data[i] = data[i].path();
  ASSERT_NO_FATAL_FAILURE(FillAndStop(&group));
  // Somebody may have more, who has not come back.
  group.shared.TakeOver({.node = "n2", .incarnation = 1});
  group.Start(0);
  // It says what it has, and does not serve it, as nobody knows whether that is all.
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Applied(0) > 0; }));
  EXPECT_FALSE(group.HasKey(0, "key1"));
  EXPECT_FALSE(group.Primary());

  group.shared.Force("n1", 78);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  group.Start(1);
  ASSERT_TRUE(group.AwaitInSync(2));
  const auto client = Connect(group.nodes[0].address);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(group.Has(i, "key99", "99"));
    EXPECT_FALSE(group.HasKey(i, "key7"));
  }
  // The former run goes when the next one is whole.
  EXPECT_TRUE(ThreeServers::Await([&] { return NewestRunIn(data[0].path()).ends_with("2"); }));
  EXPECT_TRUE(ThreeServers::Await([&] { return NewestRunIn(data[1].path()).ends_with("1"); }));
  ASSERT_TRUE(client->Put("key1", "new").ok());
  EXPECT_EQ(client->Get("key1")->value().data, "new");
}

// Items of another group, or of a group whose register was lost, come back only if somebody says
// so. A primary's items win.
TEST(GroupServersTest, AGroupThatIsGoneAsAWholeBeginsAgainByItself) {
  const test_support::TemporaryDirectory data[2];  // outlive the servers
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.data[i] = data[i].path();
  ASSERT_NO_FATAL_FAILURE(FillAndStop(&group));
  const uint64_t epoch = group.shared.now().configuration.epoch;
  group.Start(1);  // which was not in sync
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  ASSERT_TRUE(group.AwaitInSync(2));
  EXPECT_EQ(group.shared.now().configuration.epoch, epoch + 1);
  EXPECT_NE(group.shared.terms().history, 77u) << "clients have to begin anew";
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(group.Has(i, "key99", "99"));
    EXPECT_FALSE(group.HasKey(i, "key7"));
  }
}

TEST(GroupServersTest, WithSyncAlwaysWhatIsAnsweredIsOnThePrimarysDisk) {
  const test_support::TemporaryDirectory data[2];  // outlive the servers
  ThreeServers group(Terms());
  for (size_t i = 0; i < 2; ++i) group.data[i] = data[i].path();
  group.sync = Journal::Sync::kAlways;
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 0; }));
  group.Start(1);
  ASSERT_TRUE(group.AwaitInSync(2));
  {
    const auto client = Connect(group.nodes[0].address);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(client->Put("key", std::to_string(i), {}, kLong).ok());
      ASSERT_TRUE(group.Synced(0));
    }
  }
  // The next primary has it on its disk, too, before it serves.
  group.Stop(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 1; }));
  EXPECT_TRUE(group.Synced(1));
  group.Stop(1);
  group.Start(0);
  group.Start(1);
  ASSERT_TRUE(group.AwaitInSync(2));
  EXPECT_EQ(group.shared.now().configuration.primary.node, "n2");
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(group.Has(i, "key", "19"));
}

// Its directory is gone, so it cannot note that it takes clients.
TEST(GroupServersTest, WithSyncAlwaysAPrimaryWhoseDiskFailsHandsOver) {
  const test_support::TemporaryDirectory data[3];  // outlive the servers
  ThreeServers group(Terms());
  group.sync = Journal::Sync::kAlways;
  for (size_t i = 0; i < 3; ++i) {
    group.data[i] = data[i].path();
    group.Start(i);
    ASSERT_TRUE(group.AwaitInSync(i + 1));
  }
  // Renamed, as files come while it would be removed.
  std::filesystem::rename(NewestRunIn(data[1].path()), data[1].path() + "/gone");
  group.Stop(0);  // hands over to n2
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 2; }));
  const auto client = Connect(group.nodes[2].address);
  EXPECT_TRUE(client->Put("a", "1", {}, kLong).ok());
  EXPECT_TRUE(group.Synced(2));
}

TEST(GroupServersTest, TheStreamGoesToTheNextVersionOnceAllSpeakIt) {
  ThreeServers group(Terms());
  for (size_t i = 0; i < 3; ++i) {
    group.Start(i);
    ASSERT_TRUE(group.AwaitInSync(i + 1));
  }
  const auto version = [&](size_t i) {
    return group.nodes[i].threads->server().member()->Look().as_primary.stream_version;
  };
  EXPECT_EQ(version(0), kStreamVersions.max);
  group.shared.SetStreamVersion("n3", 0);
  group.Stop(0);  // hands over
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Primary() == 1; }));
  EXPECT_EQ(version(1), 0);
  const auto client = Connect(group.nodes[1].address);
  for (const char* const value : {"1", "2"}) ASSERT_TRUE(client->Put("a", value, {}, kLong).ok());
  group.shared.SetStreamVersion("n3", kStreamVersions.max);
  EXPECT_TRUE(ThreeServers::Await([&] { return version(1) == kStreamVersions.max; }));
  for (const char* const value : {"3", "4"}) ASSERT_TRUE(client->Put("a", value, {}, kLong).ok());
  EXPECT_TRUE(ThreeServers::Await([&] { return group.Has(2, "a", "4"); }));
}

TEST(GroupServersTest, AMemberWithItemsOnItsDiskDoesNotFoundAGroup) {
  const test_support::TemporaryDirectory data;
  {
    ThreeServers before(Terms());
    before.data[0] = data.path();
    ASSERT_NO_FATAL_FAILURE(FillAndStop(&before));
  }
  ThreeServers group(Terms());
  group.data[0] = data.path();
  group.Start(0);
  ASSERT_TRUE(ThreeServers::Await([&] { return group.Applied(0) > 0; }));
  group.Start(1);  // without a disk
  ASSERT_TRUE(group.AwaitInSync(2));
  EXPECT_EQ(group.shared.now().configuration.primary.node, "n2");
  EXPECT_FALSE(group.HasKey(0, "key1"));
}

}  // namespace
}  // namespace gannet
