// PUTs of a server that records its changes and publishes them at once, as with --sync=interval.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

using testing::ElementsAreArray;

// Keeps what it takes, or refuses it.
class KeepingJournal : public ChangeConsumer {
 public:
  bool Take(const Change& change, ChangePlace*) override {
    if (!takes_all) return false;
    kept.push_back(std::string(change.key) + "=" + std::string(change.value));
    sequences.push_back(change.sequence);
    return true;
  }
  Takes takes() const override { return takes_all ? Takes::kNow : Takes::kNot; }

  bool takes_all = true;
  std::vector<std::string> kept;
  std::vector<uint64_t> sequences;
};

class RecordedTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServer([](Server::Options*) {});
    server().AddConsumer(&journal_, ChangeStream::Need::kHears);
    ASSERT_TRUE(peer_.emplace(this).Connect());
  }
  void TearDown() override {
    peer_.reset();
    ServerTest::TearDown();
  }
  void Send(Opcode opcode, std::string_view key, std::string_view value = "") {
    RequestHeader header = peer_->Header(opcode);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value.size());
    ASSERT_TRUE(peer_->Send(header, key, value));
  }
  // Has the server serve all that was sent in one Poll, and returns the replies' status.
  std::vector<ReplyStatus> Serve(size_t count) {
    EXPECT_TRUE(peer_->WaitSent());
    server().workers()[0]->Poll(now());
    std::vector<ReplyStatus> status;
    for (size_t i = 0; i < count; ++i) {
      const auto reply = peer_->Receive();
      if (!reply) break;
      status.push_back(reply->status());
    }
    return status;
  }

  KeepingJournal journal_;
  std::optional<RawPeer> peer_;
};

// Updates of many keys and of one, and what lies between them.
TEST_F(RecordedTest, RecordsInTheOrderOfRequests) {
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_EQ(peer_->Put(key, "00"), ReplyStatus::kOk);
    expected.push_back(key + "=00");
  }
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key" + std::to_string(i % 7 == 0 ? 0 : i);
    const std::string value = std::to_string(10 + i);
    Send(Opcode::kPut, key, value);
    expected.push_back(key + "=" + value);
    if (i == 9) {
      Send(Opcode::kAppend, "key9", "!");
      expected.emplace_back("key9=19!");
    }
  }
  EXPECT_EQ(Serve(21), std::vector<ReplyStatus>(21, ReplyStatus::kOk));
  EXPECT_THAT(journal_.kept, ElementsAreArray(expected));
  for (size_t i = 1; i < journal_.sequences.size(); ++i) {
    EXPECT_EQ(journal_.sequences[i], journal_.sequences[i - 1] + 1);
  }
  EXPECT_EQ(peer_->Get("key0"), "24");
  EXPECT_EQ(peer_->Get("key19"), "29");
  EXPECT_EQ(peer_->Get("key9"), "19!");
}

TEST_F(RecordedTest, WhatIsNotTakenDoesNotHappen) {
  ASSERT_EQ(peer_->Put("a", "1"), ReplyStatus::kOk);
  ASSERT_EQ(peer_->Put("b", "1"), ReplyStatus::kOk);
  journal_.takes_all = false;
  Send(Opcode::kPut, "a", "2");
  Send(Opcode::kPut, "b", "2");
  EXPECT_EQ(Serve(2), std::vector<ReplyStatus>(2, ReplyStatus::kDiskRefuses));
  EXPECT_EQ(peer_->Get("a"), "1");
  EXPECT_EQ(peer_->Get("b"), "1");
  journal_.takes_all = true;
  Send(Opcode::kPut, "a", "3");
  EXPECT_EQ(Serve(1), std::vector<ReplyStatus>(1, ReplyStatus::kOk));
  EXPECT_EQ(peer_->Get("a"), "3");
}

}  // namespace
}  // namespace gannet
