// Clients of a group of two real servers in this process. The test decides who is primary and until
// when its lease is, and copies the changes of one to the other.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/session/primary_lease_watch.h"
#include "common/base/clocks.h"
#include "common/protocol/not_primary.h"
#include "common/protocol/partition_map.h"
#include "common/rdma/loopback.h"
#include "server/group/replica/group_standing.h"
#include "server/log/changes/change_stream.h"
#include "server/main/control/server.h"
#include "tests/client/api/patient_options.h"
#include "tests/common/rdma/test_device.h"
#include "tests/support/rest.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kHistoryOfServers = 0xa1;
// No test waits for such a lease to end.
constexpr int64_t kLongNs = 30 * kNsPerSecond;

// A member: a server, its place in the group, and the thread that runs it.
class MemberOfServer : private ChangeConsumer {
 public:
  MemberOfServer() : standing_(kHistoryOfServers) {
    Server::Options options{.clocks = MachineClocks()};
    options.device = TestDevice();
    options.listen = OwnAddress(TestDevice()).value();
    options.memory_bytes = 32 << 20;
    options.lock_words = 256;
    options.standing = &standing_;
    server_ = Server::Create(options).value();
    server_->AddConsumer(this);
    thread_ = std::thread([this] { Run(); });
  }
  ~MemberOfServer() override { Die(); }

  std::string address() const { return server_->address().ToString(); }
  GroupStanding& standing() { return standing_; }
  // Copies its changes to `backup` from now on. Call it before anybody writes.
  void CopyTo(MemberOfServer* backup) { backup_ = &backup->server_->store(); }

  void Serve(BootTime lease_end) {
    standing_.SetLeaseEnd(lease_end);
    standing_.SetServes(true);
  }
  // Its thread does nothing any more, as that of a stopped process. Clients can READ its memory.
  void Stop() {
    stopped_.store(true);
    while (running_.load()) test_support::Rest();
  }
  void Continue() { stopped_.store(false); }
  // Ends the server with all its connections.
  void Die() {
    if (!thread_.joinable()) return;
    Continue();
    dying_.store(true);
    thread_.join();
    server_.reset();
  }

 private:
  void Run() {
    const ServerClock clock = ServerClock::Start(MachineClocks());
    const Worker& worker = *server_->workers()[0];
    while (!worker.closed()) {
      running_.store(true);
      if (stopped_.load()) {
        running_.store(false);
        std::this_thread::yield();
        continue;
      }
      if (dying_.exchange(false)) server_->BeginStop();
      const Now now = clock.Read();
      server_->Poll(now);
      server_->workers()[0]->Poll(now);
      std::this_thread::yield();
    }
  }
  bool Take(const Change& change, ChangePlace*) override {
    if (Store* const backup = backup_.load()) {
      EXPECT_EQ(backup->Apply(change, ServerClock::BeginsAt(MachineWallTime())), ReplyStatus::kOk);
    }
    return true;
  }

  GroupStanding standing_;
  std::atomic<Store*> backup_ = nullptr;
  std::unique_ptr<Server> server_;
  std::atomic<bool> stopped_ = false, running_ = false, dying_ = false;
  std::thread thread_;
};

class GroupClientTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect(const std::string& endpoint) {
    auto client = Client::Connect({endpoint}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  std::string Both() const { return absl::StrCat("cluster:", a_.address(), ",", b_.address()); }
  // Waits until a lease is over for certain, as a new primary does.
  static void WaitOut(BootTime lease_end) {
    while (MachineBootTime() <= lease_end) test_support::Rest();
  }

  MemberOfServer a_, b_;
};

TEST_F(GroupClientTest, ABackupSendsItToThePrimary) {
  a_.Serve(MachineBootTime() + kLongNs);
  b_.standing().SetElsewhere(ReasonOf({a_.address(), 1}));
  const auto client = Connect(absl::StrCat("cluster:", b_.address()));
  ASSERT_NE(client, nullptr);
  EXPECT_TRUE(client->Put("key", "value").ok());
  EXPECT_EQ(client->Get("key").value()->data, "value");
  EXPECT_EQ(client->Info()[0].name, "group-00000000000000a1");
}

TEST_F(GroupClientTest, OneMemberIsEnoughToFindTheOthers) {
  a_.Serve(MachineBootTime() + kLongNs);
  a_.standing().SetMap(std::make_shared<const std::string>(
      EncodePartitionMap({.groups = {{"g1", {a_.address(), b_.address()}}},
                          .partitions = std::vector<uint16_t>(kPartitions)})));
  const auto client = Connect(absl::StrCat("cluster:", a_.address()));
  ASSERT_NE(client, nullptr);
  a_.Die();
  b_.Serve(MachineBootTime() + kLongNs);
  EXPECT_TRUE(client->Put("key", "value").ok());
}

// The memory of a group that gave a partition away still has it, and the client's NIC READs it.
TEST_F(GroupClientTest, ALeaseForLaterMapsIsNone) {
  const BootTime end = MachineBootTime() + PrimaryLeaseWatch::kLengthNsMin;
  a_.Serve(end);
  const auto client = Connect(Both());
  ASSERT_NE(client, nullptr);
  GroupPartitions partitions = {.revision = 1, .lost = 1, .alone = false};
  partitions.served.set();
  a_.standing().SetPartitions(partitions);
  WaitOut(end);
  a_.Serve(MachineBootTime() + kLongNs);
  EXPECT_FALSE(client->Get("key", milliseconds(50)).ok()) << "the client's map has revision 0";
}

TEST_F(GroupClientTest, AClientWithThatMapHasTheLease) {
  const PartitionMap map = {.revision = 1,
                            .groups = {{.name = "g1", .addresses = {a_.address()}}},
                            .partitions = std::vector<uint16_t>(kPartitions),
                            .changed = std::vector<uint64_t>(kPartitions, 1),
                            .closed = std::vector<bool>(kPartitions)};
  a_.standing().SetMap(std::make_shared<const std::string>(EncodePartitionMap(map)));
  GroupPartitions partitions = {.revision = 1, .lost = 1, .alone = true};
  partitions.served.set();
  a_.standing().SetPartitions(partitions);
  a_.Serve(MachineBootTime() + kLongNs);
  const auto client = Connect(Both());
  ASSERT_NE(client, nullptr) << "the map is told without a lease";
  EXPECT_TRUE(client->Put("key", "value").ok());
  EXPECT_EQ(client->Get("key").value()->data, "value");
}

// Two groups of one member each. All of the first one's partitions move to the second.
TEST_F(GroupClientTest, WhatMovedIsAskedForAtItsNewGroup) {
  b_.standing().SetHistory(kHistoryOfServers + 1);
  PartitionMap map = {.groups = {{"g1", {a_.address()}}, {"g2", {b_.address()}}},
                      .partitions = std::vector<uint16_t>(kPartitions)};
  const auto tell = [&] {
    for (MemberOfServer* const member : {&a_, &b_}) {
      GroupPartitions its = {.revision = map.revision, .alone = false};
      if (map.partitions[0] == (member == &a_ ? 0 : 1)) its.served.set();
      if (member == &a_) its.lost = map.revision;
      member->standing().SetPartitions(its);
      member->standing().SetMap(std::make_shared<const std::string>(EncodePartitionMap(map)));
      member->Serve(MachineBootTime() + kLongNs);
    }
  };
  tell();
  const auto client = Connect(absl::StrCat("cluster:", a_.address()));
  ASSERT_NE(client, nullptr);
  ASSERT_EQ(client->Info().size(), 2u);
  EXPECT_TRUE(client->Put("key", "old").ok());
  EXPECT_TRUE(client->Put("other", "old").ok());
  map.revision = 2;  // closed, and given
  map.partitions.assign(kPartitions, 1);
  map.changed.assign(kPartitions, 2);
  map.closed.assign(kPartitions, false);
  tell();
  EXPECT_TRUE(client->Put("key", "new").ok()) << "it is refused, and sent to the owner";
  EXPECT_EQ(client->Get("key").value()->data, "new");
  EXPECT_FALSE(client->Get("other").value().has_value()) << "nobody brought it there";
}

TEST_F(GroupClientTest, WithoutAPrimaryACallEndsAtItsDeadline) {
  a_.Serve(MachineBootTime() + kLongNs);
  const auto client = Connect(Both());
  ASSERT_NE(client, nullptr);
  a_.Die();
  EXPECT_TRUE(absl::IsUnavailable(client->Get("key", milliseconds(100)).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->Put("key", "value", {}, milliseconds(100)).status()));
  EXPECT_FALSE(client->Info()[0].unreachable);
  b_.Serve(MachineBootTime() + kLongNs);
  EXPECT_TRUE(client->Put("key", "value").ok());
}

// What was acknowledged is there after the fail-over, and calls that wait for a primary succeed.
TEST_F(GroupClientTest, AFailOverInTheMiddleOfGetsAndPuts) {
  constexpr int kKeys = 16, kRounds = 100;  // before the fail-over, and after it
  a_.CopyTo(&b_);
  a_.Serve(MachineBootTime() + kLongNs);
  const auto client = Connect(Both());
  ASSERT_NE(client, nullptr);
  std::atomic<int> round = 0;
  std::atomic<bool> done = false;
  int unknown = 0;
  std::thread user([&] {
    for (; !done; ++round) {
      const std::string key = absl::StrCat("key", round % kKeys);
      const std::string value = absl::StrCat(round.load());
      const absl::Status put = client->Put(key, value).status();
      // One request may have been under way when the primary died.
      unknown += !put.ok();
      const auto got = client->Get(key);
      EXPECT_TRUE(got.ok()) << got.status();
      if (!put.ok() || !got.ok()) continue;
      EXPECT_TRUE(got->has_value()) << "lost: " << key;
      if (got->has_value()) {
        EXPECT_EQ((*got)->data, value);
      }
    }
  });
  while (round < kRounds) test_support::Rest();
  const uint64_t before = client->Info()[0].incarnation;
  a_.Die();
  b_.Serve(MachineBootTime() + kLongNs);
  for (const int until = round + kRounds; round < until;) test_support::Rest();
  done = true;
  user.join();
  EXPECT_LE(unknown, 1);
  EXPECT_NE(client->Info()[0].incarnation, before);
  EXPECT_TRUE(client->Info()[0].connected);
}

// The old primary's memory can still be READ, and has the old value. `leave` says how it ends.
class DeposedTest : public GroupClientTest {
 protected:
  void FindNothingStaleAfter(const std::function<void()>& leave) {
    a_.CopyTo(&b_);
    a_.Serve(MachineBootTime() + kLongNs);
    const auto client = Connect(Both());
    ASSERT_NE(client, nullptr);
    ASSERT_TRUE(client->Put("key", "old").ok());
    // From here on its lease is short, and nobody extends it.
    const BootTime end = MachineBootTime() + 400 * kNsPerMs;
    std::atomic<bool> written = false, done = false;
    std::atomic<int> reads = 0;
    a_.standing().SetLeaseEnd(end);
    const auto reader = Connect(Both());  // its grant tells the short lease
    ASSERT_NE(reader, nullptr);
    std::thread user([&] {
      while (!done) {
        const bool late = written;
        const auto got = reader->Get("key");
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_TRUE(got->has_value());
        ++reads;
        if (late) {
          EXPECT_EQ((*got)->data, "new") << "a stale READ was believed";
        }
        done = (*got)->data == "new";
      }
    });
    while (reads < 10 && MachineBootTime() < end) test_support::Rest();
    leave();
    WaitOut(end);
    b_.Serve(MachineBootTime() + kLongNs);
    const auto writer = Connect(absl::StrCat("cluster:", b_.address()));
    EXPECT_NE(writer, nullptr);
    if (writer != nullptr) {
      EXPECT_TRUE(writer->Put("key", "new").ok());
    }
    written = true;
    user.join();
    EXPECT_GE(reader->Info()[0].reads_disbelieved, 1u);
    a_.Continue();
    EXPECT_EQ(reader->Get("key").value()->data, "new");
  }
};

TEST_F(DeposedTest, ThePrimaryAnswersButHasNoLease) {
  FindNothingStaleAfter([this] {
    a_.standing().SetServes(false);
    a_.standing().SetElsewhere(ReasonOf({b_.address(), 2}));
  });
}

TEST_F(DeposedTest, ThePrimaryIsStopped) {
  FindNothingStaleAfter([this] { a_.Stop(); });
}

}  // namespace
}  // namespace gannet
