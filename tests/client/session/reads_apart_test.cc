// READs have a queue pair of their own, so that they do not wait for requests that the server has
// not taken yet.

#include <gannet/async_client.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr uint64_t kPut = 1;
constexpr uint64_t kGet = 2;

class ReadsApartTest : public ::testing::Test {
 protected:
  ReadsApartTest() {
    Options options = PatientOptions();
    options.depth = 8;
    auto client = AsyncClient::Connect({server_.endpoint()}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    EXPECT_EQ(RunPut(*client_, "written", "old").code, absl::StatusCode::kOk);
    EXPECT_EQ(RunPut(*client_, "read", "value").code, absl::StatusCode::kOk);
  }

  uint64_t Connections() {
    ServerStats stats;
    EXPECT_EQ(RunOne(*client_, [&] { return client_->Stats(0, &stats, 1); }).code,
              absl::StatusCode::kOk);
    return stats.connections;
  }

  // Begins a PUT and then, once its request is posted, a GET. Returns the completions that came
  // before `until`, or until both came.
  std::vector<Completion> PutAndGet(std::chrono::steady_clock::time_point until) {
    EXPECT_TRUE(client_->Put("written", "new", {}, kPut).ok());
    std::array<Completion, 1> first;
    std::vector<Completion> done;
    if (client_->Poll(first) == 1) done.push_back(first[0]);
    EXPECT_TRUE(client_->Get("read", out_, kGet).ok());
    while (done.size() < 2 && std::chrono::steady_clock::now() < until) {
      std::array<Completion, 2> batch;
      const size_t n = client_->Poll(batch);
      done.insert(done.end(), batch.begin(), batch.begin() + n);
    }
    return done;
  }

  ServerProcess server_{{"--silence_ms=60000"}};
  std::unique_ptr<AsyncClient> client_;
  std::array<std::byte, 16> out_;
};

TEST_F(ReadsApartTest, GetsAreAnsweredWhileTheServerTakesNoPuts) {
  using std::chrono::steady_clock;
  const auto give_up = steady_clock::now() + kHang;
  bool answered = false;
  // The client needs some rounds until it has the second connection.
  while (!answered && steady_clock::now() < give_up) {
    server_.process().Stop();
    std::vector<Completion> done = PutAndGet(steady_clock::now() + std::chrono::milliseconds(100));
    answered = done.size() == 1 && done[0].user_data == kGet && done[0].found;
    server_.process().Signal(SIGCONT);
    PollUntil(*client_, 2 - done.size());
  }
  EXPECT_TRUE(answered) << "a GET waits for a PUT";
  EXPECT_EQ(Connections(), 2u);
}

TEST_F(ReadsApartTest, AClientThatNeverMixesThemHasOneConnection) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(RunPut(*client_, "written", "new").code, absl::StatusCode::kOk);
    EXPECT_TRUE(RunGet(*client_, "read").found);
  }
  EXPECT_EQ(Connections(), 1u);
}

}  // namespace
}  // namespace gannet
