#include "common/rdma/softverbs_exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/rdma/device_choice.h"
#include "softverbs/tests/support/temporary_directory.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

class FindSoftverbsDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::canonical(directory_.path());
    std::filesystem::create_directories(root_ / "bin");
  }

  std::string AddLibraries(const std::string& directory) {
    std::filesystem::create_directories(root_ / directory);
    std::ofstream(root_ / directory / "libibverbs.so.1") << "x";
    return (root_ / directory).string();
  }
  std::string Program() const { return (root_ / "bin" / "kvserver").string(); }

  const test_support::TemporaryDirectory directory_;
  std::filesystem::path root_;
};

TEST_F(FindSoftverbsDirectoryTest, FindsTheBuildTree) {
  const std::string directory = AddLibraries("lib/softverbs");
  const auto found = FindSoftverbsDirectory(Program());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, directory);
}

TEST_F(FindSoftverbsDirectoryTest, FindsTheInstalledOne) {
  const std::string directory = AddLibraries("lib/gannet/softverbs");
  const auto found = FindSoftverbsDirectory(Program());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, directory);
}

TEST_F(FindSoftverbsDirectoryTest, SaysWhereItLooked) {
  const auto found = FindSoftverbsDirectory(Program());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr(root_.string()));
}

TEST(SoftverbsExecTest, RestoresTheLibraryPathAsItWas) {
  setenv("GANNET_SOFTVERBS_EXEC", "=/some/where", 1);
  setenv("LD_LIBRARY_PATH", "/softverbs:/some/where", 1);
  RestoreEnvironmentAfterReexec();
  EXPECT_STREQ(std::getenv("LD_LIBRARY_PATH"), "/some/where");
  EXPECT_EQ(std::getenv("GANNET_SOFTVERBS_EXEC"), nullptr);

  setenv("GANNET_SOFTVERBS_EXEC", "", 1);
  RestoreEnvironmentAfterReexec();
  EXPECT_EQ(std::getenv("LD_LIBRARY_PATH"), nullptr);
}

TEST(SoftverbsExecTest, DoesNotExecuteItselfTwice) {
  setenv("GANNET_SOFTVERBS_EXEC", "", 1);
  char name[] = "program";
  char* argv[] = {name, nullptr};
  const absl::Status status = ReexecOntoSoftverbs(argv);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("LD_LIBRARY_PATH"));
  unsetenv("GANNET_SOFTVERBS_EXEC");
}

TEST(DeviceChoiceTest, UnknownNameIsAnErrorThatListsWhatIsThere) {
  const auto device = ChooseDevice("no_such_device");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("\"no_such_device\""));
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("; there "));
}

}  // namespace
}  // namespace gannet
