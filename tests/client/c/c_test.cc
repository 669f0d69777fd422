#include <gannet/gannet.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "softverbs/tests/support/temporary_directory.h"
#include "tests/client/c/use.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

// All tests but the last one share a server, and each finds it empty.
class CTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess(); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override {
    gannet_client* client = nullptr;
    const char* name = server();
    ASSERT_EQ(gannet_client_connect(&name, 1, nullptr, &client), GANNET_OK);
    gannet_call call = GANNET_CALL_INIT;
    call.deadline_ms = 20'000;
    EXPECT_EQ(gannet_client_flush(client, &call, nullptr), GANNET_OK);
    gannet_client_close(client);
  }
  const char* server() const { return server_->endpoint().c_str(); }

  static ServerProcess* server_;
};

ServerProcess* CTest::server_ = nullptr;

TEST_F(CTest, UsesEveryCallOfTheClient) { EXPECT_EQ(UseClient(server()), 0); }

TEST_F(CTest, LocksFenceWrites) { EXPECT_EQ(UseLocks(server()), 0); }

TEST_F(CTest, MovesLongValuesThroughRegisteredMemory) { EXPECT_EQ(UseMemory(server()), 0); }

TEST_F(CTest, RefusesWrongArgumentsWithAText) { EXPECT_EQ(UseWrongly(server()), 0); }

TEST_F(CTest, UsesEveryCallOfTheAsynchronousClient) {
  EXPECT_EQ(UseAsync(server()), 0);
  EXPECT_EQ(UseAsyncLocks(server()), 0);
}

static_assert(sizeof(gannet_rail) == 128 && offsetof(gannet_rail, works) == 64 &&
              offsetof(gannet_rail, connections) == 84 && offsetof(gannet_rail, connected) == 89);

// ctest sets SOFTVERBS_DEVICES=2.
TEST_F(CTest, TellsOfTheRailsOfAServer) {
  ServerProcess server({"--listen=127.0.0.1:0,127.0.1.1:0"});
  const std::string endpoint = server.endpoint();
  const char* name = endpoint.c_str();
  gannet_client* client = nullptr;
  ASSERT_EQ(gannet_client_connect(&name, 1, nullptr, &client), GANNET_OK);
  gannet_async* async = nullptr;
  ASSERT_EQ(gannet_async_connect(&name, 1, nullptr, &async), GANNET_OK);
  gannet_rail* rails = nullptr;
  size_t count = 0;
  const auto until = std::chrono::steady_clock::now() + test_support::kStepTimeout;
  while (std::chrono::steady_clock::now() < until) {
    ASSERT_EQ(gannet_client_ping(client, nullptr, nullptr), GANNET_OK);
    ASSERT_EQ(gannet_client_rails(client, 0, &rails, &count), GANNET_OK);
    if (count == 2 && rails[1].connected) break;
    gannet_free(rails);
  }
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(rails[0].address, endpoint);
  EXPECT_EQ(std::string(rails[1].address).find("127.0.1.1:"), 0u);
  EXPECT_TRUE(rails[0].connected && rails[0].up && rails[1].up);
  EXPECT_GT(rails[0].works, 0u);
  EXPECT_GT(rails[0].mtu_bytes, 0u);
  gannet_free(rails);
  ASSERT_EQ(gannet_async_rails(async, 0, &rails, &count), GANNET_OK);
  EXPECT_GE(count, 1u) << "one, until the server has told them";
  gannet_free(rails);
  gannet_async_close(async);
  gannet_client_close(client);
}

TEST_F(CTest, TellsWhatAServersDiskCounts) {
  const test_support::TemporaryDirectory data;
  ServerProcess server({"--memory=64M", "--data=" + data.path()});
  const std::string endpoint = server.endpoint();
  const char* name = endpoint.c_str();
  gannet_client* client = nullptr;
  ASSERT_EQ(gannet_client_connect(&name, 1, nullptr, &client), GANNET_OK);
  gannet_call call = GANNET_CALL_INIT;
  call.deadline_ms = 20'000;
  EXPECT_EQ(gannet_client_put(client, "key", 3, "value", 5, &call, nullptr), GANNET_OK);
  gannet_stats stats;
  stats.size = sizeof(stats);
  EXPECT_EQ(gannet_client_stats(client, &call, &stats), GANNET_OK);
  EXPECT_EQ(stats.disk_sync, 2u);
  EXPECT_GT(stats.disk_bytes, 0u);
  EXPECT_EQ(stats.disk_refused, 0u);
  gannet_client_close(client);
  server.Kill();
}

TEST_F(CTest, TellsOfDisksClientsSlowRequestsAndItems) {
  const test_support::TemporaryDirectory data;
  ServerProcess server(
      {"--memory=64M", "--data=" + data.path(), "--slowlog_us=1", "--on_full=evict"});
  EXPECT_EQ(UseObserved(server.endpoint().c_str()), 0);
}

TEST_F(CTest, HasNoSnapshotWithoutADisk) {
  gannet_client* client = nullptr;
  const char* name = server();
  ASSERT_EQ(gannet_client_connect(&name, 1, nullptr, &client), GANNET_OK);
  gannet_storage* storage = nullptr;
  EXPECT_EQ(gannet_client_snapshot(client, 0, nullptr, &storage), GANNET_FAILED_PRECONDITION);
  EXPECT_EQ(storage, nullptr);
  gannet_client_close(client);
}

TEST_F(CTest, SaysWhyAServerCannotBeReached) {
  ServerProcess server;
  const std::string endpoint = server.endpoint();
  const char* name = endpoint.c_str();
  gannet_client* client = nullptr;
  ASSERT_EQ(gannet_client_connect(&name, 1, nullptr, &client), GANNET_OK);
  server.Kill();
  gannet_call call = GANNET_CALL_INIT;
  call.deadline_ms = 20'000;
  EXPECT_EQ(gannet_client_ping(client, &call, nullptr), GANNET_UNAVAILABLE);
  EXPECT_NE(std::string(gannet_last_error()), "");
  gannet_client_close(client);
  EXPECT_EQ(gannet_client_connect(&name, 1, nullptr, &client), GANNET_UNAVAILABLE);
  EXPECT_EQ(client, nullptr);
}

}  // namespace
}  // namespace gannet
