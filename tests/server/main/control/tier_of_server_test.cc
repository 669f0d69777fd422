#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "server/main/control/server_tier.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSegment = 64 << 10;

class ServerTierTest : public ServerTest {
 protected:
  void SetUp() override {
    if (Wrong(Options()).find("tmpfs") != std::string::npos) {
      GTEST_SKIP() << "the directory for tests is on tmpfs, where no tier may be";
    }
  }
  TierOptions Options() const {
    return {.directory = directory_.path(),
            .bytes = kTierSegmentsMin * kSegment,
            .segment_bytes = kSegment};
  }
  static std::string Wrong(const TierOptions& options, bool keeps = false) {
    const auto tier = ServerTier::Open(options, keeps);
    return tier.ok() ? "" : std::string(tier.status().message());
  }
  std::string file() const { return directory_.path() + "/tier"; }

  test_support::TemporaryDirectory directory_;
};

TEST_F(ServerTierTest, SaysWhichFlagIsToBlame) {
  TierOptions options = Options();
  options.directory += "/none";
  EXPECT_THAT(Wrong(options), HasSubstr("--tier=" + options.directory + ": "));
  options = Options();
  options.bytes = uint64_t{1} << 55;
  EXPECT_THAT(Wrong(options), HasSubstr("--tier_bytes=36028797018963968: "));
  EXPECT_THAT(Wrong(options), HasSubstr("free"));
  EXPECT_THAT(Wrong({.directory = "/dev/shm", .bytes = kTierBytesMin}),
              HasSubstr("--tier=/dev/shm: /dev/shm is in memory (tmpfs)"));
}

TEST_F(ServerTierTest, IsOfOneProcess) {
  const auto tier = ServerTier::Open(Options(), /*keeps=*/true);
  ASSERT_TRUE(tier.ok()) << tier.status();
  EXPECT_THAT(Wrong(Options(), /*keeps=*/true), HasSubstr("another process uses the tier"));
}

TEST_F(ServerTierTest, LeavesAFileOfOthersAsItIs) {
  std::ofstream(file()) << std::string(8192, 'x');
  EXPECT_THAT(Wrong(Options(), /*keeps=*/true), HasSubstr("is no tier"));
  EXPECT_EQ(std::filesystem::file_size(file()), 8192u);
}

// The tier is locked first. A server that does not get it leaves the memory file alone, which the
// process that has the tier may still be using.
TEST_F(ServerTierTest, IsLockedBeforeTheMemoryFileIsMade) {
  const auto tier = ServerTier::Open(Options(), /*keeps=*/true);
  ASSERT_TRUE(tier.ok()) << tier.status();
  Server::Options options{.clocks = MachineClocks()};
  const std::string memory = "/dev/shm/gannet-tier-test-" + std::to_string(getpid());
  StartServer([&](Server::Options* made) {
    options = *made;
    made->memory_bytes = 8 << 20;
  });
  options.memory_file = memory;
  options.evict = true;
  options.tier = Options();
  const auto refused = Server::Create(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("another process uses the tier"));
  EXPECT_FALSE(std::filesystem::exists(memory));
}

TEST_F(ServerTierTest, EndsWithItsServer) {
  StartServer([&](Server::Options* options) {
    options->evict = true;
    options->tier = Options();
  });
  ASSERT_NE(server().context().tier_reads, nullptr);
  StopServer();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

ssize_t WriteTheHeaderOnly(int fd, const void* bytes, size_t n, off_t offset) {
  if (offset < off_t{kTierBlockBytes}) return pwrite(fd, bytes, n, offset);
  errno = EIO;
  return -1;
}

// The memory goes on.
TEST_F(ServerTierTest, SaysThatItsDiskFails) {
  StartServer([&](Server::Options* options) {
    options->memory_bytes = 8 << 20;
    options->evict = true;
    options->tier = Options();
    options->tier.segment_bytes = 1 << 20;
    options->tier.bytes = kTierSegmentsMin << 20;
    options->tier.pwrite = WriteTheHeaderOnly;
  });
  EXPECT_EQ(stats().tier_disk, 1u);
  const std::string value(20'000, 'v');
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5000 && stats().tier_disk != 4; ++i) {
    const auto put = server().writes().Put(std::to_string(i), value, {}, {}, now().server_time);
    ASSERT_EQ(put.outcome.status, ReplyStatus::kOk);
    Pass(kNsPerMs);
  }
  EXPECT_EQ(stats().tier_disk, 4u);
  Pass(2 * kNsPerSecond);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("the tier's disk fails: "));
  EXPECT_EQ(stats().items_on_disk, 0u);
  EXPECT_EQ(server().writes().Put("key", value, {}, {}, now().server_time).outcome.status,
            ReplyStatus::kOk);
}

TEST_F(ServerTierTest, IsNotThereUnlessItIsAskedFor) {
  StartServer();
  EXPECT_EQ(server().context().tier_reads, nullptr);
}

}  // namespace
}  // namespace gannet
