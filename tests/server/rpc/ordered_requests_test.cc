// Requests of a session by two rails, whose client says that it leaves no number out.

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
#include "tests/server/rpc/rails_fixture.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

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

}  // namespace
}  // namespace gannet
