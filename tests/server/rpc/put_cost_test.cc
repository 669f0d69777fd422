#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "gtest/gtest.h"
#include "server/log/changes/record.h"
#include "server/log/changes/update_lane_inline.h"
#include "server/log/journal/journal.h"
#include "tests/server/log/journal/simulated_files.h"
#include "tests/server/rpc/put_fixture.h"

namespace gannet {
namespace {

// The ctest entries put_instructions_* bound what ServePuts executes.
constexpr int kPuts = 1024;

class PutCostTest : public PutTest {
 protected:
  void SetUp() override { Start(/*connections_max=*/128); }

  // Runs the same number of PUTs, one from each of so many sessions in each Poll.
  void RunSessions(int sessions) {
    std::vector<std::unique_ptr<RawPeer>> peers;
    for (int i = 0; i < sessions; ++i) {
      ASSERT_TRUE(peers.emplace_back(std::make_unique<RawPeer>(this))->Connect());
    }
    for (int i = 0; i < kPuts; ++i) ASSERT_EQ(peers[0]->Put(Key(i), value_), ReplyStatus::kOk);
    Worker& worker = *server().workers()[0];
    const uint64_t rpcs = stats().rpcs;
    for (int i = 0; i < kPuts; i += sessions) {
      for (int j = 0; j < sessions; ++j) {
        Send(*peers[j], Key(i + j));
        ASSERT_TRUE(peers[j]->WaitSent());
      }
      ServePuts(worker, now());
      ASSERT_EQ(stats().rpcs, rpcs + i + sessions) << "not all in one Poll";
      for (auto& peer : peers) ASSERT_EQ(peer->Receive()->status(), ReplyStatus::kOk);
    }
  }

  // Runs PUTs of 64 B to keys that exist, `depth` of them in each Poll.
  void Run(int depth) {
    RawPeer peer(this);
    ASSERT_TRUE(peer.Connect());
    for (int i = 0; i < kPuts; ++i) ASSERT_EQ(peer.Put(Key(i), value_), ReplyStatus::kOk);
    Worker& worker = *server().workers()[0];
    const uint64_t rpcs = stats().rpcs;
    for (int i = 0; i < kPuts; i += depth) {
      for (int j = 0; j < depth; ++j) Send(peer, Key(i + j));
      ASSERT_TRUE(peer.WaitSent());
      ServePuts(worker, now());
      ASSERT_EQ(stats().rpcs, rpcs + i + depth) << "not all in one Poll";
      for (int j = 0; j < depth; ++j) ASSERT_EQ(peer.Receive()->status(), ReplyStatus::kOk);
    }
  }
};

// A journal that takes whatever comes, as the disk's log gives it changes. Nobody writes it.
class TestLog : public ChangeConsumer {
 public:
  TestLog() {
    auto journal = Journal::Create({.files = &files_,
                                    .sync = Journal::Sync::kNone,
                                    .segment_bytes = 1 << 20,
                                    .refuses_for_age = false});
    EXPECT_TRUE(journal.ok()) << journal.status();
    journal_ = *std::move(journal);
  }
  bool Take(const Change& change, ChangePlace* place) override {
    const size_t bytes = RecordBytes(change.key.size(), change.value.size());
    const auto reserved = journal_->Reserve(bytes, MonotonicNs());
    if (reserved) *place = *reserved;
    return reserved.has_value();
  }
  void Fill(const Change& change, const ChangePlace& place) override {
    journal_->Fill(change, place);
  }
  void EndUpdates(UpdateLane* lane) override {
    lane->Seal();
    journal_->AppendUpdates(*lane, MonotonicNs());
  }
  Takes takes() const override {
    return journal_->Takes(MonotonicNs()) ? Takes::kNow : Takes::kLater;
  }
  uint64_t appended() const { return journal_->appended(); }

 private:
  SimulatedFiles files_{1};
  std::unique_ptr<Journal> journal_;
};

// As with --data and sync none or interval.
TEST_F(PutCostTest, ThirtyTwoAtOnceRecorded) {
  TestLog log;
  server().AddConsumer(&log, ChangeStream::Need::kHears);
  Run(32);
  EXPECT_EQ(log.appended(), 2 * kPuts * RecordBytes(16, value_.size()));
  StopServer();
}

TEST_F(PutCostTest, OneAtATime) { Run(1); }
TEST_F(PutCostTest, ThirtyTwoAtOnce) { Run(32); }
TEST_F(PutCostTest, FromThirtyTwoSessions) { RunSessions(32); }

// Of items that are not leased, at a server that leases others.
class LeasingPutCostTest : public PutCostTest {
 protected:
  void SetUp() override { Start(/*connections_max=*/128, /*item_lease_ms=*/20); }
};

TEST_F(LeasingPutCostTest, ThirtyTwoAtOnce) { Run(32); }

// Each key shares its count of marks with one other key that is marked.
TEST_F(LeasingPutCostTest, NeighboursOfMarks) {
  const Store& store = server().store();
  std::set<uint64_t> counts;
  for (int i = 0; i < kPuts; ++i) {
    const uint64_t hash = store.HashOf(Key(i)).value();
    if (!counts.insert(hash >> 48).second) continue;
    ASSERT_TRUE(server().store().leases()->Announce(KeyHash(hash ^ 1)));
  }
  Run(32);
}

}  // namespace
}  // namespace gannet
