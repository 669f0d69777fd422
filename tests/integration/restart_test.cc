// What a client remembers of an earlier run of the server must not match what is there now.

#include <gannet/client.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kDeadline{20'000};  // only a hang reaches it

class RestartTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect() {
    auto client = Client::Connect({server_.endpoint()}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  // Calls until the client is connected again. Before that, nothing is applied.
  static absl::Status UntilReached(const std::function<absl::Status()>& call) {
    const Clock::time_point give_up = Clock::now() + test_support::kStepTimeout;
    absl::Status status;
    do {
      status = call();
    } while (status.code() == absl::StatusCode::kUnavailable && Clock::now() < give_up);
    return status;
  }
  // Kills the server and starts it again. Another client then stores the same keys in the same
  // order, so that they would have the same versions if these began at 1 again.
  void RestartAndPut(const std::string& value) {
    server_.Kill();
    server_.Restart();
    const std::unique_ptr<Client> other = Connect();
    ASSERT_NE(other, nullptr);
    ASSERT_TRUE(other->Put("acct", value).ok());
  }
  std::string Value() {
    const std::unique_ptr<Client> other = Connect();
    const auto got = other->Get("acct");
    return got.ok() && got->has_value() ? (*got)->data : "nothing";
  }

  ServerProcess server_;
};

TEST_F(RestartTest, AVersionOfAnEarlierRunNeverMatches) {
  const std::unique_ptr<Client> client = Connect();
  ASSERT_NE(client, nullptr);
  const auto seen = client->Put("acct", "100");
  ASSERT_TRUE(seen.ok()) << seen.status();
  const uint64_t incarnation = client->Info().at(0).incarnation;
  for (const std::string value : {"998", "999"}) {  // two restarts
    RestartAndPut(value);
    const absl::Status put = UntilReached(
        [&] { return client->Put("acct", "101", {.only_if_version = *seen}, kDeadline).status(); });
    EXPECT_EQ(put.code(), absl::StatusCode::kFailedPrecondition) << put;
    const absl::Status deleted = UntilReached(
        [&] { return client->Delete("acct", {.only_if_version = *seen}, kDeadline).status(); });
    EXPECT_EQ(deleted.code(), absl::StatusCode::kFailedPrecondition) << deleted;
    EXPECT_EQ(Value(), value);
    EXPECT_NE(client->Info().at(0).incarnation, incarnation);
  }
}

TEST_F(RestartTest, ALockOfAnEarlierRunIsLost) {
  const std::unique_ptr<Client> client = Connect();
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(client->Put("acct", "100").ok());
  const auto locked = client->LockAndGet("acct");
  ASSERT_TRUE(locked.ok()) << locked.status();
  ASSERT_TRUE(locked->value.has_value());
  RestartAndPut("999");
  const PutOptions under_lock{.only_if_version = locked->value->info.version,
                              .lock = &locked->lock};
  const absl::Status put =
      UntilReached([&] { return client->Put("acct", "101", under_lock, kDeadline).status(); });
  EXPECT_TRUE(put.code() == absl::StatusCode::kAborted ||
              put.code() == absl::StatusCode::kFailedPrecondition)
      << put;
  const DeleteOptions delete_under_lock{.only_if_version = locked->value->info.version,
                                        .lock = &locked->lock};
  const absl::Status deleted =
      UntilReached([&] { return client->Delete("acct", delete_under_lock, kDeadline).status(); });
  EXPECT_TRUE(deleted.code() == absl::StatusCode::kAborted ||
              deleted.code() == absl::StatusCode::kFailedPrecondition)
      << deleted;
  EXPECT_EQ(Value(), "999");
}

// Kills the server right behind some writes, so that it may lose the last of them. No version that
// it gave comes again, be its write lost or not.
void ExpectNoVersionAgain(const std::vector<std::string>& flags) {
  ServerProcess server(flags);
  uint64_t last = 0;
  for (int run = 0; run < 3; ++run) {
    const auto client = Client::Connect({server.endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    for (int i = 0; i < 10; ++i) {
      const auto version = (*client)->Put("acct", absl::StrCat(run, "/", i));
      ASSERT_TRUE(version.ok()) << version.status();
      ASSERT_GT(*version, last) << "run " << run;
      last = *version;
    }
    ASSERT_TRUE((*client)->Delete("acct").ok());
    server.Kill();
    server.Restart();
  }
}

TEST(RestartVersionsTest, NoneComesAgainWithoutADiskAndFile) { ExpectNoVersionAgain({}); }

TEST(RestartVersionsTest, NoneComesAgainWithAMemoryFile) {
  const std::string file = absl::StrCat("/dev/shm/gannet-restart-test-", getpid());
  ExpectNoVersionAgain({"--memory=32M", "--memory_file=" + file});
  std::filesystem::remove(file);
}

TEST(RestartVersionsTest, NoneComesAgainWithADisk) {
  for (const std::string sync : {"none", "interval", "always"}) {
    const test_support::TemporaryDirectory directory;
    ExpectNoVersionAgain({"--memory=32M", "--data=" + directory.path(), "--sync=" + sync});
  }
}

}  // namespace
}  // namespace gannet
