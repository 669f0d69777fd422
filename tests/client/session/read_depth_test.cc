// The devices of both ends limit the READs in flight per queue pair. This checks how many queue
// pairs a client opens, and what its GETs cost then. Run once for each SOFTVERBS_MAX_RD_ATOMIC.

#include <gannet/async_client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "client/session/client_session.h"
#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr const char* kLimit = "SOFTVERBS_MAX_RD_ATOMIC";
constexpr uint32_t kDepth = 128;
constexpr uint32_t kGets = 10 * kDepth;

// While it lives, processes that are started are not limited.
class Unlimited {
 public:
  Unlimited() : limit_(std::getenv(kLimit) == nullptr ? "" : std::getenv(kLimit)) {
    unsetenv(kLimit);
  }
  ~Unlimited() {
    if (!limit_.empty()) setenv(kLimit, limit_.c_str(), 1);
  }

 private:
  const std::string limit_;
};

class ReadDepthTest : public ::testing::Test {
 protected:
  ReadDepthTest() {
    Options options = PatientOptions();
    options.depth = kDepth;
    auto client = AsyncClient::Connect({server_.endpoint()}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    if (client.ok()) client_ = *std::move(client);
    for (uint32_t i = 0; i < kDepth; ++i) keys_.push_back("key" + std::to_string(i));
  }

  // As many queue pairs as the READs in flight need, within what is allowed.
  uint32_t QueuePairsExpected() const {
    const uint32_t depth = client_->Info().at(0).read_depth;
    return std::clamp((kDepth + depth - 1) / depth, 1u, ClientSession::kConnectionsMax);
  }
  uint64_t QueuePairs() {
    ServerStats stats;
    const Completion done = RunOne(*client_, [&] { return client_->Stats(0, &stats, 1); });
    EXPECT_EQ(done.code, absl::StatusCode::kOk);
    return stats.connections;
  }
  // Waits until all have joined, one after another.
  void AwaitQueuePairs() {
    const auto give_up = std::chrono::steady_clock::now() + kHang;
    while (QueuePairs() < QueuePairsExpected()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "queue pairs are missing";
    }
  }
  void Load() {
    for (const std::string& key : keys_) {
      ASSERT_EQ(RunPut(*client_, key, key).code, absl::StatusCode::kOk);
    }
  }
  void Begin(uint32_t i) {
    ASSERT_TRUE(client_->Get(keys_[i], std::as_writable_bytes(std::span(out_[i])), i).ok());
  }
  // Begins a GET each time one is answered, so that kDepth are in flight. Returns the cost of all.
  OpCost GetAll() {
    OpCost sum;
    for (uint32_t i = 0; i < kDepth; ++i) Begin(i);
    uint32_t begun = kDepth, done = 0;
    const auto give_up = std::chrono::steady_clock::now() + kHang;
    while (done < kGets && std::chrono::steady_clock::now() < give_up) {
      std::array<Completion, kDepth> batch;
      const size_t n = client_->Poll(batch);
      for (const Completion& get : std::span(batch).first(n)) {
        const std::string& key = keys_[get.user_data];
        EXPECT_TRUE(get.found);
        EXPECT_EQ(std::string_view(out_[get.user_data].data(), get.info.value_bytes), key);
        sum.reads += get.cost.reads;
        sum.posts += get.cost.posts;
        sum.completions += get.cost.completions;
        ++done;
        if (begun++ < kGets) Begin(static_cast<uint32_t>(get.user_data));
      }
    }
    EXPECT_EQ(done, kGets) << "an operation hangs";
    return sum;
  }

  ServerProcess server_;
  std::unique_ptr<AsyncClient> client_;
  std::vector<std::string> keys_;
  std::array<std::array<char, 64>, kDepth> out_;
};

TEST_F(ReadDepthTest, TheSmallerDeviceOfTheTwoCounts) {
  const Unlimited unlimited;
  const ServerProcess server;
  const auto client = AsyncClient::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Info().at(0).read_depth, client_->Info().at(0).read_depth);
}

TEST_F(ReadDepthTest, AsManyQueuePairsAsTheDepthNeeds) {
  if (const char* limit = std::getenv(kLimit); limit != nullptr) {
    EXPECT_EQ(client_->Info().at(0).read_depth, static_cast<uint32_t>(std::atoi(limit)));
  }
  ASSERT_NO_FATAL_FAILURE(AwaitQueuePairs());
  ASSERT_NO_FATAL_FAILURE(Load());
  EXPECT_EQ(QueuePairs(), QueuePairsExpected());
}

// READs that are begun together are in flight together, as far as the devices allow it. Each queue
// pair gets its part with one doorbell.
TEST_F(ReadDepthTest, AllQueuePairsAreUsedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(AwaitQueuePairs());
  ASSERT_NO_FATAL_FAILURE(Load());
  for (uint32_t i = 0; i < kDepth; ++i) Begin(i);
  uint32_t posts = 0;
  for (const Completion& get : PollUntil(*client_, kDepth)) {
    EXPECT_TRUE(get.found);
    posts += get.cost.posts;
  }
  EXPECT_EQ(posts, QueuePairsExpected());
}

TEST_F(ReadDepthTest, PostsAndCompletionsAreShared) {
  ASSERT_NO_FATAL_FAILURE(AwaitQueuePairs());
  ASSERT_NO_FATAL_FAILURE(Load());
  const OpCost cost = GetAll();
  EXPECT_EQ(cost.reads, kGets);
  EXPECT_LE(cost.posts * 8, cost.reads);
  EXPECT_LE(cost.completions * 8, cost.reads);
  std::printf("%u queue pairs of %u READs: %.3f posts, %.3f completions a GET\n",
              QueuePairsExpected(), client_->Info().at(0).read_depth,
              static_cast<double>(cost.posts) / kGets,
              static_cast<double>(cost.completions) / kGets);
}

}  // namespace
}  // namespace gannet
