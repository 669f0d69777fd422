#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
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

// Takes every change, and forgets it.
class CountingSink : public ChangeSink {
 public:
  bool Record(const Change& change) override {
    puts_of_sessions += change.kind == Change::Kind::kPut && change.session_token != 0 &&
                        change.sequence != 0 && change.opcode == static_cast<uint8_t>(Opcode::kPut);
    return true;
  }
  int puts_of_sessions = 0;
};

// As with --data and sync none or interval, without what the journal does.
TEST_F(PutCostTest, ThirtyTwoAtOnceRecorded) {
  CountingSink sink;
  server().store().UseSink(&sink);
  Run(32);
  EXPECT_EQ(sink.puts_of_sessions, 2 * kPuts);
  server().store().UseSink(nullptr);
}

TEST_F(PutCostTest, OneAtATime) { Run(1); }
TEST_F(PutCostTest, ThirtyTwoAtOnce) { Run(32); }
TEST_F(PutCostTest, FromThirtyTwoSessions) { RunSessions(32); }

}  // namespace
}  // namespace gannet
