// A client of a group whose primary dies or is deposed: where it goes, and what becomes of its
// operations.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/not_primary.h"
#include "common/protocol/partition_map.h"
#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

class FailOverTest : public FakeRun {
 protected:
  static constexpr uint16_t kLeaseMs = 400;

  void SetUp() override {
    Prepare(server_.get(), 0xa1, "old");
    Prepare(&other_, 0xb1, "new");
    other_.not_primary = "";
  }
  void Prepare(FakeServer* server, uint64_t incarnation, std::string_view value) {
    IndexView& view = server->region().view();
    server->grant().history = 7;
    server->grant().incarnation = view.incarnation = incarnation;
    server->grant().hash_seed = view.hash_seed = incarnation;
    for (uint64_t b = 0; b < view.index.buckets(); ++b) server->region().Publish(b);
    server->lease_left_ms = [] { return kLeaseMs; };
    server->region().SetSlot(server->region().HomeOf("there"), 0,
                             server->region().AddItem("there", value));
    server->PublishRegion();
    // The session is another, unless the test says that it was adopted.
    server->alter_grant = [this, server](const ConnectRequest& request, Grant* grant) {
      grant->resumed = request.session_token != 0 && (server == server_.get() || adopts_);
    };
  }
  void ConnectToBoth() {
    Connect(8, [this](Engine::Settings& settings) {
      settings.endpoints = {absl::StrCat("cluster:", server_->endpoint(), ",", other_.endpoint())};
    });
    ASSERT_EQ(server_->connections(), 1u);
  }
  void StepOthers() override { other_.Step(); }
  // The primary dies.
  void Die() {
    server_->not_primary = "";
    server_->BreakAll();
    Settle();
  }
  // The other one takes over.
  void TakeOver() {
    other_.not_primary.reset();
    PassMs(500);
  }
  const ClientSession& session() const { return engine_->servers().session(0); }

  FakeServer other_;
  bool adopts_ = false;
};

TEST_F(FailOverTest, ThePrimaryIsFoundByAskingAMember) {
  other_.not_primary = ReasonOf({server_->endpoint(), 3});
  Engine::Settings settings{.endpoints = {absl::StrCat("cluster:", other_.endpoint())},
                            .clock = clock_};
  settings.options.depth = 8;
  settings.options.device = std::string(kSoftverbsDeviceName);
  engine_ = Engine::Create(std::move(settings)).value();
  for (int i = 0; i < 4; ++i) Settle();
  EXPECT_TRUE(session().ready()) << "it waits before it follows: " << session().attempts().status();
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(other_.refused(), 1u);
}

TEST_F(FailOverTest, AMemberThatWasNotListedIsFoundByTheMap) {
  server_->map = EncodePartitionMap({.groups = {{"g1", {server_->endpoint(), other_.endpoint()}}},
                                     .partitions = std::vector<uint16_t>(kPartitions)});
  Connect(8, [this](Engine::Settings& settings) {
    settings.endpoints = {absl::StrCat("cluster:", server_->endpoint())};
  });
  PassMs(20);
  EXPECT_EQ(server_->asked_for_map(), 1u);
  Die();
  TakeOver();
  EXPECT_TRUE(session().ready()) << session().attempts().status();
  EXPECT_EQ(other_.connections(), 1u);
}

// It is not among those that the primary knew at first.
TEST_F(FailOverTest, AMemberThatIsAddedLaterIsFoundByTheMap) {
  PartitionMap map = {.groups = {{"g1", {server_->endpoint()}}},
                      .partitions = std::vector<uint16_t>(kPartitions)};
  server_->map = EncodePartitionMap(map);
  Connect(8, [this](Engine::Settings& settings) {
    settings.endpoints = {absl::StrCat("cluster:", server_->endpoint())};
  });
  PassMs(500);
  map.groups[0].addresses.push_back(other_.endpoint());
  server_->map = EncodePartitionMap(map);
  PassMs(60'000, /*step_ms=*/100);
  EXPECT_GE(server_->asked_for_map(), 3u);
  EXPECT_LE(server_->asked_for_map(), 8u) << "it is not asked all the time";
  Die();
  TakeOver();
  EXPECT_TRUE(session().ready()) << session().attempts().status();
}

TEST_F(FailOverTest, AServerThatIsInNoGroupIsNotAskedForAMap) {
  server_->grant().history = 0;
  server_->lease_left_ms = [] { return uint16_t{0}; };
  Connect(8);
  PassMs(5'000, /*step_ms=*/100);
  EXPECT_EQ(server_->asked_for_map(), 0u);
}

TEST_F(FailOverTest, ReadsGoOnAtTheNewPrimaryAndFindNothingOfTheOldOne) {
  ConnectToBoth();
  const uint64_t before = BeginKey(OpType::kGet, "there");
  Settle();
  EXPECT_EQ(ended_[before].value, "old");
  Die();
  const uint64_t get = BeginKey(OpType::kGet, "there", 5'000);
  PassMs(1'000);
  EXPECT_FALSE(HasEnded(get)) << "there is no primary: it waits for its deadline";
  EXPECT_TRUE(session().attempts().starting());
  EXPECT_FALSE(session().down());
  TakeOver();
  ASSERT_TRUE(HasEnded(get));
  EXPECT_EQ(ended_[get].value, "new") << "from a location in the old primary's memory";
}

TEST_F(FailOverTest, WithoutAPrimaryCallsEndAtTheirDeadline) {
  ConnectToBoth();
  Die();
  const uint64_t get = BeginKey(OpType::kGet, "there", 300);
  const uint64_t put = BeginPut("key", "value", 300);
  PassMs(290);
  EXPECT_FALSE(HasEnded(get));
  EXPECT_FALSE(HasEnded(put));
  PassMs(30);
  ASSERT_TRUE(HasEnded(get) && HasEnded(put));
  EXPECT_EQ(ended_[get].outcome, Outcome::kUnavailable);
  EXPECT_EQ(ended_[put].outcome, Outcome::kUnavailable) << "it was not sent";
}

TEST_F(FailOverTest, IfTheSessionWasAdoptedRequestsAreSentAgainUnderTheirNumbers) {
  adopts_ = true;
  ConnectToBoth();
  other_.answer = [](const FakeServer::Request& it) { return FakeServer::ReplyTo(it); };
  const uint64_t sent = BeginPut("sent", "value", 10'000);
  Settle();
  ASSERT_EQ(server_->Count(Opcode::kPut), 1u);
  Die();
  const uint64_t unsent = BeginPut("unsent", "value", 10'000);
  TakeOver();
  ASSERT_TRUE(HasEnded(sent) && HasEnded(unsent));
  EXPECT_EQ(ended_[sent].outcome, Outcome::kOk);
  EXPECT_EQ(ended_[unsent].outcome, Outcome::kOk);
  ASSERT_EQ(other_.Count(Opcode::kPut), 2u);
  EXPECT_EQ(other_.requests()[0].header.sequence, server_->requests()[0].header.sequence);
  EXPECT_EQ(other_.requests()[0].key, "sent");
}

TEST_F(FailOverTest, OtherwiseSentWritesAreUnknownAndUnsentOnesAreSent) {
  ConnectToBoth();
  other_.answer = [](const FakeServer::Request& it) { return FakeServer::ReplyTo(it); };
  const uint64_t sent = BeginPut("sent", "value", 10'000);
  Settle();
  Die();
  const uint64_t unsent = BeginPut("unsent", "value", 10'000);
  TakeOver();
  ASSERT_TRUE(HasEnded(sent) && HasEnded(unsent));
  EXPECT_EQ(ended_[sent].outcome, Outcome::kUnknown);
  EXPECT_EQ(ended_[unsent].outcome, Outcome::kOk);
  ASSERT_EQ(other_.Count(Opcode::kPut), 1u);
  EXPECT_EQ(other_.requests()[0].key, "unsent");
}

TEST_F(FailOverTest, AnotherHistoryIsAnotherStore) {
  ConnectToBoth();
  other_.grant().history = 8;
  other_.answer = [](const FakeServer::Request& it) { return FakeServer::ReplyTo(it); };
  Die();
  const uint64_t unsent = BeginPut("unsent", "value", 10'000);
  TakeOver();
  ASSERT_TRUE(HasEnded(unsent));
  EXPECT_EQ(ended_[unsent].outcome, Outcome::kUnavailable);
  EXPECT_EQ(other_.Count(Opcode::kPut), 0u);
}

TEST_F(FailOverTest, LocksAreLost) {
  ConnectToBoth();
  const uint64_t lock = BeginKey(OpType::kLock, "there", 5'000);
  Settle();
  ASSERT_TRUE(HasEnded(lock) && ended_[lock].found);
  Die();
  TakeOver();
  const Lock held{"there", ended_[lock].word.word(), 0};
  const uint64_t unlock = Begin(UnlockRequest(held));
  Settle();
  ASSERT_TRUE(HasEnded(unlock));
  EXPECT_EQ(ended_[unlock].outcome, Outcome::kLockLost);
}

// The primary is stopped: its memory can be READ, but its CPU answers nothing.
TEST_F(FailOverTest, AStoppedPrimaryIsLeftWhenItsLeaseIsOver) {
  ConnectToBoth();
  server_->answers_heartbeats = false;
  const uint64_t put = BeginPut("key", "value", 10'000);
  PassMs(kLeaseMs);
  const uint64_t get = BeginKey(OpType::kGet, "there", 10'000);
  PassMs(10);
  EXPECT_FALSE(HasEnded(get)) << "the READ succeeded, but nobody says that it counts";
  other_.not_primary.reset();
  PassMs(2 * kLeaseMs);
  ASSERT_TRUE(HasEnded(get));
  EXPECT_EQ(ended_[get].value, "new");
  EXPECT_GE(session().lease().disbelieved(), 1u);
  ASSERT_TRUE(HasEnded(put));
  EXPECT_EQ(ended_[put].outcome, Outcome::kUnknown);
}

}  // namespace
}  // namespace gannet
