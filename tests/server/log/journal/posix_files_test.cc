#include "server/log/journal/posix_files.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "softverbs/tests/support/temporary_directory.h"

namespace gannet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PosixFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto files = OpenDirectory(path_);
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
  }
  const test_support::TemporaryDirectory directory_;
  const std::string path_ = directory_.path();
  std::unique_ptr<Files> files_;
};

TEST_F(PosixFilesTest, WritesReadsAndRenames) {
  auto file = files_->Create("b");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::array<std::byte, 3> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  ASSERT_TRUE((*file)->Reserve(100).ok());
  ASSERT_TRUE((*file)->WriteAt(99, bytes).ok());
  EXPECT_EQ(*(*file)->Size(), 102u);
  EXPECT_TRUE((*file)->Sync().ok());
  std::array<std::byte, 5> read{};
  EXPECT_EQ(*(*file)->ReadAt(98, read), 4u) << "to the end of the file";
  EXPECT_THAT(read,
              ElementsAre(std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{0}));
  ASSERT_TRUE((*file)->Truncate(10).ok());
  EXPECT_EQ(*(*file)->Size(), 10u);
  ASSERT_TRUE(files_->Create("a").ok());
  EXPECT_THAT(*files_->List(), ElementsAre("a", "b"));
  ASSERT_TRUE(files_->Rename("a", "b").ok());
  EXPECT_THAT(*files_->List(), ElementsAre("b"));
  EXPECT_TRUE(files_->SyncDirectory().ok());
  EXPECT_TRUE(files_->Remove("b").ok());
  EXPECT_TRUE(files_->List()->empty());
}

TEST_F(PosixFilesTest, NamesTheFileAndTheCause) {
  EXPECT_TRUE(absl::IsNotFound(files_->Open("none").status()));
  EXPECT_TRUE(absl::IsNotFound(files_->Remove("none")));
  ASSERT_TRUE(files_->Create("a").ok());
  const absl::Status twice = files_->Create("a").status();
  EXPECT_TRUE(absl::IsAlreadyExists(twice));
  EXPECT_THAT(twice.message(), HasSubstr("cannot create " + path_ + "/a: File exists"));
}

TEST_F(PosixFilesTest, NamesAFileAsItIsCalledNow) {
  const auto file = files_->Create("journal.new");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(files_->Rename("journal.new", "journal-1").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status refused = (*file)->WriteAt(1, std::array<std::byte, 1>{});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("cannot write to /"), HasSubstr("/journal-1: ")));
}

TEST_F(PosixFilesTest, RefusesDirectoriesThatOthersMayChange) {
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  EXPECT_THAT(OpenDirectory(path_).status().message(), HasSubstr("chmod go-w"));
}

TEST_F(PosixFilesTest, MakesADirectoryIfOnlyTheEndOfItsPathIsMissing) {
  for (const char* name : {"/volume", "/slash/"}) {
    const auto made = OpenDirectory(path_ + name);
    ASSERT_TRUE(made.ok()) << made.status();
    struct stat about {};
    ASSERT_EQ(stat((path_ + name).c_str(), &about), 0);
    EXPECT_EQ(about.st_mode, mode_t{S_IFDIR | 0700});
  }
  EXPECT_TRUE(absl::IsNotFound(OpenDirectory(path_ + "/mistyped/data").status()));
}

TEST_F(PosixFilesTest, ReadsADirectoryOfAnybodyAndChangesNothingThere) {
  ASSERT_TRUE(files_->Create("a").ok());
  EXPECT_FALSE(OpenDirectoryToRead(path_).ok()) << "somebody writes to it";
  files_.reset();
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  const auto files = OpenDirectoryToRead(path_);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(OpenDirectoryToRead(path_).ok()) << "so does another one";
  const auto file = (*files)->Open("a");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->WriteAt(0, std::array<std::byte, 1>{}).ok());
  EXPECT_TRUE(absl::IsNotFound(OpenDirectoryToRead(path_ + "/none").status()));
}

TEST_F(PosixFilesTest, FindsAFileOnlyWhereItsPathLeads) {
  ASSERT_TRUE(files_->Create("a").ok());
  EXPECT_EQ(files_->Find("a"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(files_->Find("b")));
  const std::string moved = path_ + ".moved";
  std::filesystem::rename(path_, moved);
  EXPECT_TRUE(absl::IsNotFound(files_->Find("a")));
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  std::ofstream(path_ + "/a") << "another one";
  EXPECT_TRUE(absl::IsNotFound(files_->Find("a")));
  std::filesystem::remove_all(path_);
  std::filesystem::rename(moved, path_);
  EXPECT_EQ(files_->Find("a"), absl::OkStatus());
  std::filesystem::remove_all(path_);
  EXPECT_TRUE(absl::IsNotFound(files_->Find("a")));
}

// /dev/full has no space.
TEST_F(PosixFilesTest, TellsAFullDiskFromABrokenOne) {
  auto devices = OpenDirectory("/dev");
  if (!devices.ok()) GTEST_SKIP() << "no /dev of this user: " << devices.status();
  auto full = (*devices)->Open("full");
  if (!full.ok()) GTEST_SKIP() << full.status();
  const std::array<std::byte, 1> byte{};
  EXPECT_TRUE(absl::IsResourceExhausted((*full)->WriteAt(0, byte)));
}

}  // namespace
}  // namespace gannet
