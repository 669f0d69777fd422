// Clients with different lists of servers, and what the log says about them.

#include <string>
#include <vector>

#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

class Warnings : public google::LogSink {
 public:
  Warnings() { google::AddLogSink(this); }
  ~Warnings() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity severity, const char*, const char*, int, const struct tm*,
            const char* message, size_t bytes) override {
    const std::string line(message, bytes);
    if (severity == google::GLOG_WARNING && line.find("lists of servers") != std::string::npos) {
      lines_.push_back(line);
    }
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

class ServerSetTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServer([](Server::Options* options) { options->silence_ms = 60'000; });
  }
  static void Tell(RawPeer* peer, uint64_t set) {
    RequestHeader header = peer->Header(Opcode::kHeartbeat);
    header.heartbeat.server_set = set;
    ASSERT_TRUE(peer->Call(header));
  }
  Warnings warnings_;
};

TEST_F(ServerSetTest, DifferentListsAreWarnedOfOnceAMinute) {
  RawPeer first(this);
  RawPeer second(this);
  ASSERT_TRUE(first.Connect());
  ASSERT_TRUE(second.Connect());
  Tell(&first, 1);
  Tell(&second, 2);
  Pass(30 * kNsPerSecond);
  ASSERT_EQ(warnings_.lines().size(), 1u);
  EXPECT_THAT(warnings_.lines()[0], testing::HasSubstr("same list"));
  Tell(&first, 1);
  Tell(&second, 2);
  Pass(40 * kNsPerSecond);
  EXPECT_EQ(warnings_.lines().size(), 2u) << "still so";
  Tell(&first, 2);
  Tell(&second, 2);
  Pass(59 * kNsPerSecond);
  EXPECT_EQ(warnings_.lines().size(), 2u);
}

TEST_F(ServerSetTest, ThoseWhoAreGoneOrSaidNothingDoNotCount) {
  RawPeer first(this);
  RawPeer silent(this);
  ASSERT_TRUE(first.Connect());
  ASSERT_TRUE(silent.Connect());
  Tell(&first, 1);
  Tell(&silent, 0);
  {
    RawPeer gone(this);
    ASSERT_TRUE(gone.Connect());
    ASSERT_EQ(gone.Put("key", "value"), ReplyStatus::kOk);
    Tell(&gone, 2);
  }
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 2; }));
  Pass(30 * kNsPerSecond);
  EXPECT_TRUE(warnings_.lines().empty());
}

}  // namespace
}  // namespace gannet
