// kvserver --data on a disk that is really full: a small tmpfs.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "softverbs/tests/support/child_process.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/run_program.h"
#include "tests/support/server_process.h"
#include "tests/support/small_disk.h"

namespace gannet {
namespace {

using std::chrono::steady_clock;
using ::testing::HasSubstr;

// Without the ballast there is room for all that one client can put while the disk is full.
constexpr size_t kDiskBytes = 96 << 20;
constexpr size_t kBallastBytes = 90 << 20;

// What was acknowledged, by key.
using Values = std::map<std::string, std::string>;

// Puts until the server refuses. Returns the error.
absl::Status PutUntilRefused(Client& client, Values* acknowledged) {
  const auto give_up = steady_clock::now() + test_support::kStepTimeout;
  for (uint64_t n = 0; steady_clock::now() < give_up; ++n) {
    const std::string key = "key" + std::to_string(n % 100);
    std::string value = std::to_string(n);
    value.resize(200, 'v');
    if (absl::Status status = client.Put(key, value).status(); !status.ok()) return status;
    (*acknowledged)[key] = std::move(value);
  }
  return absl::OkStatus();
}

void ExpectAllThere(Client& client, const Values& acknowledged) {
  for (const auto& [key, value] : acknowledged) {
    const auto got = client.Get(key);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(got->has_value()) << key;
    ASSERT_EQ((*got)->data, value) << key;
  }
}

template <class F>
bool Eventually(F holds) {
  const auto give_up = steady_clock::now() + test_support::kStepTimeout;
  while (!holds()) {
    if (steady_clock::now() >= give_up) return false;
  }
  return true;
}

// Returns what the server says at /readyz. REQUIRES: it has --http.
std::string Readyz(ServerProcess& server) {
  EXPECT_TRUE(server.process().AwaitStderr("shows itself at "));
  const std::string url = ShownAt(server.process().Stderr());
  return test_support::RunProgram({"curl", "--silent", url + "/readyz"}).out;
}

TEST(DiskFullTest, RefusesWritesAndLosesNothingAndGoesOnOnceThereIsRoom) {
  const test_support::SmallDisk disk(kDiskBytes);
  if (!disk.why_not().empty()) GTEST_SKIP() << "no file system of its own: " << disk.why_not();
  const std::string data = disk.path() + "/data";
  ASSERT_EQ(mkdir(data.c_str(), 0700), 0);
  disk.Fill("ballast", kBallastBytes);
  ServerProcess server({"--data=" + data, "--sync_interval_ms=10", "--http=127.0.0.1:0"});
  EXPECT_EQ(Readyz(server), "ready\n");
  auto client = Client::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  Values acknowledged;
  const absl::Status refused = PutUntilRefused(**client, &acknowledged);
  ASSERT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("disk is full"));
  EXPECT_THAT(Readyz(server), HasSubstr("writes are refused: "));
  ExpectAllThere(**client, acknowledged);
  // Not even a snapshot has room.
  disk.Fill("rest", kBallastBytes);
  const auto snapshot = (*client)->Snapshot(0, std::chrono::seconds(20));
  ASSERT_TRUE(absl::IsAborted(snapshot.status())) << snapshot.status();
  EXPECT_THAT(std::string(snapshot.status().message()), HasSubstr("No space left"));

  disk.Remove("rest");
  disk.Remove("ballast");
  EXPECT_TRUE(Eventually([&] { return (*client)->Put("room", "again").ok(); }));
  acknowledged["room"] = "again";
  // What waited is written too. From then on a kill takes nothing.
  EXPECT_TRUE(Eventually([&] { return (*client)->Storage(0)->behind_bytes == 0; }));
  EXPECT_EQ(Readyz(server), "ready\n");
  const auto whole = (*client)->Snapshot(0, std::chrono::seconds(20));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->snapshot->items, acknowledged.size());
  server.Kill();
  server.Restart();
  auto again = Client::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectAllThere(**again, acknowledged);
}

TEST(DiskFullTest, StartsAndServesReadsAlthoughTheDiskIsFull) {
  const test_support::SmallDisk disk(kDiskBytes);
  if (!disk.why_not().empty()) GTEST_SKIP() << "no file system of its own: " << disk.why_not();
  ServerProcess server({"--data=" + disk.path() + "/data", "--sync=always", "--http=127.0.0.1:0"});
  auto client = Client::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Put("key", "value").ok());
  server.Kill();
  disk.Fill("ballast", 2 * kBallastBytes);
  server.Restart();
  client = Client::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  ExpectAllThere(**client, {{"key", "value"}});
  EXPECT_TRUE(absl::IsResourceExhausted((*client)->Put("other", "value").status()));
  EXPECT_THAT(Readyz(server), HasSubstr("writes are refused: "));
  disk.Remove("ballast");
  EXPECT_TRUE(Eventually([&] { return (*client)->Put("other", "value").ok(); }));
  EXPECT_EQ(Readyz(server), "ready\n");
}

}  // namespace
}  // namespace gannet
