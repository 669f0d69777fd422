// Writes of one client to one key take effect in the order in which they were begun, and later
// operations see them. One absolute deadline holds for everything that waits.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

class PipelineOrderTest : public FakeRun {
 protected:
  std::vector<std::string> Sent() const {
    std::vector<std::string> sent;
    for (const FakeServer::Request& request : server_->requests()) {
      sent.push_back(std::to_string(request.header.opcode) + " " + request.key + " " +
                     std::to_string(request.header.value_bytes));
    }
    return sent;
  }
};

TEST_F(PipelineOrderTest, ShortWritesOfAKeyGoOutTogether) {
  Connect(8);
  BeginPut("key", "a");
  BeginPut("key", "bb");
  const std::string long_value(5000, 'c');
  BeginPut("key", long_value);
  BeginPut("key", "d");
  Settle();
  EXPECT_EQ(Sent(), (std::vector<std::string>{"2 key 1", "2 key 2", "2 key 5000"}));
}

TEST_F(PipelineOrderTest, AWriteWaitsForTheLongWriteOfItsKeyAheadOfIt) {
  Connect(8);
  const std::string long_value(1 << 20, 'a');
  BeginPut("key", long_value);
  BeginPut("key", "b");
  BeginPut("other", "c");
  Begin(DeleteRequest("key", {}));
  Settle();
  EXPECT_EQ(Sent(), (std::vector<std::string>{"2 key 1048576", "2 other 1"}));
  engine_->servers().Break(0,
                           absl::UnavailableError("by the test"));  // sent again, and now answered
  AnswerEverything();
  PassMs(100);
  EXPECT_EQ(Sent(), (std::vector<std::string>{"2 key 1048576", "2 other 1", "2 key 1048576",
                                              "2 other 1", "2 key 1", "3 key 0"}));
  for (const auto& [op, ended] : ended_) EXPECT_EQ(ended.outcome, Outcome::kOk) << op;
  EXPECT_EQ(ended_.size(), 4u);
}

TEST_F(PipelineOrderTest, AGetReadsWhatTheWriteAheadOfItWrote) {
  HandMadeRegion& region = server_->region();
  region.SetSlot(region.HomeOf("key"), 0, region.AddItem("key", "old"));
  server_->PublishRegion();
  Connect(8);
  const uint64_t put = BeginPut("key", "new");
  const uint64_t get = BeginKey(OpType::kGet, "key");
  const uint64_t other = BeginKey(OpType::kGet, "other");
  Settle();
  EXPECT_FALSE(HasEnded(get));
  EXPECT_TRUE(HasEnded(other));
  // The server writes the item while the GET waits.
  region.SetSlot(region.HomeOf("key"), 0, region.AddItem("key", "new"));
  server_->PublishRegion();
  AnswerEverything();
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  PassMs(100);
  ASSERT_TRUE(HasEnded(put) && HasEnded(get));
  EXPECT_EQ(ended_[get].value, "new");
}

// The first, a long one, comes to its deadline while there is no connection, and the others are
// started then. The slot of the last, which was another operation's, is before that of the second.
TEST_F(PipelineOrderTest, WritesThatAreReleasedWithoutAConnectionKeepTheirOrder) {
  Connect(8);
  server_->answer = [](const FakeServer::Request& request) -> std::optional<ReplyHeader> {
    if (request.opcode() == Opcode::kPut) return std::nullopt;
    return FakeServer::ReplyTo(request);
  };
  Begin(ServerRequest(*engine_, OpType::kPing, 0));
  const std::string long_value(5000, 'a');
  const uint64_t first = BeginPut("key", long_value, /*timeout_ms=*/50);
  BeginPut("key", "bb", 60'000);
  Settle();
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  BeginPut("key", "ccc", 60'000);
  clock_.now_ns += 60 * kNsPerMs;
  PollOnce();
  ASSERT_TRUE(HasEnded(first));
  AnswerEverything();
  PassMs(100);
  EXPECT_EQ(Sent(), (std::vector<std::string>{"7  0", "2 key 5000", "2 key 2", "2 key 3"}));
}

// GETs that share a READ are started by the answer to the write before them, and reach their
// deadline in the same Poll.
TEST_F(PipelineOrderTest, GetsThatShareAReadEndOnce) {
  Connect(8);
  BeginPut("key", "a", 60'000);
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<OpRequest> get = KeyRequest(OpType::kGet, "key");
    ASSERT_TRUE(get.ok());
    get->share_window = true;
    Begin(get, 20);
  }
  Settle();
  server_->AnswerNow(server_->requests().back(), ReplyStatus::kOk);
  while (softverbs_step() != 0) {
  }
  clock_.now_ns += 30 * kNsPerMs;
  Settle();
  EXPECT_EQ(ended_.size(), 3u);
  EXPECT_EQ(engine_->alive(), 0u);
}

TEST_F(PipelineOrderTest, WhatWaitsBehindAWriteEndsAtItsOwnDeadline) {
  Connect(8);
  const std::string long_value(5000, 'a');
  BeginPut("key", long_value, 500);
  const uint64_t put = BeginPut("key", "b", 20);
  const uint64_t get = BeginKey(OpType::kGet, "key", 30);
  const uint64_t last = BeginPut("key", "c", 5000);
  const int64_t begun_ns = clock_.now_ns;
  Settle();
  PassMs(100);
  ASSERT_TRUE(HasEnded(put) && HasEnded(get));
  EXPECT_EQ(ended_[put].outcome, Outcome::kDeadlineExceeded);
  EXPECT_EQ(ended_[put].at_ns - begun_ns, 20 * kNsPerMs);
  EXPECT_EQ(ended_[get].at_ns - begun_ns, 30 * kNsPerMs);
  AnswerEverything();
  PassMs(500);  // the first is given up, and the last sent
  ASSERT_TRUE(HasEnded(last));
  EXPECT_EQ(ended_[last].outcome, Outcome::kOk);
  EXPECT_EQ(Sent(), (std::vector<std::string>{"2 key 5000", "2 key 1"}));
}

TEST_F(PipelineOrderTest, WritesThatWaitAreNotForAnotherServersStore) {
  Connect(8);
  const std::string long_value(5000, 'a');
  BeginPut("key", long_value, 60'000);
  const uint64_t waiting = BeginPut("key", "b", 60'000);
  Settle();
  server_->grant().incarnation += 2;
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  PassMs(100);
  ASSERT_TRUE(HasEnded(waiting));
  EXPECT_EQ(ended_[waiting].outcome, Outcome::kUnavailable);
  EXPECT_EQ(server_->requests().size(), 1u);
}

// As many operations as possible on one key, by a client that may not connect again.
TEST_F(PipelineOrderTest, ALongChainEndsWithItsServer) {
  constexpr uint32_t kDepth = 4096;
  Connect(kDepth, [](Engine::Settings& settings) { settings.options.reconnect = false; });
  const std::string value(5000, 'a');
  for (uint32_t i = 0; i < kDepth; ++i) ASSERT_NE(BeginPut("key", value, 60'000), 0u);
  Settle();
  engine_->servers().Break(0, absl::UnavailableError("by the test"));
  PassMs(100);
  EXPECT_EQ(ended_.size(), kDepth);
  EXPECT_EQ(engine_->alive(), 0u);
}

}  // namespace
}  // namespace gannet
