// Items of any size fill a server's memory, without a flag that says how many there will be.

#include <gannet/async_client.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr std::chrono::seconds kPatient{60};
constexpr uint32_t kDepth = 64;
constexpr uint64_t kRegionBytes = 64 << 20;
constexpr double kFilledMin = 0.95;

// Puts items of one size until one is refused.
class Filler {
 public:
  Filler(const std::string& endpoint, size_t value_bytes) : value_(value_bytes, 'v') {
    auto client = AsyncClient::Connect(
        {endpoint}, {.connect_timeout = kPatient, .deadline = kPatient, .depth = kDepth});
    EXPECT_TRUE(client.ok()) << client.status();
    if (client.ok()) client_ = *std::move(client);
  }

  void Fill() {
    const auto give_up = std::chrono::steady_clock::now() + 2 * kPatient;
    while (!full_ || ended_ < begun_) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << stored_ << " items are stored";
      while (!full_ && client_->Put(Key(begun_), value_, {}, begun_).ok()) ++begun_;
      Take();
    }
  }
  uint64_t stored() const { return stored_; }

  ServerStats Stats() {
    ServerStats stats;
    ++begun_;
    EXPECT_TRUE(client_->Stats(0, &stats, 0).ok());
    while (ended_ < begun_) Take();
    return stats;
  }

 private:
  // 16 bytes.
  static std::string Key(uint64_t i) {
    std::string key(16, 'k');
    std::memcpy(key.data(), &i, sizeof(i));
    return key;
  }

  void Take() {
    std::array<Completion, kDepth> batch;
    const size_t n = client_->Poll(batch);
    for (const Completion& it : std::span(batch).first(n)) {
      const bool stored = it.code == absl::StatusCode::kOk;
      EXPECT_TRUE(stored || it.code == absl::StatusCode::kResourceExhausted) << it.code;
      stored_ += stored;
      full_ |= !stored;
    }
    ended_ += n;
  }

  const std::string value_;
  std::unique_ptr<AsyncClient> client_;
  uint64_t begun_ = 0, ended_ = 0;
  uint64_t stored_ = 0;
  bool full_ = false;
};

class FillTest : public testing::TestWithParam<size_t> {};

// What is neither in blocks of items nor the index or what is reserved is not filled.
TEST_P(FillTest, ItemsFillTheMemoryOfAServerThatKnowsOnlyItsSize) {
  if (TestSlowness() > 1) GTEST_SKIP() << "writes hundreds of thousands of items; counts the same";
  ServerProcess server({"--memory=64M"});
  Filler filler(server.endpoint(), GetParam());
  ASSERT_NO_FATAL_FAILURE(filler.Fill());
  const uint64_t stored = filler.stored();
  const ServerStats stats = filler.Stats();
  EXPECT_EQ(stats.items, stored);
  EXPECT_EQ(stats.refused_index_full, 0u);
  EXPECT_GT(stats.refused_heap_full, 0u);
  const uint64_t empty = stats.heap_total - stats.heap_bytes;
  const double filled = 1 - static_cast<double>(empty) / kRegionBytes;
  std::printf("values of %zu bytes: %lu items, %.2f %% of the memory, the index grew %lu times\n",
              GetParam(), stored, 100 * filled, stats.index_growths);
  EXPECT_GE(filled, kFilledMin);
}

INSTANTIATE_TEST_SUITE_P(Values, FillTest, testing::Values(32, 1 << 10, 64 << 10),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace gannet
