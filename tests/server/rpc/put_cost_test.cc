#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {

// What is measured: tools/figures/instructions collects while this is on the stack, and the ctest
// entries put_instructions_* bound what it finds. All of a worker's Poll, so the receives, the
// store, the replies' post and the receives' repost.
__attribute__((noinline)) void ServePuts(Worker& worker, const Now& now) { worker.Poll(now); }

namespace {

constexpr int kPuts = 1024;

class PutCostTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServer([](auto* options) {
      options->memory_bytes = 64 << 20;
      options->connections_max = 128;
    });
  }

  // As many PUTs, one from each of so many sessions in each Poll.
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

  // All PUTs of 64 B to keys that are there, `depth` of them in each Poll.
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

 private:
  void Send(RawPeer& peer, const std::string& key) {
    RequestHeader header = peer.Header(Opcode::kPut);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value_.size());
    ASSERT_TRUE(peer.Send(header, key, value_));
  }
  static std::string Key(int i) {
    const std::string number = std::to_string(i);
    return std::string(16 - number.size(), 'k') + number;
  }

  const std::string value_ = std::string(64, 'v');
};

TEST_F(PutCostTest, OneAtATime) { Run(1); }
TEST_F(PutCostTest, ThirtyTwoAtOnce) { Run(32); }
TEST_F(PutCostTest, FromThirtyTwoSessions) { RunSessions(32); }

}  // namespace
}  // namespace gannet
