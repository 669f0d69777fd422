// The asynchronous client against a real server, and what its operations cost.

#include <gannet/async_client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

class AsyncClientTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess; }
  static void TearDownTestSuite() { delete server_; }

  static std::unique_ptr<AsyncClient> Connect(const Options& options = PatientOptions()) {
    auto client = AsyncClient::Connect({server_->endpoint()}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  void SetUp() override {
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
  }

  static ServerProcess* server_;
  std::unique_ptr<AsyncClient> client_;
};
ServerProcess* AsyncClientTest::server_ = nullptr;

TEST_F(AsyncClientTest, AColdGetIsTwoReadsAWarmOneOne) {
  ASSERT_EQ(RunPut(*client_, "key", "value").code, absl::StatusCode::kOk);
  const auto cold = Connect();
  std::string value;
  Completion done = RunGet(*cold, "key", &value);
  ASSERT_TRUE(done.found);
  EXPECT_EQ(value, "value");
  EXPECT_EQ(done.cost.reads, 2u);
  EXPECT_EQ(done.cost.read_bytes, 256u + 48u);
  EXPECT_FALSE(done.cost.from_cached_location);
  done = RunGet(*cold, "key", &value);
  ASSERT_TRUE(done.found);
  EXPECT_EQ(value, "value");
  EXPECT_EQ(done.cost.reads, 1u);
  EXPECT_EQ(done.cost.read_bytes, 48u);
  EXPECT_TRUE(done.cost.from_cached_location);
  EXPECT_EQ(done.cost.sends, 0u);
}

TEST_F(AsyncClientTest, AMissIsOneRead) {
  const Completion done = RunGet(*client_, "absent");
  EXPECT_EQ(done.code, absl::StatusCode::kOk);
  EXPECT_FALSE(done.found);
  EXPECT_EQ(done.cost.reads, 1u);
  EXPECT_EQ(done.cost.sends, 0u);
}

TEST_F(AsyncClientTest, APutTellsWhereTheItemIs) {
  ASSERT_EQ(RunPut(*client_, "put here", "value").code, absl::StatusCode::kOk);
  EXPECT_EQ(RunGet(*client_, "put here").cost.reads, 1u);
  // Another client has moved the item, so the stale location costs one READ more.
  ASSERT_EQ(RunPut(*Connect(), "put here", std::string(500, 'x')).code, absl::StatusCode::kOk);
  std::string value;
  const Completion done = RunGet(*client_, "put here", &value);
  EXPECT_TRUE(done.found);
  EXPECT_EQ(value, std::string(500, 'x'));
  EXPECT_EQ(done.cost.reads, 3u);
  EXPECT_EQ(RunGet(*client_, "put here").cost.reads, 1u);
}

TEST_F(AsyncClientTest, WithoutALocationCacheEveryGetIsTwoReads) {
  Options options = PatientOptions();
  options.location_cache_bytes = 0;
  const auto client = Connect(options);
  ASSERT_EQ(RunPut(*client, "uncached", "value").code, absl::StatusCode::kOk);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(RunGet(*client, "uncached").cost.reads, 2u);
}

TEST_F(AsyncClientTest, APutIsOneSendALockOneCompareAndSwap) {
  const Completion put = RunPut(*client_, "cheap", "value");
  EXPECT_EQ(put.cost.sends, 1u);
  EXPECT_EQ(put.cost.posts, 1u);
  EXPECT_EQ(put.cost.reads, 0u);
  const Completion lock = RunOne(*client_, [&] { return client_->TryLock("cheap", 5); });
  EXPECT_EQ(lock.user_data, 5u);
  EXPECT_EQ(lock.type, OpType::kLock);
  ASSERT_TRUE(lock.found);
  if (client_->Info()[0].lock_mode == "nic") {
    EXPECT_EQ(lock.cost.cas, 1u);
    EXPECT_EQ(lock.cost.sends, 0u);
  }
  const Lock held{"cheap", lock.lock_word, 0};
  EXPECT_EQ(RunOne(*client_, [&] { return client_->Unlock(held, 6); }).code, absl::StatusCode::kOk);
}

TEST_F(AsyncClientTest, LockAndGetOfACachedKeyIsOnePost) {
  ASSERT_EQ(RunPut(*client_, "together", "value").code, absl::StatusCode::kOk);
  std::byte out[16];
  const Completion done = RunOne(*client_, [&] { return client_->LockAndGet("together", out, 7); });
  ASSERT_TRUE(done.found);
  EXPECT_NE(done.info.version, 0u);
  EXPECT_EQ(done.info.value_bytes, 5u);
  if (client_->Info()[0].lock_mode == "nic") {
    EXPECT_EQ(done.cost.posts, 1u);
    EXPECT_EQ(done.cost.cas, 1u);
    EXPECT_EQ(done.cost.reads, 1u);
  }
  const auto other = Connect();
  const Completion refused = RunOne(*other, [&] { return other->LockAndGet("together", out, 8); });
  EXPECT_EQ(refused.code, absl::StatusCode::kOk);
  EXPECT_FALSE(refused.found);
  EXPECT_EQ(refused.lock_word, done.lock_word);
}

TEST_F(AsyncClientTest, StopsAtItsDepth) {
  std::byte out[8];
  for (uint32_t i = 0; i < Options().depth; ++i) {
    ASSERT_TRUE(client_->Get("absent", out, i).ok()) << i;
  }
  EXPECT_EQ(client_->in_flight(), Options().depth);
  EXPECT_TRUE(absl::IsResourceExhausted(client_->Get("absent", out, 0)));
  EXPECT_EQ(PollUntil(*client_, Options().depth).size(), Options().depth);
  EXPECT_EQ(client_->in_flight(), 0u);
  EXPECT_TRUE(client_->Get("absent", out, 0).ok());
}

TEST_F(AsyncClientTest, SharesPostsAndCompletionsAtDepth) {
  constexpr uint32_t kDepth = 128, kRounds = 50;
  for (uint32_t i = 0; i < kDepth; ++i) {
    ASSERT_EQ(RunPut(*client_, "deep" + std::to_string(i), std::string(64, 'd')).code,
              absl::StatusCode::kOk);
  }
  std::vector<std::array<std::byte, 64>> out(kDepth);
  uint64_t posts = 0, completions = 0, reads = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (uint32_t i = 0; i < kDepth; ++i) {
      ASSERT_TRUE(client_->Get("deep" + std::to_string(i), out[i], i).ok());
    }
    for (const Completion& done : PollUntil(*client_, kDepth)) {
      ASSERT_TRUE(done.found);
      EXPECT_EQ(static_cast<char>(out[done.user_data][63]), 'd');
      posts += done.cost.posts;
      completions += done.cost.completions;
      reads += done.cost.reads;
    }
  }
  EXPECT_EQ(reads, kDepth * kRounds);
  EXPECT_LE(posts * 8, reads);
  EXPECT_LE(completions * 8, reads);
}

TEST_F(AsyncClientTest, MixesManyOperationsOfEveryKindInFlight) {
  constexpr uint64_t kOperations = 2000;
  std::vector<std::string> values(kOperations);
  std::vector<std::vector<std::byte>> out(kOperations, std::vector<std::byte>(20'000));
  std::vector<Completion> done(kOperations);
  uint64_t started = 0, finished = 0;
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  while (finished < kOperations && std::chrono::steady_clock::now() < give_up) {
    for (; started < kOperations; ++started) {
      const std::string key = "mix" + std::to_string(started / 2 % 100);
      values[started] = std::string(started * 37 % 20'000, static_cast<char>('a' + started % 26));
      const absl::Status status = started % 2 == 0 ? client_->Put(key, values[started], {}, started)
                                                   : client_->Get(key, out[started], started);
      if (absl::IsResourceExhausted(status)) break;
      ASSERT_TRUE(status.ok()) << status;
    }
    Completion batch[32];
    const size_t n = client_->Poll(batch);
    for (size_t i = 0; i < n; ++i) done[batch[i].user_data] = batch[i];
    finished += n;
  }
  ASSERT_EQ(finished, kOperations);
  for (uint64_t i = 0; i < kOperations; ++i) {
    ASSERT_EQ(done[i].code, absl::StatusCode::kOk) << i;
    if (i % 2 == 0 || !done[i].found) continue;
    const std::string_view got(reinterpret_cast<const char*>(out[i].data()),
                               done[i].info.value_bytes);
    EXPECT_TRUE(std::all_of(got.begin(), got.end(), [&](char c) { return c == got[0]; })) << i;
  }
}

// A long value takes the server longer than the short one after it.
TEST_F(AsyncClientTest, TheLastWriteOfAPipelineWinsAndGetsSeeIt) {
  const std::string large(1 << 20, 'a');
  for (int round = 0; round < 50; ++round) {
    std::byte out{};
    ASSERT_TRUE(client_->Put("ordered", large, {}, 1).ok());
    ASSERT_TRUE(client_->Put("ordered", "b", {}, 2).ok());
    ASSERT_TRUE(client_->Get("ordered", {&out, 1}, 3).ok());
    uint64_t version = 0;
    for (const Completion& done : PollUntil(*client_, 3)) {
      ASSERT_EQ(done.code, absl::StatusCode::kOk);
      EXPECT_GT(done.info.version + (done.user_data == 3), version);
      version = done.info.version;
    }
    EXPECT_EQ(out, std::byte{'b'}) << "round " << round;
  }
}

TEST_F(AsyncClientTest, MoreLongValuesAtOnceThanThereAreBuffers) {
  constexpr uint32_t kValues = 24, kBytes = 600'000;
  std::vector<std::string> values(kValues);
  for (uint32_t i = 0; i < kValues; ++i) {
    values[i].assign(kBytes + i, static_cast<char>('a' + i));
    ASSERT_TRUE(client_->Put("vast" + std::to_string(i), values[i], {}, i).ok());
  }
  for (const Completion& done : PollUntil(*client_, kValues)) {
    EXPECT_EQ(done.code, absl::StatusCode::kOk);
  }
  std::vector<std::vector<std::byte>> out(kValues, std::vector<std::byte>(kBytes + kValues));
  for (uint32_t i = 0; i < kValues; ++i) {
    ASSERT_TRUE(client_->Get("vast" + std::to_string(i), out[i], i).ok());
  }
  for (const Completion& done : PollUntil(*client_, kValues)) {
    ASSERT_TRUE(done.found);
    const std::string_view got(reinterpret_cast<const char*>(out[done.user_data].data()),
                               done.info.value_bytes);
    EXPECT_TRUE(got == values[done.user_data]) << done.user_data;
  }
}

TEST_F(AsyncClientTest, OpensAsManyQueuePairsAsTheReadsNeed) {
  Options options = PatientOptions();
  options.depth = 512;
  const auto client = Connect(options);
  const uint32_t depth = client->Info()[0].read_depth;
  const uint32_t wanted = std::min<uint32_t>((options.depth + depth - 1) / depth, 8);
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  ServerStats stats;
  const auto connections = [&] {
    RunOne(*client, [&] { return client->Stats(0, &stats, 1); });
    return stats.connections;
  };
  // One is client_'s.
  while (connections() < wanted + 1 && std::chrono::steady_clock::now() < give_up) {
  }
  EXPECT_EQ(connections(), wanted + 1);
  ASSERT_EQ(RunPut(*client, "wide", "value").code, absl::StatusCode::kOk);
  std::byte out[8];
  for (uint32_t i = 0; i < options.depth; ++i) ASSERT_TRUE(client->Get("wide", out, i).ok());
  for (const Completion& done : PollUntil(*client, options.depth)) EXPECT_TRUE(done.found);
}

// Keys and values of few bytes take other code paths than longer ones. Answers that find no room in
// one Poll come with the next.
TEST_F(AsyncClientTest, AnswersOfEveryLengthWhateverRoomThereIs) {
  constexpr size_t kKeys = 80, kOutBytes = 200;
  std::vector<std::string> keys, values;
  for (size_t i = 0; i < kKeys; ++i) {
    keys.push_back(std::string(i / 2, 'k') + std::to_string(i));
    values.push_back(std::string(2 * i, static_cast<char>('a' + i % 26)));
    if (!values[i].empty()) values[i].back() = '.';
    ASSERT_EQ(RunPut(*client_, keys[i], values[i]).code, absl::StatusCode::kOk);
  }
  for (const size_t room : {size_t{1}, size_t{3}, kKeys}) {
    std::vector<std::string> out(kKeys, std::string(kOutBytes, '#'));
    const auto out_bytes = [&](size_t i) { return i % 3 == 0 ? i : kOutBytes; };  // some too few
    for (size_t i = 0; i < kKeys; ++i) {
      const auto bytes = std::as_writable_bytes(std::span(out[i])).first(out_bytes(i));
      ASSERT_TRUE(client_->Get(keys[i], bytes, i).ok());
    }
    std::vector<int> answers(kKeys);
    const auto give_up = std::chrono::steady_clock::now() + kHang;
    while (client_->in_flight() > 0 && std::chrono::steady_clock::now() < give_up) {
      std::vector<Completion> done(room);
      const size_t n = client_->Poll(done);
      for (const Completion& get : std::span(done).first(n)) {
        const size_t i = get.user_data;
        ++answers.at(i);
        EXPECT_TRUE(get.found);
        EXPECT_EQ(get.type, OpType::kGet);
        EXPECT_EQ(get.cost.reads, 1u);
        EXPECT_EQ(get.info.value_bytes, values[i].size());
        const size_t copied = std::min(values[i].size(), out_bytes(i));
        EXPECT_EQ(out[i], values[i].substr(0, copied) + std::string(kOutBytes - copied, '#'));
      }
    }
    EXPECT_EQ(answers, std::vector<int>(kKeys, 1));
  }
}

// Keys of some lengths have their own fast path, but only if there is one server.
void ExpectKeysOfEveryLengthFound(AsyncClient& client) {
  for (size_t length = 1; length <= 250; ++length) {
    SCOPED_TRACE(length);
    std::string key(length, '\0');
    key.front() = static_cast<char>(length);
    const std::string expected = "value of " + std::to_string(length);
    ASSERT_EQ(RunPut(client, key, expected).code, absl::StatusCode::kOk);
    std::string value;
    ASSERT_TRUE(RunGet(client, key, &value).found);
    EXPECT_EQ(value, expected);
    key.back() = static_cast<char>(key.back() + 1);
    EXPECT_FALSE(RunGet(client, key).found);
  }
  for (const std::string& key : {std::string(), std::string(251, 'k')}) {
    EXPECT_EQ(client.Get(key, {}, 1).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(AsyncClientTest, FindsKeysOfEveryLength) { ExpectKeysOfEveryLengthFound(*client_); }

TEST_F(AsyncClientTest, FindsKeysOfEveryLengthOnTwoServers) {
  const ServerProcess second;
  auto client = AsyncClient::Connect({server_->endpoint(), second.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  ExpectKeysOfEveryLengthFound(**client);
}

TEST_F(AsyncClientTest, StatsAndPing) {
  ServerStats stats;
  EXPECT_EQ(RunOne(*client_, [&] { return client_->Stats(0, &stats, 1); }).code,
            absl::StatusCode::kOk);
  EXPECT_GT(stats.slots_total, 0u);
  EXPECT_EQ(RunOne(*client_, [&] { return client_->Ping(0, 1); }).code, absl::StatusCode::kOk);
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Ping(1, 1)));
}

}  // namespace
}  // namespace gannet
