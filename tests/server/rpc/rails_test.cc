// A server on two devices: who comes over the second one is served as over the first, and locks go
// through the first one alone.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/layout/slot.h"
#include "common/protocol/heats.h"
#include "common/protocol/item_leases_reply.h"
#include "common/protocol/partition_map.h"
#include "common/protocol/rails_reply.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/group/replica/group_standing.h"
#include "server/main/control/rail_watch.h"
#include "server/rpc/rail.h"
#include "server/rpc/replies.h"
#include "softverbs/control.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

using testing::HasSubstr;

constexpr char kKey[] = "key";
constexpr uint32_t kLarge = 1 << 20;
constexpr uint32_t kStaged = 4'040;  // too long for a message, but not in a large item

class RailsTest : public ServerTest {
 protected:
  void TearDown() override {
    softverbs_set_port(1, 1);
    ServerTest::TearDown();
  }
  void SetUp() override {
    // ctest sets SOFTVERBS_DEVICES=2.
    ASSERT_EQ(TestDevice().name, "softverbs0");
    auto second = OpenDevice("softverbs1");
    ASSERT_TRUE(second.ok()) << second.status();
    second_ = *second;
  }
  void Start(const std::function<void(Server::Options*)>& change = nullptr) {
    StartServer([&](Server::Options* options) {
      options->more_rails = {*Resolve("127.0.1.1:0", 0)};
      if (change) change(options);
    });
  }

  // A peer of the rail of this number.
  std::unique_ptr<RawPeer> PeerOf(uint32_t rail) {
    const Rail& to = server().context().rails[rail];
    return std::make_unique<RawPeer>(this, rail == 0 ? TestDevice() : second_, to.address);
  }
  std::unique_ptr<RawPeer> ConnectedOf(uint32_t rail) {
    auto peer = PeerOf(rail);
    EXPECT_TRUE(peer->Connect());
    return peer;
  }

  static RequestHeader InBuffer(RawPeer* peer, Opcode opcode, uint32_t bytes) {
    RequestHeader header = peer->Header(opcode, kValueInBuffer);
    header.key_bytes = sizeof(kKey) - 1;
    if (opcode == Opcode::kPut) {
      header.value_bytes = bytes;
      header.write.buffer_address = peer->lent().address();
      header.write.buffer_rkey = peer->lent().rkey();
    } else {
      header.get = {.buffer_address = peer->lent().address(),
                    .buffer_rkey = peer->lent().rkey(),
                    .buffer_bytes = bytes};
    }
    return header;
  }
  static void Fill(RawPeer* peer, uint32_t bytes, uint64_t seed) {
    for (uint32_t i = 0; i < bytes; ++i)
      peer->lent().data()[i] = static_cast<std::byte>(Mix64(seed + i));
  }
  static KeyHash HashOf(const RawPeer& peer) { return KeyHash::Of(kKey, peer.grant().hash_seed); }
  static uint64_t WordOf(const RawPeer& peer) {
    return LockWord::Of(peer.grant().connection_id, 1, HashOf(peer).LockTag()).word();
  }
  static ReplyHeader CallLock(RawPeer* peer, Opcode opcode) {
    RequestHeader header = peer->Header(opcode);
    header.key_bytes = sizeof(kKey) - 1;
    header.lock.lock_word = WordOf(*peer);
    const auto reply = peer->Call(header, kKey);
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(RawPeer::Reply{}).header;
  }

  static RailsReply Ask(RawPeer* peer) {
    const auto reply = peer->Call(peer->Header(Opcode::kRails));
    EXPECT_EQ(reply.value().status(), ReplyStatus::kOk);
    return DecodeRails(reply.value().value);
  }

  Device second_;
};

TEST_F(RailsTest, EachGrantHasTheKeysOfItsRail) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  const Grant &one = first->grant(), &other = second->grant();
  EXPECT_TRUE(one.features & kGrantRails);
  EXPECT_TRUE(other.features & kGrantRails);
  EXPECT_EQ(one.region_address, other.region_address);
  ASSERT_TRUE(first->Put(kKey, "value") == ReplyStatus::kOk);
  const auto magic = first->ReadAt(one.region_address, one.region_rkey);
  EXPECT_TRUE(magic.has_value());
  EXPECT_EQ(second->ReadAt(other.region_address, other.region_rkey), magic);
}

TEST_F(RailsTest, AKeyOfAnotherRailIsRefused) {
  Start();
  const auto first = ConnectedOf(0);
  // One of the two may be a valid key of the other device, too, but of other memory.
  const auto second = ConnectedOf(1);
  EXPECT_EQ(second->CasAt(first->grant().lock_address, first->grant().lock_rkey, 0, 1),
            std::nullopt);
  EXPECT_TRUE(second->WaitBroken());
  EXPECT_EQ(first->Get(kKey), std::nullopt);
  EXPECT_FALSE(first->broken());
}

TEST_F(RailsTest, ServerOfOneRailHasNone) {
  StartServer();
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_FALSE(peer.grant().features & kGrantRails);
  EXPECT_EQ(peer.Call(peer.Header(Opcode::kRails))->status(), ReplyStatus::kNotFound);
}

TEST_F(RailsTest, WhatOneRailPutsTheOtherGets) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  EXPECT_EQ(second->Put(kKey, "by the second"), ReplyStatus::kOk);
  EXPECT_EQ(first->Get(kKey), "by the second");
  EXPECT_EQ(first->Put(kKey, "by the first"), ReplyStatus::kOk);
  EXPECT_EQ(second->Get(kKey), "by the first");
}

TEST_F(RailsTest, ManyConnectionsOfBothAreServed) {
  Start();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 8; ++i) peers.push_back(ConnectedOf(i % 2));
  for (size_t i = 0; i < peers.size(); ++i)
    ASSERT_EQ(peers[i]->Put("k" + std::to_string(i), std::to_string(i)), ReplyStatus::kOk);
  for (size_t i = 0; i < peers.size(); ++i)
    ASSERT_EQ(peers[i]->Get("k" + std::to_string(i)), std::to_string(i));
}

TEST_F(RailsTest, RequestsOfBothRailsAreServedTogether) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  constexpr uint32_t kEach = 32;
  for (uint32_t i = 0; i < kEach; ++i) {
    for (RawPeer* peer : {first.get(), second.get()}) {
      RequestHeader put = peer->Header(Opcode::kPut);
      put.key_bytes = sizeof(kKey) - 1;
      put.value_bytes = 100;
      ASSERT_TRUE(peer->Send(put, kKey, std::string(100, 'v')));
    }
  }
  ASSERT_TRUE(first->WaitSent());
  ASSERT_TRUE(second->WaitSent());
  for (uint32_t i = 0; i < kEach; ++i) {
    for (RawPeer* peer : {first.get(), second.get()}) {
      const auto reply = peer->Receive();
      ASSERT_TRUE(reply.has_value());
      ASSERT_EQ(reply->status(), ReplyStatus::kOk);
    }
  }
  EXPECT_EQ(stats().rpcs, 2 * kEach);
}

// A session with a connection by each rail, whose client leaves no number out.
class OrderedRequestsTest : public RailsTest {
 protected:
  void SetUp() override {
    RailsTest::SetUp();
    Start([this](Server::Options* options) {
      options->credits = kCredits;
      options->workers = 1;
      Change(options);
    });
    one_ = ConnectedOf(0);
    EXPECT_TRUE(one_->grant().features & kGrantOrdersRequests);
    other_ = PeerOf(1);
    ASSERT_TRUE(other_->Join(*one_, 1));
    ASSERT_EQ(one_->Call(Ask(RailsAsk::kRailsInOrder, 1))->status(), ReplyStatus::kOk);
  }

  virtual void Change(Server::Options* /*options*/) {}
  static RequestHeader Ask(RailsAsk what, uint64_t number) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kRails);
    header.sequence = number;
    header.words[0] = static_cast<uint64_t>(what);
    return header;
  }
  static RequestHeader Numbered(Opcode opcode, uint64_t number, uint32_t value_bytes) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(opcode);
    header.sequence = number;
    header.key_bytes = sizeof(kKey) - 1;
    header.value_bytes = value_bytes;
    return header;
  }
  static void SendPut(RawPeer* peer, uint64_t number, const std::string& value) {
    ASSERT_TRUE(peer->Send(Numbered(Opcode::kPut, number, value.size()), kKey, value));
  }
  static void SendIncrement(RawPeer* peer, uint64_t number) {
    const CounterOperands operands{.delta = 1, .initial = 0};
    ASSERT_TRUE(peer->Send(Numbered(Opcode::kIncrement, number, sizeof(operands)), kKey,
                           {reinterpret_cast<const char*>(&operands), sizeof(operands)}));
  }
  // Waits until so many are set aside, or taken.
  void WaitAside(size_t count) {
    EXPECT_TRUE(StepUntil([&] { return server().workers()[0]->busy() == count; }));
  }
  std::string Stored() {
    RawPeer reader(this);
    EXPECT_TRUE(reader.Connect());
    return reader.Get(kKey).value_or("");
  }
  static void ExpectAnswer(RawPeer* peer, uint64_t number) {
    const auto reply = peer->Receive();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status(), ReplyStatus::kOk);
    EXPECT_EQ(reply->header.sequence, number);
  }

  static constexpr uint16_t kCredits = 8;
  std::unique_ptr<RawPeer> one_, other_;
};

TEST_F(OrderedRequestsTest, ALaterNumberWaitsForTheOneBeforeIt) {
  SendPut(other_.get(), 3, "third");
  SendPut(other_.get(), 4, "fourth");
  WaitAside(2);
  EXPECT_EQ(Stored(), "");
  SendPut(one_.get(), 2, "second");
  ExpectAnswer(one_.get(), 2);
  ExpectAnswer(other_.get(), 3);
  ExpectAnswer(other_.get(), 4);
  EXPECT_EQ(Stored(), "fourth");
  WaitAside(0);
}

TEST_F(OrderedRequestsTest, EachCopyIsAnsweredByItsConnection) {
  SendIncrement(one_.get(), 3);
  WaitAside(1);
  SendIncrement(other_.get(), 3);
  WaitAside(2);
  SendIncrement(other_.get(), 2);
  ExpectAnswer(other_.get(), 2);
  ExpectAnswer(one_.get(), 3);
  ExpectAnswer(other_.get(), 3);
  EXPECT_EQ(Stored(), "2");  // each was done once
}

TEST_F(OrderedRequestsTest, WhatWasGivenUpIsNotExecutedLater) {
  SendPut(other_.get(), 3, "third");
  WaitAside(1);
  ASSERT_TRUE(other_->Send(Ask(RailsAsk::kGivenUp, 2)));
  ExpectAnswer(other_.get(), 2);
  ExpectAnswer(other_.get(), 3);
  SendPut(one_.get(), 2, "second");  // an old copy, of a rail that was dead
  const auto reply = one_->Receive();
  EXPECT_EQ(reply.value().header.opcode, static_cast<uint8_t>(Opcode::kRails));
  EXPECT_EQ(Stored(), "third");
}

TEST_F(OrderedRequestsTest, WhatIsUnderWayGoesOnUnlessItsConnectionIsOver) {
  constexpr uint32_t kSegments = 8;  // whose READs take many looks of the server
  for (const RailsAsk ask : {RailsAsk::kGivenUp, RailsAsk::kLost}) {
    const uint64_t number = 2 + static_cast<uint64_t>(ask == RailsAsk::kLost);
    RequestHeader put = Numbered(Opcode::kPut, number, kSegments * kLarge);
    put.flags = kValueInSegments;
    put.write.segments = kSegments;
    std::string segments;
    for (uint32_t i = 0; i < kSegments; ++i) {
      const ValueSegment all{one_->lent().address(), one_->lent().rkey(), kLarge};
      segments.append(reinterpret_cast<const char*>(&all), sizeof(all));
    }
    ASSERT_TRUE(one_->Send(put, kKey, segments));
    ASSERT_TRUE(StepUntil([this] { return server().workers()[0]->busy() > 0; }));
    const auto reply = other_->Call(Ask(ask, number));
    const bool soft = ask == RailsAsk::kGivenUp;
    EXPECT_EQ(reply.value().status(), soft ? ReplyStatus::kTryAgain : ReplyStatus::kOk);
    if (soft) ExpectAnswer(one_.get(), number);
  }
  EXPECT_TRUE(one_->WaitBroken());
}

TEST_F(OrderedRequestsTest, WhatWasDoneIsAnsweredAsThenThoughItIsGivenUp) {
  SendPut(one_.get(), 2, "second");
  ExpectAnswer(one_.get(), 2);
  ASSERT_TRUE(other_->Send(Ask(RailsAsk::kGivenUp, 2)));
  EXPECT_EQ(other_->Receive().value().header.opcode, static_cast<uint8_t>(Opcode::kPut));
  EXPECT_EQ(Stored(), "second");
}

// A journal that is behind whenever the test wants.
class SlowJournal : public ChangeConsumer {
 public:
  bool Take(const Change&, ChangePlace*) override { return !behind; }
  Takes takes() const override { return behind ? Takes::kLater : Takes::kNow; }

  bool behind = false;
};

// The second number is a write, and the third one, of the same key, is put off.
class OrderedPutOffTest : public OrderedRequestsTest {
 protected:
  void SetUp() override {
    OrderedRequestsTest::SetUp();
    server().AddConsumer(&journal_, ChangeStream::Need::kHears);
    EXPECT_FALSE(IsPutOff(CallPut(one_.get(), 2, "0")));
    journal_.behind = true;
    EXPECT_TRUE(IsPutOff(CallPut(one_.get(), 3, "1")));
    journal_.behind = false;
  }
  static ReplyHeader CallPut(RawPeer* peer, uint64_t number, const std::string& value,
                             uint8_t flags = 0) {
    RequestHeader put = Numbered(Opcode::kPut, number, value.size());
    put.flags = flags;
    const auto reply = peer->Call(put, kKey, value);
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(RawPeer::Reply{}).header;
  }
  static bool IsPutOff(const ReplyHeader& reply) {
    return reply.status == static_cast<uint8_t>(ReplyStatus::kTryAgain) &&
           reply.write.version == kPutOffInOrder;
  }
  SlowJournal journal_;
};

TEST_F(OrderedPutOffTest, LaterWritesByAnotherRailWaitToo) {
  EXPECT_TRUE(IsPutOff(CallPut(other_.get(), 4, "2")));
  EXPECT_EQ(CallPut(other_.get(), 5, "1", kSentAgain).status, 0);
  EXPECT_EQ(CallPut(one_.get(), 6, "2").status, 0);
  EXPECT_EQ(Stored(), "2");
}

// What it says is so only after those before it.
TEST_F(OrderedPutOffTest, ANumberThatIsTooEarlySaysNothingYet) {
  RequestHeader again = Numbered(Opcode::kPut, 5, 1);
  again.flags = kSentAgain;
  ASSERT_TRUE(other_->Send(again, kKey, "1"));
  SendPut(other_.get(), 3 + kCredits, "late");
  WaitAside(2);
  EXPECT_TRUE(IsPutOff(CallPut(one_.get(), 4, "2")));
  ExpectAnswer(other_.get(), 5);
  EXPECT_EQ(Stored(), "1");
}

// Its client sends it again under another number, and an old copy may still come.
TEST(OrderedSessionTest, TryAgainIsAnAnswer) {
  const ReplyHeader again{.opcode = static_cast<uint8_t>(Opcode::kPut),
                          .status = static_cast<uint8_t>(ReplyStatus::kTryAgain),
                          .sequence = 1};
  for (const bool ordered : {false, true}) {
    Session session(1, 1, 4);
    if (ordered) session.aside = std::make_unique<RequestsAside>(4);
    ReplyHeader recorded;
    ASSERT_EQ(session.Admit(1, &recorded), Session::Admission::kExecute);
    Replies::Record(&session, again);
    ASSERT_EQ(session.Admit(1, &recorded),
              ordered ? Session::Admission::kReplay : Session::Admission::kExecute);
    if (ordered) {
      EXPECT_EQ(recorded.status, again.status);
    }
  }
}

// The same holds of what another group is to do, although the partition may come back.
class OrderedElsewhereTest : public OrderedRequestsTest {
 protected:
  void Change(Server::Options* options) override {
    standing_.SetServes(true);
    options->standing = &standing_;
  }
  void Serve(bool key, uint64_t revision) {
    GroupPartitions partitions = {.revision = revision, .lost = revision, .alone = false};
    partitions.served.set();
    partitions.served[PartitionOf(kKey)] = key;
    standing_.SetPartitions(partitions);
  }
  void TearDown() override {
    one_.reset();
    other_.reset();
    OrderedRequestsTest::TearDown();
  }
  GroupStanding standing_{kHistory};
};

TEST_F(OrderedElsewhereTest, ElsewhereIsAnAnswer) {
  Serve(false, 1);
  SendPut(one_.get(), 2, "second");
  EXPECT_EQ(one_->Receive().value().status(), ReplyStatus::kElsewhere);
  Serve(true, 2);
  SendPut(other_.get(), 2, "second");  // an old copy, of a rail that was dead
  EXPECT_EQ(other_->Receive().value().status(), ReplyStatus::kElsewhere);
  EXPECT_EQ(Stored(), "");
}

TEST_F(OrderedRequestsTest, AMalformedOneHasItsNumberToo) {
  RequestHeader unknown = Ask(RailsAsk::kRails, 3);
  unknown.opcode = 200;
  ASSERT_TRUE(other_->Send(unknown));
  SendPut(other_.get(), 4, "fourth");
  WaitAside(2);
  SendPut(one_.get(), 2, "second");
  ExpectAnswer(one_.get(), 2);
  EXPECT_EQ(other_->Receive().value().status(), ReplyStatus::kUnimplemented);
  ExpectAnswer(other_.get(), 4);
}

TEST_F(OrderedRequestsTest, MoreThanTheCreditsAreNotSetAside) {
  SendPut(other_.get(), 2 + kCredits, "too far");
  EXPECT_TRUE(other_->WaitBroken());
  EXPECT_FALSE(one_->broken());
  WaitAside(0);
}

TEST_F(OrderedRequestsTest, TwiceByOneConnectionClosesIt) {
  SendPut(other_.get(), 3, "third");
  SendPut(other_.get(), 3, "third");
  EXPECT_TRUE(other_->WaitBroken());
  WaitAside(0);
  SendPut(one_.get(), 2, "second");
  ExpectAnswer(one_.get(), 2);
  EXPECT_EQ(Stored(), "second") << "it went with its connection";
}

TEST_F(OrderedRequestsTest, NothingIsSetAsideForever) {
  SendPut(other_.get(), 3, "third");
  WaitAside(1);
  for (int i = 0; i < 4 && !other_->broken(); ++i) {
    // Its heartbeats come.
    for (RawPeer* const peer : {one_.get(), other_.get()}) peer->Send(RequestHeader{});
    Pass(kSilenceMsDefault * kNsPerMs * 9 / 10);
    other_->Poll();
  }
  EXPECT_TRUE(other_->WaitBroken());
  WaitAside(0);
  EXPECT_FALSE(one_->broken());
}

// The client may have given up what it does not send again.
TEST_F(OrderedRequestsTest, AnotherFirstConnectionEndsTheOthersAndMaySkip) {
  SendPut(other_.get(), 3, "third");
  WaitAside(1);
  auto again = PeerOf(1);
  ASSERT_TRUE(again->Join(*one_, 0));
  EXPECT_TRUE(other_->WaitBroken());
  EXPECT_TRUE(one_->WaitBroken());
  SendPut(again.get(), 4, "fourth");
  ExpectAnswer(again.get(), 4);
  EXPECT_EQ(Stored(), "fourth");
  WaitAside(0);
}

TEST_F(OrderedRequestsTest, GoesWithTheServer) {
  SendPut(other_.get(), 3, "third");
  WaitAside(1);
  StopServer();
}

TEST_F(RailsTest, AClientThatDoesNotSaySoMayLeaveNumbersOut) {
  Start();
  const auto first = ConnectedOf(0);
  RequestHeader put = first->Header(Opcode::kPut);
  put.key_bytes = sizeof(kKey) - 1;
  put.value_bytes = 5;
  put.sequence = 5;
  EXPECT_EQ(first->Call(put, kKey, "value")->status(), ReplyStatus::kOk);
}

TEST_F(RailsTest, LongValuesGoByTheRailOfTheirRequest) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  for (RawPeer* const peer : {second.get(), first.get()}) {
    for (const uint32_t bytes : {kStaged, kLarge}) {
      Fill(peer, bytes, bytes);
      const std::vector<std::byte> sent(peer->lent().data(), peer->lent().data() + bytes);
      const auto put = peer->Call(InBuffer(peer, Opcode::kPut, bytes), kKey);
      ASSERT_EQ(put.value().status(), ReplyStatus::kOk) << bytes;
      std::memset(peer->lent().data(), 0, bytes);
      const auto get = peer->Call(InBuffer(peer, Opcode::kGet, kLarge), kKey);
      if (bytes == kLarge) {
        // The client READs it where it is.
        EXPECT_EQ(get.value().status(), ReplyStatus::kBufferTooSmall);
        continue;
      }
      ASSERT_EQ(get.value().status(), ReplyStatus::kOk);
      EXPECT_EQ(std::memcmp(peer->lent().data(), sent.data(), bytes), 0);
    }
  }
}

// With the heap full, a value waits in a buffer of the worker until it overwrites its item.
TEST_F(RailsTest, ValuesThatReplaceOthersGoByEachRail) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  ASSERT_EQ(first->Call(InBuffer(first.get(), Opcode::kPut, kLarge), kKey)->status(),
            ReplyStatus::kOk);
  for (int i = 0; i < 1000; ++i) {
    RequestHeader put = InBuffer(first.get(), Opcode::kPut, kLarge);
    const std::string key = "filler" + std::to_string(i);
    put.key_bytes = static_cast<uint16_t>(key.size());
    const auto reply = first->Call(put, key);
    if (reply.value().status() != ReplyStatus::kOk) break;
    ASSERT_LT(i, 999) << "the heap does not fill";
  }
  for (RawPeer* const peer : {first.get(), second.get(), first.get()}) {
    Fill(peer, kLarge, 7);
    EXPECT_EQ(peer->Call(InBuffer(peer, Opcode::kPut, kLarge), kKey)->status(), ReplyStatus::kOk);
  }
}

TEST_F(RailsTest, ValuesOnADiskGoByTheRailOfTheirRequest) {
  constexpr uint32_t kBytes = 20'000;
  constexpr uint64_t kSegment = 1 << 20;
  const test_support::TemporaryDirectory directory;
  const TierOptions tier = {.directory = directory.path(),
                            .bytes = kTierSegmentsMin * kSegment,
                            .segment_bytes = kSegment};
  if (!ServerTier::Open(tier, /*keeps=*/false).ok()) GTEST_SKIP() << "no tier where the tests are";
  Start([&](Server::Options* options) {
    options->memory_bytes = 8 << 20;
    options->evict = true;
    options->tier = tier;
  });
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  uint32_t keys = 0;
  for (int i = 0; stats().items_on_disk < 16 && i < 5000; ++i) {
    keys = i + 1;
    Fill(first.get(), kBytes, i);
    RequestHeader put = InBuffer(first.get(), Opcode::kPut, kBytes);
    const std::string key = "key" + std::to_string(i);
    put.key_bytes = static_cast<uint16_t>(key.size());
    ASSERT_EQ(first->Call(put, key).value().status(), ReplyStatus::kOk);
    Advance(kNsPerMs);  // the victims are chosen in the background
  }
  uint32_t seen = 0;
  for (uint32_t i = 0; i < keys && seen < 4; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (!server().store().Get(key, {}, now().server_time).on_disk) continue;
    for (RawPeer* const peer : {second.get(), first.get()}) {
      RequestHeader get = InBuffer(peer, Opcode::kGet, kLarge);
      get.key_bytes = static_cast<uint16_t>(key.size());
      const auto reply = peer->Call(get, key);
      if (reply.value().status() != ReplyStatus::kOk) continue;  // it is back in memory, and large
      ASSERT_EQ(reply->header.get.value_in_buffer, 1);
      const std::vector<std::byte> got(peer->lent().data(), peer->lent().data() + kBytes);
      Fill(peer, kBytes, i);
      EXPECT_EQ(std::memcmp(got.data(), peer->lent().data(), kBytes), 0);
      ++seen;
    }
  }
  EXPECT_GE(seen, 4u);
}

TEST_F(RailsTest, ASessionHasConnectionsOfBothRails) {
  Start();
  const auto first = ConnectedOf(0);
  auto second = PeerOf(1);
  ASSERT_TRUE(second->Join(*first, 1));
  EXPECT_EQ(second->grant().session_id, first->grant().session_id);
  EXPECT_NE(second->grant().connection_id, first->grant().connection_id);
  EXPECT_TRUE(second->ReadAt(second->grant().region_address, second->grant().region_rkey));
  EXPECT_EQ(second->Put(kKey, "value"), ReplyStatus::kOk);
  // The same place over the other rail: the old queue pair is closed first.
  auto again = PeerOf(0);
  ASSERT_TRUE(again->Join(*first, 1));
  EXPECT_TRUE(second->WaitBroken());
  EXPECT_EQ(stats().sessions, 1u);
  EXPECT_EQ(stats().connections, 2u);
  first->next_sequence = second->next_sequence;  // numbers are the session's
  EXPECT_EQ(first->Get(kKey), "value");
}

TEST_F(RailsTest, OnlyTheLockRailSwapsLockWords) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  EXPECT_EQ(static_cast<LockMode>(first->grant().lock_mode), LockMode::kNicCas);
  EXPECT_EQ(static_cast<LockMode>(second->grant().lock_mode), LockMode::kRpcLoopback);
  EXPECT_EQ(second->grant().lock_address, 0u);
  EXPECT_EQ(second->grant().lock_rkey, 0u);
  EXPECT_EQ(second->grant().lock_words, first->grant().lock_words);
}

TEST_F(RailsTest, LocksByRpcOverAnotherRailExcludeSwaps) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  const size_t index = HashOf(*first).LockIndex(first->grant().lock_words);
  ASSERT_EQ(first->Cas(index, 0, WordOf(*first)), 0u);
  const ReplyHeader refused = CallLock(second.get(), Opcode::kLock);
  EXPECT_EQ(static_cast<ReplyStatus>(refused.status), ReplyStatus::kLockHeld);
  EXPECT_EQ(refused.lock.lock_word, WordOf(*first));
  EXPECT_EQ(first->Cas(index, WordOf(*first), 0), WordOf(*first));
  EXPECT_EQ(static_cast<ReplyStatus>(CallLock(second.get(), Opcode::kLock).status),
            ReplyStatus::kOk);
  EXPECT_EQ(first->Cas(index, 0, WordOf(*first)), WordOf(*second));
  EXPECT_EQ(static_cast<ReplyStatus>(CallLock(second.get(), Opcode::kUnlock).status),
            ReplyStatus::kOk);
}

// If the server swapped by the device of the request, both would get the lock now and then: a
// device writes 20 us after it has read.
TEST_F(RailsTest, OneOfTwoWhoAskAtOnceGetsTheLock) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  const size_t index = HashOf(*first).LockIndex(first->grant().lock_words);
  for (int i = 0; i < 200; ++i) {
    RequestHeader lock = second->Header(Opcode::kLock);
    lock.key_bytes = sizeof(kKey) - 1;
    lock.lock.lock_word = WordOf(*second);
    ASSERT_TRUE(second->Send(lock, kKey));
    const auto before = first->Cas(index, 0, WordOf(*first));
    const auto reply = second->Receive();
    ASSERT_TRUE(before && reply);
    const bool first_has = *before == 0, second_has = reply->status() == ReplyStatus::kOk;
    ASSERT_NE(first_has, second_has) << i;
    if (first_has) {
      ASSERT_EQ(first->Cas(index, WordOf(*first), 0), WordOf(*first));
    } else {
      ASSERT_EQ(static_cast<ReplyStatus>(CallLock(second.get(), Opcode::kUnlock).status),
                ReplyStatus::kOk);
    }
  }
}

TEST_F(RailsTest, HeatsAreReadByTheKeyOfTheRail) {
  Start([](Server::Options* options) { options->evict = true; });
  std::set<uint32_t> keys;
  for (const uint32_t rail : {0, 1}) {
    const auto peer = ConnectedOf(rail);
    const auto reply = peer->Call(peer->Header(Opcode::kHeats));
    ASSERT_EQ(reply.value().value.size(), sizeof(HeatsReply));
    HeatsReply heats{};
    std::memcpy(&heats, reply->value.data(), sizeof(heats));
    EXPECT_EQ(peer->ReadAt(heats.address, heats.rkey), 0u);
  }
}

TEST_F(RailsTest, LeasesOfItemsAreReadByTheKeyOfTheRail) {
  Start([](Server::Options* options) { options->item_lease_ms = 100; });
  for (const uint32_t rail : {0, 1}) {
    const auto peer = ConnectedOf(rail);
    const auto reply = peer->Call(peer->Header(Opcode::kItemLeases));
    ASSERT_EQ(reply.value().value.size(), sizeof(ItemLeasesReply));
    ItemLeasesReply leases{};
    std::memcpy(&leases, reply->value.data(), sizeof(leases));
    EXPECT_TRUE(peer->ReadAt(leases.address, leases.rkey).has_value());
  }
}

TEST_F(RailsTest, TheSecondAddressOfADeviceSharesWhatIsRegistered) {
  Start(
      [](Server::Options* options) { options->more_rails.push_back(*Resolve("127.0.1.2:0", 0)); });
  const auto& rails = server().context().rails;
  ASSERT_EQ(rails.size(), 3u);
  EXPECT_NE(rails[0].pd, rails[1].pd);
  EXPECT_EQ(rails[1].pd, rails[2].pd);
  EXPECT_EQ(rails[1].region_rkey, rails[2].region_rkey);
  RawPeer peer(this, second_, rails[2].address);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.Put(kKey, "value"), ReplyStatus::kOk);
}

TEST_F(RailsTest, WrongAddressesAreRefused) {
  const auto why_not = [](const std::vector<std::string>& more, const char* first = "127.0.0.1:0") {
    Server::Options options{
        .listen = *Resolve(first, 0), .device = TestDevice(), .clocks = MachineClocks()};
    for (const std::string& text : more) options.more_rails.push_back(*Resolve(text, 0));
    const auto server = Server::Create(options);
    return std::string(server.status().message());
  };
  EXPECT_THAT(why_not({"203.0.113.7:0"}), HasSubstr("cannot listen on 203.0.113.7:0"));
  EXPECT_THAT(why_not({"0.0.0.0:0"}), HasSubstr("is of all devices"));
  EXPECT_THAT(why_not({"127.0.0.1:0"}, "127.0.1.1:0"),
              HasSubstr("is of device softverbs1, and not of softverbs0: --device=softverbs1"));
}

TEST_F(RailsTest, WhatComesByEachIsCounted) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1), third = ConnectedOf(1);
  EXPECT_EQ(first->Put(kKey, "value"), ReplyStatus::kOk);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(second->Get(kKey), "value");
  EXPECT_TRUE(third->Call(third->Header(Opcode::kHeartbeat)).has_value());
  Pass(int64_t{kSilenceMsDefault} * kNsPerMs / 2);  // they are counted now and then
  const auto& requests = server().workers().front()->counters().rail_requests;
  EXPECT_EQ(requests[0].value(), 1u);
  EXPECT_EQ(requests[1].value(), 3u);
}

TEST_F(RailsTest, TellsWhoAsksWhereTheyAre) {
  Start();
  for (const uint8_t own : {0, 1}) {
    const auto peer = ConnectedOf(own);
    const RailsReply told = Ask(peer.get());
    ASSERT_EQ(told.count, 2);
    EXPECT_EQ(told.lock_rail, 0);
    EXPECT_EQ(told.own_rail, own);
    for (const uint8_t i : {0, 1}) {
      const SocketAddress& address = server().context().rails[i].address;
      const auto bytes = address.NetworkBytes();
      EXPECT_EQ(std::memcmp(told.rails[i].address.data(), bytes.data(), 16), 0);
      EXPECT_EQ(told.rails[i].port, address.port());
      EXPECT_EQ(told.rails[i].mtu_bytes, 4096);
      EXPECT_EQ(told.rails[i].mbit_per_second, 100'000u);
      EXPECT_EQ(told.rails[i].port_number, i + 1);
      EXPECT_EQ(told.rails[i].state, static_cast<uint8_t>(RailState::kUp));
    }
  }
}

TEST_F(RailsTest, TellsHowManyConnectionsEachHas) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  auto third = ConnectedOf(1);
  EXPECT_EQ(Ask(first.get()).rails[0].connections, 1u);
  EXPECT_EQ(Ask(first.get()).rails[1].connections, 2u);
  third.reset();
  EXPECT_TRUE(StepUntil([this] { return stats().connections == 2; }));
  EXPECT_EQ(Ask(first.get()).rails[1].connections, 1u);
}

TEST_F(RailsTest, APortThatIsDownLeavesTheOtherRailServed) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  ASSERT_EQ(softverbs_set_port(1, 0), 0);
  Pass(kNsPerSecond);
  EXPECT_EQ(Ask(first.get()).rails[1].state, static_cast<uint8_t>(RailState::kDown));
  EXPECT_EQ(Ask(first.get()).rails[0].state, static_cast<uint8_t>(RailState::kUp));
  EXPECT_EQ(first->Put(kKey, "value"), ReplyStatus::kOk);
  EXPECT_EQ(softverbs_set_port(1, 1), 0);
  Pass(kNsPerSecond);
  EXPECT_EQ(Ask(first.get()).rails[1].state, static_cast<uint8_t>(RailState::kUp));
  EXPECT_EQ(second->Get(kKey), "value");
}

TEST_F(RailsTest, ADeviceThatIsGoneTakesItsRailsAlone) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  RailWatch watch(server().all_workers(), /*in_group=*/false);
  watch.OnLost(second_.verbs, "was removed");
  EXPECT_TRUE(watch.status().ok());
  EXPECT_TRUE(second->WaitBroken());
  EXPECT_EQ(server().context().rail_board.Of(1).state, RailState::kDown);
  watch.Look();
  EXPECT_EQ(server().context().rail_board.Of(1).state, RailState::kDown) << "it comes not back";
  EXPECT_EQ(first->Put(kKey, "value"), ReplyStatus::kOk);
  EXPECT_TRUE(StepUntil([this] { return stats().connections == 1; }));
  EXPECT_FALSE(server().workers().front()->failed());
  watch.OnLost(TestDevice().verbs, "was removed");
  EXPECT_EQ(watch.status().message(), "device softverbs0 was removed");
}

TEST_F(RailsTest, TheOnlyDeviceEndsTheServerWhicheverItIs) {
  StartServer();
  RailWatch watch(server().all_workers(), /*in_group=*/false);
  watch.OnLost(nullptr, "was removed");
  EXPECT_EQ(watch.status().message(), "device softverbs0 was removed");
}

// Its links by that device may never be flushed, and the group would wait for that.
TEST_F(RailsTest, ADeviceThatIsGoneEndsAMemberOfAGroup) {
  Start();
  RailWatch watch(server().all_workers(), /*in_group=*/true);
  EXPECT_TRUE(watch.status().ok());
  watch.OnLost(second_.verbs, "failed");
  EXPECT_EQ(watch.status().message(),
            "device softverbs1 failed, which ends a member of a group: it is to be started again");
}

TEST_F(RailsTest, SleepsOnTheQueuesOfBoth) {
  Start();
  const Worker& worker = *server().workers().front();
  std::vector<int> fds(worker.fds().begin(), worker.fds().end());
  std::erase(fds, -1);
  EXPECT_EQ(std::set<int>(fds.begin(), fds.end()).size(), 3u) << "inbox and two queues";
}

}  // namespace
}  // namespace gannet
