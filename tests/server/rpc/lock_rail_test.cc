// The lock rail dies: its port goes down. All locks are lost, and another rail serves new ones, in
// other memory, once nobody can believe in an old one.

#include <softverbs/control.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/protocol/partition_map.h"
#include "common/protocol/rails_reply.h"
#include "common/rdma/loopback.h"
#include "gtest/gtest.h"
#include "server/group/replica/group_standing.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kSilenceMs = 2000;
constexpr int64_t kSilenceNs = kSilenceMs * kNsPerMs;
constexpr uint64_t kLeaseMs = 10'000;

// A client of one rail, and the words that it takes locks by.
struct Client {
  std::unique_ptr<RawPeer> peer;
  uint32_t count = 0;                   // of the words
  ReplyStatus last = ReplyStatus::kOk;  // of Lock

  KeyHash HashOf(std::string_view key) const { return KeyHash::Of(key, peer->grant().hash_seed); }
  size_t IndexOf(std::string_view key) const {
    return HashOf(key).LockIndex(peer->grant().lock_words);
  }
  uint64_t NextWord(std::string_view key) {
    return LockWord::Of(peer->grant().connection_id, ++count, HashOf(key).LockTag()).word();
  }
  RequestHeader LockHeader(Opcode opcode, std::string_view key, uint64_t word,
                           uint64_t lease_ms = 0) const {
    RequestHeader header = peer->Header(opcode);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.lock.lock_word = word;
    header.lock.lease_ms = lease_ms;
    return header;
  }
  ReplyStatus Call(Opcode opcode, std::string_view key, uint64_t word,
                   uint64_t lease_ms = 0) const {
    const auto reply = peer->Call(LockHeader(opcode, key, word, lease_ms), key);
    EXPECT_TRUE(reply.has_value()) << "the connection broke";
    return reply ? reply->status() : ReplyStatus::kInternal;
  }
  // Returns the word by which it got the lock; 0: it did not.
  uint64_t Lock(std::string_view key, uint64_t lease_ms = 0) {
    const uint64_t word = NextWord(key);
    last = Call(Opcode::kLock, key, word, lease_ms);
    return last == ReplyStatus::kOk ? word : 0;
  }
  uint64_t LockByNic(std::string_view key) {
    const uint64_t word = NextWord(key);
    return peer->Cas(IndexOf(key), 0, word) == 0 ? word : 0;
  }
  ReplyStatus PutUnder(std::string_view key, uint64_t word) const {
    RequestHeader put = peer->Header(Opcode::kPut, kOnlyIfVersion | kUnderLock);
    put.key_bytes = static_cast<uint16_t>(key.size());
    put.value_bytes = 5;
    put.write.lock_word = word;
    const auto reply = peer->Call(put, key, "value");
    return reply ? reply->status() : ReplyStatus::kInternal;
  }
};

class LockRailTest : public ServerTest {
 protected:
  void SetUp() override {
    // ctest sets SOFTVERBS_DEVICES=2.
    ASSERT_EQ(TestDevice().name, "softverbs0");
    auto second = OpenDevice("softverbs1");
    ASSERT_TRUE(second.ok()) << second.status();
    devices_ = {TestDevice(), *second};
  }
  void TearDown() override {
    softverbs_clear_faults();
    ServerTest::TearDown();
  }
  void Start(const std::function<void(Server::Options*)>& change = nullptr) {
    StartServer([&](Server::Options* options) {
      options->more_rails = {*Resolve("127.0.1.1:0", 0)};
      options->lock_words = 1 << 16;  // so that two keys hardly share one
      options->silence_ms = kSilenceMs;
      options->session_grace_ns = 60 * kNsPerSecond;
      if (change) change(options);
    });
  }

  Client ClientOf(uint32_t rail) {
    Client client{MakePeer(rail)};
    EXPECT_TRUE(client.peer->Connect());
    return client;
  }
  Client Resumed(const Client& lost, uint32_t rail) {
    Client client{MakePeer(rail)};
    EXPECT_TRUE(client.peer->Join(*lost.peer, 0));
    return client;
  }
  std::unique_ptr<RawPeer> MakePeer(uint32_t rail) {
    return std::make_unique<RawPeer>(this, devices_[rail], server().context().rails[rail].address);
  }
  static void SetPort(int device, bool up) { ASSERT_EQ(softverbs_set_port(device, up), 0); }

  // Passes time in which these clients are not silent, as long as they have a connection.
  void PassWith(int64_t ns, std::initializer_list<const Client*> alive) {
    constexpr int64_t kPart = kSilenceNs / 4;
    for (; ns > 0; ns -= kPart) {
      Pass(std::min(ns, kPart));
      for (const Client* client : alive) {
        if (!client->peer->broken()) client->peer->Call(RequestHeader{});  // a heartbeat
      }
    }
  }
  // Takes the device's port down until the server has found out and told its workers. Nobody serves
  // locks then.
  void LoseLockRail(int device, std::initializer_list<const Client*> alive) {
    const uint64_t* const words = &context().lock_words[0];
    SetPort(device, false);
    PassWith(kSilenceNs + 200 * kNsPerMs, alive);
    ASSERT_TRUE(StepUntil([&] { return &context().lock_words[0] != words; }));
    Step();
  }
  // Waits until another rail serves, for which so many changes have been made.
  bool AnotherServes(uint64_t changes = 1) {
    return StepUntil([&] {
      Advance(20 * kNsPerUs);  // little, so that nobody is silent meanwhile
      return context().lock_rail_changes.value() == changes;
    });
  }
  const ServerContext& context() { return server().context(); }

  std::vector<Device> devices_;
};

TEST_F(LockRailTest, AllLocksAreLostAndTheirHoldersAreTold) {
  Start();
  Client swapper = ClientOf(0), asker = ClientOf(1), leased = ClientOf(1), other = ClientOf(1);
  const uint64_t swapped = swapper.LockByNic("swapped");
  const uint64_t asked = asker.Lock("asked");
  const uint64_t lent = leased.Lock("lent", kLeaseMs);
  ASSERT_TRUE(swapped != 0 && asked != 0 && lent != 0);
  ASSERT_EQ(asker.PutUnder("asked", asked), ReplyStatus::kOk);

  LoseLockRail(0, {&asker, &leased, &other});
  EXPECT_TRUE(asker.peer->WaitBroken());
  EXPECT_TRUE(leased.peer->WaitBroken());
  EXPECT_FALSE(other.peer->broken()) << "it has no lock";
  Client asker_again = Resumed(asker, 1), leased_again = Resumed(leased, 1);
  EXPECT_EQ(asker_again.PutUnder("asked", asked), ReplyStatus::kLockLost);
  EXPECT_EQ(leased_again.Call(Opcode::kExtendLock, "lent", lent, kLeaseMs), ReplyStatus::kLockLost);
  // Nobody serves locks yet.
  EXPECT_EQ(asker_again.Lock("new"), 0u);
  EXPECT_EQ(asker_again.last, ReplyStatus::kTryAgain);
}

TEST_F(LockRailTest, AnotherServesOnlyWhenTheLastLeaseIsOver) {
  Start();
  Client swapper = ClientOf(0), leased = ClientOf(1), other = ClientOf(1);
  const uint64_t swapped = swapper.LockByNic("key");
  const uint64_t lent = leased.Lock("lent", kLeaseMs);
  ASSERT_TRUE(swapped != 0 && lent != 0);
  const BootTime lent_at = now().boot;

  LoseLockRail(0, {&leased, &other});
  const auto until_end = [&] { return lent_at + kLeaseMs * kNsPerMs - now().boot; };
  PassWith(until_end() - kNsPerMs, {&other});
  for (int i = 0; i < 100; ++i) Step();
  EXPECT_EQ(context().lock_rail_changes.value(), 0u);
  EXPECT_EQ(other.Lock("key"), 0u);
  EXPECT_EQ(other.last, ReplyStatus::kTryAgain);

  Pass(10 * kNsPerMs);
  ASSERT_TRUE(AnotherServes());
  EXPECT_EQ(&context().lock_rail(), &context().rails[1]);
  EXPECT_NE(other.Lock("key"), 0u);
  // Who had a lock is told by a new connection, so its next lock has a greater word.
  Client leased_again = Resumed(leased, 1), swapper_again = Resumed(swapper, 1);
  EXPECT_GT(leased_again.LockByNic("lent"), lent);
  EXPECT_EQ(swapper_again.LockByNic("key"), 0u) << "another has it";
  EXPECT_GT(swapper_again.LockByNic("one more"), swapped);
}

TEST_F(LockRailTest, WithoutLeasesAnotherServesAfterASilence) {
  Start();
  Client swapper = ClientOf(0), other = ClientOf(1);
  ASSERT_NE(swapper.LockByNic("key"), 0u);
  LoseLockRail(0, {&other});
  PassWith(kSilenceNs / 2, {&other});
  for (int i = 0; i < 100; ++i) Step();
  EXPECT_EQ(context().lock_rail_changes.value(), 0u) << "a client may still believe in its lock";
  PassWith(kSilenceNs, {&other});
  ASSERT_TRUE(AnotherServes());
  EXPECT_NE(other.Lock("key"), 0u);
}

// The device accepts connections later than the control thread may stand still.
TEST_F(LockRailTest, TheServerGoesOnWhileTheQueuePairsOfAnotherConnect) {
  Start([](Server::Options* options) { options->workers = 2; });
  Client other = ClientOf(1);
  ASSERT_EQ(softverbs_set_faults("slow_connect=1:1500ms", nullptr, 0), 0);
  LoseLockRail(0, {&other});
  ASSERT_TRUE(StepUntil([&] {
    PassWith(10 * kNsPerMs, {&other});
    return softverbs_fault_count("slow_connect") >= 2;
  })) << "both workers' at once";
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(other.Lock("key"), 0u);
    EXPECT_EQ(other.last, ReplyStatus::kTryAgain);
  }
  EXPECT_EQ(context().lock_rail_changes.value(), 0u);
  EXPECT_TRUE(AnotherServes());
}

TEST_F(LockRailTest, ARailThatCannotServeIsTriedAgain) {
  Start();
  Client other = ClientOf(1);
  ASSERT_EQ(softverbs_set_faults("refuse_connect=1", nullptr, 0), 0);
  LoseLockRail(0, {&other});
  ASSERT_TRUE(StepUntil([&] {
    PassWith(10 * kNsPerMs, {&other});
    return softverbs_fault_count("refuse_connect") >= 3;
  }));
  EXPECT_EQ(context().lock_rail_changes.value(), 0u);
  softverbs_clear_faults();
  ASSERT_TRUE(AnotherServes());
  EXPECT_NE(other.Lock("key"), 0u);
}

TEST_F(LockRailTest, ClientsAreToldWhichOneItIs) {
  Start();
  Client other = ClientOf(1);
  const auto lock_rail = [&] {
    const auto reply = other.peer->Call(other.peer->Header(Opcode::kRails));
    return reply ? DecodeRails(reply->value).lock_rail : UINT8_MAX;
  };
  EXPECT_EQ(lock_rail(), 0);
  LoseLockRail(0, {&other});
  PassWith(2 * kSilenceNs, {&other});
  ASSERT_TRUE(AnotherServes());
  EXPECT_EQ(lock_rail(), 1);
}

TEST_F(LockRailTest, ClientsOfTheNewLockRailSwapAndThoseOfTheOldOneDoNot) {
  Start();
  Client before = ClientOf(0), other = ClientOf(1);
  const Grant old = before.peer->grant();
  LoseLockRail(0, {&other});
  PassWith(2 * kSilenceNs, {&other});
  ASSERT_TRUE(AnotherServes());
  Client swapper = ClientOf(1);
  EXPECT_EQ(static_cast<LockMode>(swapper.peer->grant().lock_mode), LockMode::kNicCas);
  EXPECT_NE(swapper.peer->grant().lock_address, old.lock_address);
  const uint64_t word = swapper.LockByNic("key");
  EXPECT_NE(word, 0u);
  EXPECT_EQ(swapper.PutUnder("key", word), ReplyStatus::kOk);
  EXPECT_EQ(other.Lock("key"), 0u);
  EXPECT_EQ(other.last, ReplyStatus::kLockHeld) << "it asks the server, which looks there, too";

  // The dead rail comes back, and is a rail like another.
  SetPort(0, true);
  PassWith(kSilenceNs, {&swapper, &other});
  EXPECT_EQ(context().lock_rail_changes.value(), 1u);
  Client back = ClientOf(0);
  EXPECT_EQ(static_cast<LockMode>(back.peer->grant().lock_mode), LockMode::kRpcLoopback);
  EXPECT_EQ(back.peer->grant().lock_rkey, 0u);
  EXPECT_EQ(back.Lock("key"), 0u);
  EXPECT_EQ(back.last, ReplyStatus::kLockHeld);
}

TEST_F(LockRailTest, ALateSwapHitsMemoryThatNobodyUses) {
  Start();
  Client swapper = ClientOf(0), other = ClientOf(1);
  const Grant old = swapper.peer->grant();
  auto* const word = reinterpret_cast<uint64_t*>(old.lock_address) + swapper.IndexOf("key");
  const uint64_t late = swapper.NextWord("key");
  LoseLockRail(0, {&other});
  __atomic_store_n(word, late, __ATOMIC_RELAXED);  // the dead device does not obey
  PassWith(2 * kSilenceNs, {&other});
  ASSERT_TRUE(AnotherServes());
  __atomic_store_n(word, late, __ATOMIC_RELAXED);
  EXPECT_NE(other.Lock("key"), 0u);
  Client again = Resumed(swapper, 1);
  EXPECT_EQ(again.PutUnder("key", late), ReplyStatus::kLockLost);
}

TEST_F(LockRailTest, ADeviceThatObeysRefusesALateSwap) {
  Start();
  Client swapper = ClientOf(0), other = ClientOf(1);
  const Grant old = swapper.peer->grant();
  LoseLockRail(0, {&other});
  PassWith(2 * kSilenceNs, {&other});
  ASSERT_TRUE(AnotherServes());
  SetPort(0, true);
  const Rail& rail = context().rails[0];
  auto loopback = Loopback::Create(rail.device, {.pd = rail.pd, .address = rail.address});
  ASSERT_TRUE(loopback.ok()) << loopback.status();
  ASSERT_TRUE((*loopback)->CompareAndSwap(old.lock_address, old.lock_rkey, 0, 1, 1));
  Loopback::Outcome outcome;
  ASSERT_TRUE(StepUntil([&] {
    EXPECT_EQ((*loopback)->Poll({&outcome, 1}), 0u);
    return (*loopback)->broken();
  }));
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(old.lock_address), 0u);
}

TEST_F(LockRailTest, RequestsThatWaitForASwapAreToBeSentAgain) {
  Start();
  Client other = ClientOf(1);
  SetPort(0, false);
  const uint64_t word = other.NextWord("key");
  const RequestHeader lock = other.LockHeader(Opcode::kLock, "key", word);
  ASSERT_TRUE(other.peer->Send(lock, "key"));
  const auto reply = other.peer->Receive();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kTryAgain);
  PassWith(4 * kSilenceNs, {&other});
  ASSERT_TRUE(AnotherServes());
  EXPECT_EQ(other.Call(Opcode::kLock, "key", word), ReplyStatus::kOk);
}

TEST_F(LockRailTest, IsDeadIfTheServersSwapsFailThoughItsPortIsUpAgain) {
  Start();
  Client other = ClientOf(1);
  SetPort(0, false);
  EXPECT_EQ(other.Lock("key"), 0u) << "while time stands still";
  EXPECT_EQ(other.last, ReplyStatus::kTryAgain);
  SetPort(0, true);
  PassWith(2 * kSilenceNs, {&other});
  ASSERT_TRUE(AnotherServes());
  EXPECT_NE(other.Lock("key"), 0u);
}

TEST_F(LockRailTest, AShortInterruptionTakesNoLock) {
  Start();
  Client swapper = ClientOf(0);
  Client other = ClientOf(1);
  const uint64_t word = swapper.LockByNic("key");
  ASSERT_NE(word, 0u);
  SetPort(0, false);
  PassWith(kSilenceNs / 2, {&other});
  SetPort(0, true);
  PassWith(4 * kSilenceNs, {&swapper, &other});
  EXPECT_EQ(swapper.PutUnder("key", word), ReplyStatus::kOk);
  EXPECT_EQ(context().lock_rail_changes.value(), 0u);
}

TEST_F(LockRailTest, DiesAgainAndComesBackToTheFirstInOtherMemory) {
  Start();
  Client other = ClientOf(1);
  LoseLockRail(0, {&other});
  PassWith(2 * kSilenceNs, {&other});
  ASSERT_TRUE(AnotherServes());
  Client swapper = ClientOf(1);
  const uint64_t word = swapper.LockByNic("key");
  const Grant second = swapper.peer->grant();
  SetPort(0, true);
  Client first = ClientOf(0);
  LoseLockRail(1, {&first});
  PassWith(2 * kSilenceNs, {&first});
  ASSERT_TRUE(AnotherServes(2));
  EXPECT_EQ(&context().lock_rail(), &context().rails[0]);
  Client third = ClientOf(0);
  EXPECT_NE(third.peer->grant().lock_address, second.lock_address);
  EXPECT_GT(third.LockByNic("key"), word);
}

TEST_F(LockRailTest, WithNoOtherRailLocksWaitForOne) {
  Start();
  Client other = ClientOf(1);
  SetPort(1, false);
  LoseLockRail(0, {});
  Pass(4 * kSilenceNs);
  for (int i = 0; i < 100; ++i) Step();
  EXPECT_EQ(context().lock_rail_changes.value(), 0u);
  SetPort(0, true);
  Pass(2 * kNsPerSecond);
  ASSERT_TRUE(AnotherServes());
  EXPECT_EQ(&context().lock_rail(), &context().rails[0]) << "in other memory, as any";
}

// Locks by requests, of a client that asks for the rails: it knows that they outlive a connection.
class KeptLocksTest : public LockRailTest {
 protected:
  Client Asker(uint32_t rail) {
    Client client = ClientOf(rail);
    AskForRails(client);
    return client;
  }
  static void AskForRails(const Client& client, RailsAsk ask = RailsAsk::kRailsInOrder) {
    RequestHeader header = client.peer->Header(Opcode::kRails);
    header.words[0] = static_cast<uint64_t>(ask);
    EXPECT_TRUE(client.peer->Call(header).has_value());
  }
  // Stops the client until the server has closed its connection, while others are not silent.
  void Silence(const Client& client, std::initializer_list<const Client*> alive) {
    client.peer->FallSilent();
    const uint64_t connections = stats().connections;
    for (int i = 0; i < 100 && stats().connections == connections; ++i)
      PassWith(kSilenceNs / 4, alive);
    ASSERT_EQ(stats().connections, connections - 1);
  }
  // Returns whether the client may take the lock at last.
  bool GetsLock(Client& client, std::string_view key) {
    return StepUntil([&] { return client.Lock(key) != 0; });
  }
};

TEST_F(KeptLocksTest, OutliveAConnectionOfAnotherRail) {
  Start();
  Client other = ClientOf(1), first = Asker(1);
  const uint64_t written = first.Lock("written"), extended = first.Lock("extended", kLeaseMs),
                 released = first.Lock("released");
  Client second = Resumed(first, 1);
  second.count = first.count;
  EXPECT_EQ(second.peer->grant().connection_id, first.peer->grant().connection_id);
  for (int i = 0; i < 1000; ++i) Step();
  EXPECT_EQ(other.Lock("written"), 0u);
  EXPECT_EQ(second.PutUnder("written", written), ReplyStatus::kOk);
  EXPECT_EQ(second.Call(Opcode::kExtendLock, "extended", extended, kLeaseMs), ReplyStatus::kOk);
  EXPECT_EQ(second.Call(Opcode::kUnlock, "released", released), ReplyStatus::kOk);
  EXPECT_NE(other.Lock("released"), 0u);
  EXPECT_NE(second.Lock("new"), 0u);
  // It was told that its locks were kept, so they are without asking again.
  Client third = Resumed(second, 1);
  EXPECT_EQ(third.Call(Opcode::kUnlock, "written", written), ReplyStatus::kOk);
  EXPECT_EQ(context().connection_ids.alive(), 3u) << "the locks', and those of two connections";
}

TEST_F(KeptLocksTest, ARequestThatIsSentAgainTakesTheLockOnce) {
  Start();
  Client first = Asker(1);
  const uint64_t word = first.NextWord("key");
  ASSERT_EQ(first.Call(Opcode::kLock, "key", word), ReplyStatus::kOk);
  Client second = Resumed(first, 1);
  EXPECT_EQ(second.Call(Opcode::kLock, "key", word), ReplyStatus::kOk);
  EXPECT_EQ(second.Call(Opcode::kUnlock, "key", word), ReplyStatus::kOk);
  EXPECT_EQ(second.Call(Opcode::kUnlock, "key", word), ReplyStatus::kLockLost);
}

TEST_F(KeptLocksTest, GoOnAtTheLockRailAndEndThere) {
  Start();
  Client other = ClientOf(1), first = Asker(1);
  const uint64_t word = first.Lock("key"), released = first.Lock("released");
  Client second = Resumed(first, 0);
  EXPECT_EQ(second.peer->grant().connection_id, first.peer->grant().connection_id);
  AskForRails(second);
  EXPECT_EQ(second.PutUnder("key", word), ReplyStatus::kOk);
  EXPECT_EQ(second.peer->Cas(second.IndexOf("released"), released, 0), released);
  // A swap of its NIC may be late from now on.
  Client third = Resumed(second, 1);
  EXPECT_NE(third.peer->grant().connection_id, first.peer->grant().connection_id);
  EXPECT_EQ(third.PutUnder("key", word), ReplyStatus::kLockLost);
  EXPECT_TRUE(GetsLock(other, "key"));
}

TEST_F(KeptLocksTest, OfAClientThatDoesNotComeBackEndWithASilence) {
  Start();
  Client other = ClientOf(1), first = Asker(1);
  const uint64_t word = first.Lock("key");
  Silence(first, {&other});
  PassWith(kSilenceNs / 2, {&other});
  for (int i = 0; i < 1000; ++i) Step();
  EXPECT_EQ(other.Lock("key"), 0u) << "it may come back yet";
  PassWith(kSilenceNs, {&other});
  EXPECT_TRUE(GetsLock(other, "key"));
  Client second = Resumed(first, 1);
  EXPECT_EQ(second.peer->grant().resumed, 1);
  EXPECT_NE(second.peer->grant().connection_id, first.peer->grant().connection_id);
  EXPECT_EQ(second.PutUnder("key", word), ReplyStatus::kLockLost);
}

TEST_F(KeptLocksTest, OfOneThatComesBackInTimeStay) {
  Start();
  Client other = ClientOf(1), first = Asker(1);
  const uint64_t word = first.Lock("key");
  Silence(first, {&other});
  PassWith(kSilenceNs / 2, {&other});
  Client second = Resumed(first, 1);
  PassWith(4 * kSilenceNs, {&other, &second});
  EXPECT_EQ(other.Lock("key"), 0u);
  EXPECT_EQ(second.PutUnder("key", word), ReplyStatus::kOk);
}

TEST_F(KeptLocksTest, ALeaseEndsThemToo) {
  Start();
  Client other = ClientOf(1), first = Asker(1);
  const uint64_t word = first.Lock("key", kSilenceMs / 2);
  Client second = Resumed(first, 1);
  PassWith(kSilenceNs, {&other, &second});
  uint64_t others = 0;
  ASSERT_TRUE(StepUntil([&] { return (others = other.Lock("key")) != 0; }));
  EXPECT_EQ(second.Call(Opcode::kUnlock, "key", word), ReplyStatus::kLockLost);
  EXPECT_EQ(other.PutUnder("key", others), ReplyStatus::kOk);
}

TEST_F(KeptLocksTest, NotIfTheClientDoesNotKnowOrSwaps) {
  Start();
  Client other = ClientOf(1), unknowing = ClientOf(1), swapper = Asker(0);
  AskForRails(unknowing, RailsAsk::kRails);  // as clients of the first release do
  const uint64_t lost = unknowing.Lock("lost"), swapped = swapper.LockByNic("swapped");
  ASSERT_TRUE(lost != 0 && swapped != 0);
  Client unknowing_again = Resumed(unknowing, 1), swapper_again = Resumed(swapper, 1);
  EXPECT_NE(unknowing_again.peer->grant().connection_id, unknowing.peer->grant().connection_id);
  EXPECT_NE(swapper_again.peer->grant().connection_id, swapper.peer->grant().connection_id);
  EXPECT_TRUE(GetsLock(other, "lost"));
  EXPECT_TRUE(GetsLock(other, "swapped"));
}

// Locks are the first connection's, whichever connection carries the requests.
TEST_F(KeptLocksTest, AnotherConnectionMayAskForThem) {
  Start();
  Client other = ClientOf(1), first = ClientOf(1), joined{MakePeer(1)};
  ASSERT_TRUE(joined.peer->Join(*first.peer, 1));
  AskForRails(joined);
  const uint64_t word = first.NextWord("key");
  ASSERT_EQ(joined.Call(Opcode::kLock, "key", word), ReplyStatus::kOk);
  Client joined_again{MakePeer(1)};
  ASSERT_TRUE(joined_again.peer->Join(*joined.peer, 1));
  EXPECT_NE(joined_again.peer->grant().connection_id, joined.peer->grant().connection_id);
  Client second = Resumed(joined_again, 1);
  EXPECT_EQ(second.peer->grant().connection_id, first.peer->grant().connection_id);
  EXPECT_EQ(other.Lock("key"), 0u);
  EXPECT_EQ(second.PutUnder("key", word), ReplyStatus::kOk);
}

// Its requests may come after it was closed, by other connections.
TEST_F(KeptLocksTest, NotOfAConnectionThatIsClosingAlready) {
  Start();
  Client other = ClientOf(1), first = ClientOf(1), joined{MakePeer(1)};
  ASSERT_TRUE(joined.peer->Join(*first.peer, 1));
  const uint64_t word = first.Lock("key");
  ASSERT_NE(word, 0u);
  joined.peer->next_sequence = first.peer->next_sequence;
  // It closes while the server does nothing, and is not drained when the other one asks.
  RequestHeader ask = joined.peer->Header(Opcode::kRails);
  ask.words[0] = static_cast<uint64_t>(RailsAsk::kRailsInOrder);
  RequestHeader bad = first.peer->Header(Opcode::kPut);
  ASSERT_TRUE(first.peer->Send(std::as_bytes(std::span(&bad, 1)).first(8)));
  ASSERT_TRUE(first.peer->WaitSent());
  ASSERT_TRUE(joined.peer->Send(ask));
  ASSERT_TRUE(joined.peer->WaitSent());
  ASSERT_TRUE(joined.peer->Receive().has_value());
  Client second = Resumed(joined, 1);
  EXPECT_NE(second.peer->grant().connection_id, first.peer->grant().connection_id);
  EXPECT_TRUE(GetsLock(other, "key"));
}

// Its partition closes, and then its connection, while its compare-and-swap is under way.
TEST_F(KeptLocksTest, OneThatIsGivenBackIsSoWithoutItsConnection) {
  GroupStanding standing(kHistory);
  const auto serve = [&standing](bool serves, uint64_t revision) {
    GroupPartitions partitions = {.revision = revision, .lost = revision, .alone = false};
    partitions.served.set();
    partitions.served[PartitionOf("key")] = serves;
    standing.SetPartitions(partitions);
  };
  standing.SetServes(true);
  Start([&standing](Server::Options* options) {
    options->standing = &standing;
    options->workers = 1;
  });
  Client first = Asker(1);
  const RequestHeader lock = first.LockHeader(Opcode::kLock, "key", first.NextWord("key"));
  ASSERT_TRUE(first.peer->Send(lock, "key"));
  ASSERT_TRUE(first.peer->WaitSent());
  server().workers()[0]->Poll(now());  // begins the compare-and-swap
  serve(false, 1);
  const RequestHeader bad{};
  ASSERT_TRUE(first.peer->Send(std::as_bytes(std::span(&bad, 1)).first(8)));
  ASSERT_TRUE(first.peer->WaitSent());
  ASSERT_TRUE(first.peer->WaitBroken());
  serve(true, 2);
  Client second = Resumed(first, 1);
  second.count = first.count;
  EXPECT_EQ(second.peer->grant().connection_id, first.peer->grant().connection_id);
  EXPECT_NE(second.Lock("key"), 0u);
  second.peer.reset();
  first.peer.reset();
  StopServer();
}

TEST_F(KeptLocksTest, EndWithTheLockRailThoughTheirClientIsAway) {
  Start();
  Client other = ClientOf(1), away = Asker(1), holder = Asker(1);
  const uint64_t lost = away.Lock("lost"), held = holder.Lock("held");
  ASSERT_TRUE(lost != 0 && held != 0);
  Silence(away, {&other, &holder});
  LoseLockRail(0, {&other});
  Client away_again = Resumed(away, 1), holder_again = Resumed(holder, 1);
  EXPECT_NE(away_again.peer->grant().connection_id, away.peer->grant().connection_id);
  EXPECT_NE(holder_again.peer->grant().connection_id, holder.peer->grant().connection_id);
  EXPECT_EQ(away_again.PutUnder("lost", lost), ReplyStatus::kLockLost);
}

// A worker that is stopped may answer clients of the dead rail yet, and give leases.
class StoppedWorkerTest : public LockRailTest {
 public:
  void Step() override {
    if (!stopped_) return ServerTest::Step();
    server().Poll(now());
    server().workers()[0]->Poll(now());
  }
  bool stopped_ = false;
};

TEST_F(StoppedWorkerTest, TheSilenceBeginsWhenEachWorkerKnows) {
  Start([](Server::Options* options) { options->workers = 2; });
  SetPort(0, false);
  Pass(kSilenceNs);
  stopped_ = true;
  Pass(4 * kSilenceNs);
  for (int i = 0; i < 100; ++i) Step();
  EXPECT_EQ(context().lock_rail_changes.value(), 0u);
  stopped_ = false;
  Pass(kSilenceNs / 2);
  for (int i = 0; i < 100; ++i) Step();
  EXPECT_EQ(context().lock_rail_changes.value(), 0u);
  Pass(kSilenceNs);
  EXPECT_TRUE(AnotherServes());
}

}  // namespace
}  // namespace gannet
