#include "tools/kvload/raw_read_backend.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet::kvload {
namespace {

using test_support::Finished;
using test_support::ProgramPath;
using test_support::RunProgram;

constexpr uint32_t kReadBytes = 256;

class RawReadBackendTest : public ::testing::Test {
 protected:
  std::unique_ptr<RawReadBackend> Connect(uint32_t depth) {
    auto backend = RawReadBackend::Connect(
        {.endpoint = server_.endpoint(), .depth = depth, .read_bytes = kReadBytes});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return backend.ok() ? *std::move(backend) : nullptr;
  }

  // Polls until `wanted` operations have finished, for at most 10 s.
  static std::vector<Completion> PollFor(RawReadBackend& backend, size_t wanted) {
    std::vector<Completion> done;
    Completion some[4];
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (done.size() < wanted && std::chrono::steady_clock::now() < limit) {
      const size_t n = backend.Poll(some);
      done.insert(done.end(), some, some + n);
    }
    return done;
  }

  ServerProcess server_;
  std::vector<std::byte> sink_{kReadBytes};
};

TEST_F(RawReadBackendTest, EveryReadCompletesOnceAndChainsShareAPost) {
  const auto backend = Connect(40);
  ASSERT_NE(backend, nullptr);
  for (int round = 0; round < 50; ++round) {
    for (uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(backend->RawRead(sink_, i).ok());
    std::set<uint64_t> seen;
    unsigned posts = 0;
    unsigned completions = 0;
    for (const Completion& done : PollFor(*backend, 40)) {
      EXPECT_EQ(done.code, absl::StatusCode::kOk);
      EXPECT_TRUE(seen.insert(done.user_data).second);
      EXPECT_EQ(done.cost.reads, 1);
      EXPECT_EQ(done.cost.read_bytes, kReadBytes);
      posts += done.cost.posts;
      completions += done.cost.completions;
    }
    ASSERT_EQ(seen.size(), 40u);
    EXPECT_EQ(posts, 3u);  // chains of 16, 16 and 8
    EXPECT_EQ(completions, 3u);
  }
}

TEST_F(RawReadBackendTest, RefusesMoreThanItsDepthAndOtherSizes) {
  const auto backend = Connect(2);
  ASSERT_NE(backend, nullptr);
  EXPECT_TRUE(backend->RawRead(sink_, 0).ok());
  EXPECT_TRUE(backend->RawRead(sink_, 1).ok());
  EXPECT_EQ(backend->RawRead(sink_, 2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(backend->RawRead(std::span(sink_).first(8), 2).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PollFor(*backend, 2).size(), 2u);
}

TEST_F(RawReadBackendTest, DeadServerFailsWhatIsStartedAfterwards) {
  const auto backend = Connect(4);
  ASSERT_NE(backend, nullptr);
  server_.Kill();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  absl::StatusCode code = absl::StatusCode::kOk;
  while (code == absl::StatusCode::kOk && std::chrono::steady_clock::now() < limit) {
    if (!backend->RawRead(sink_, 0).ok()) {
      code = absl::StatusCode::kUnavailable;
      break;
    }
    const std::vector<Completion> done = PollFor(*backend, 1);
    ASSERT_EQ(done.size(), 1u);
    code = done[0].code;
  }
  EXPECT_EQ(code, absl::StatusCode::kUnavailable);
}

TEST_F(RawReadBackendTest, AfterGetsItReadsTheirItemsInTheirOrder) {
  constexpr size_t kItemBytes = 112;  // header, key of 16, value of 64
  const Finished load =
      RunProgram({ProgramPath("kvload"), "--server=" + server_.endpoint(), "--phase=load",
                  "--records=2000", "--value_size=64", "--device=soft"});
  ASSERT_EQ(load.exit_code, 0) << load.err;
  const auto backend = Connect(1);
  ASSERT_NE(backend, nullptr);
  const std::vector<std::string> keys = {"0000000000000007", "0000000000001999", "no such key"};
  for (const std::string& key : keys) {
    ASSERT_TRUE(backend->Get(key, {}, 5).ok());
    const std::vector<Completion> done = PollFor(*backend, 1);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].user_data, 5u);
    EXPECT_EQ(done[0].found, key != "no such key");
  }
  EXPECT_GT(backend->spread().span_bytes, 1992 * kItemBytes);
  EXPECT_EQ(backend->spread().pages, 3u);
  for (int round = 0; round < 2; ++round) {
    for (const std::string& key : keys) {
      ASSERT_TRUE(backend->RawRead(sink_, 0).ok());
      ASSERT_EQ(PollFor(*backend, 1).size(), 1u);
      const std::string_view read(reinterpret_cast<const char*>(backend->sinks().data()),
                                  kReadBytes);
      EXPECT_EQ(read.find(key) < kItemBytes, key != "no such key") << key << ", round " << round;
    }
  }
}

TEST_F(RawReadBackendTest, NobodyListensIsAnError) {
  const auto backend = RawReadBackend::Connect({.endpoint = "127.0.0.1:1", .depth = 1});
  EXPECT_FALSE(backend.ok());
}

}  // namespace
}  // namespace gannet::kvload
