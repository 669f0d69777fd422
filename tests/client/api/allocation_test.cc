// No operation of the asynchronous client allocates.

#include <gannet/async_client.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace {
// Allocations of the whole program. Relaxed: it is only a count.
std::atomic<uint64_t> allocations{0};
}  // namespace

void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* p = std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) std::abort();
  return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace gannet {
namespace {

constexpr uint32_t kDepth = 128;
constexpr uint32_t kRounds = 40;

class AllocationTest : public ::testing::Test {
 protected:
  void Connect(uint64_t location_cache_bytes) {
    Options options = PatientOptions();
    options.location_cache_bytes = location_cache_bytes;
    auto client = AsyncClient::Connect({server_.endpoint()}, options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  // GETs all keys at once, kRounds times. Returns the allocations of all but the first two rounds.
  uint64_t AllocationsOfGets(const std::string& prefix) {
    std::vector<std::string> keys;
    for (uint32_t i = 0; i < kDepth; ++i) keys.push_back(prefix + std::to_string(i));
    uint64_t before = 0;
    for (uint32_t round = 0; round < kRounds; ++round) {
      if (round == 2) before = allocations.load(std::memory_order_relaxed);
      for (uint32_t i = 0; i < kDepth; ++i) {
        if (!client_->Get(keys[i], out_[i], i).ok()) return UINT64_MAX;
      }
      for (uint32_t n = 0; n < kDepth;) {
        std::array<Completion, 16> done;
        const size_t polled = client_->Poll(done);
        for (size_t i = 0; i < polled; ++i) found_ += done[i].found;
        n += static_cast<uint32_t>(polled);
      }
    }
    return allocations.load(std::memory_order_relaxed) - before;
  }

  ServerProcess server_;
  std::unique_ptr<AsyncClient> client_;
  std::array<std::array<std::byte, 64>, kDepth> out_;
  uint32_t found_ = 0;
};

TEST_F(AllocationTest, TheCountWorks) {
  const uint64_t before = allocations.load();
  delete new std::string("x");
  EXPECT_GT(allocations.load(), before);
}

TEST_F(AllocationTest, AGetAllocatesNothing) {
  Connect(1 << 20);
  for (uint32_t i = 0; i < kDepth; ++i) {
    ASSERT_EQ(RunPut(*client_, "key" + std::to_string(i), std::string(64, 'v')).code,
              absl::StatusCode::kOk);
  }
  EXPECT_EQ(AllocationsOfGets("key"), 0u) << "location known";
  Connect(0);
  EXPECT_EQ(AllocationsOfGets("key"), 0u) << "location not known";
  EXPECT_EQ(found_, 2 * kRounds * kDepth);
  EXPECT_EQ(AllocationsOfGets("absent"), 0u) << "miss";
}

}  // namespace
}  // namespace gannet
