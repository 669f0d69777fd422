// The READs that a server posts itself: of the values of large PUTs, out of its clients' memory.
// Counted by its own device.

#include <gannet/client.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr int kPuts = 20;
constexpr const char* kStats = "SOFTVERBS_STATS";

struct Reads {
  uint64_t posts = 0;
  uint64_t bytes = 0;
};

// Ends the server, and returns all READs that it posted. The server prints them as it exits.
Reads ReadsOf(ServerProcess& server) {
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0) << server.process().Stderr();
  const std::string text = server.process().Stderr();
  Reads reads;
  const size_t at = text.rfind("\"read\":{");
  EXPECT_NE(at, std::string::npos) << text;
  if (at == std::string::npos) return reads;
  EXPECT_EQ(std::sscanf(text.c_str() + at, "\"read\":{\"posts\":%lu,\"bytes\":%lu", &reads.posts,
                        &reads.bytes),
            2)
      << text;
  return reads;
}

// Returns what a server READs while one client puts values of that size.
Reads ReadsOfPuts(size_t value_bytes) {
  setenv(kStats, "1", 1);
  ServerProcess server;
  unsetenv(kStats);
  Options options;
  options.deadline = options.connect_timeout = std::chrono::seconds(30);
  const auto client = Client::Connect({server.endpoint()}, options);
  EXPECT_TRUE(client.ok()) << client.status();
  if (!client.ok()) return {};
  for (int i = 0; i < kPuts; ++i) {
    const std::string key = "key " + std::to_string(i % 4);
    const std::string value(value_bytes, static_cast<char>('a' + i));
    EXPECT_TRUE((*client)->Put(key, value).ok());
    const auto got = (*client)->Get(key);
    EXPECT_TRUE(got.ok() && got->has_value() && (*got)->data == value) << key;
  }
  return ReadsOf(server);
}

TEST(ServerReadsTest, ALargePutIsAReadForEachPieceOfItsValueAndASmallOneNone) {
  if (TestDevice().kind != DeviceKind::kSoftverbs) GTEST_SKIP() << "only softverbs counts these";
  if (!TestServer().empty()) GTEST_SKIP() << "needs a server of its own";
  EXPECT_EQ(ReadsOfPuts(1000).posts, 0u);
  for (const size_t bytes :
       {size_t{20'000}, size_t{64} << 10, size_t{256} << 10, size_t{1} << 20}) {
    const Reads reads = ReadsOfPuts(bytes);
    std::printf("PUT of %zu B: %.3f READs of %.0f B by the server\n", bytes,
                static_cast<double>(reads.posts) / kPuts,
                static_cast<double>(reads.bytes) / static_cast<double>(reads.posts));
    constexpr size_t kPieceBytes = 256 << 10;
    EXPECT_EQ(reads.posts, kPuts * ((bytes + kPieceBytes - 1) / kPieceBytes)) << bytes;
    EXPECT_EQ(reads.bytes, kPuts * bytes);
  }
}

}  // namespace
}  // namespace gannet
