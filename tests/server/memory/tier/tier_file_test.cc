#include "server/memory/tier/tier_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/memory/tier/tier_buffer.h"
#include "softverbs/tests/support/temporary_directory.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSegment = 64 << 10;

class TierFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto probe = Open();
    if (!probe.ok() && absl::StrContains(probe.status().message(), "tmpfs")) {
      GTEST_SKIP() << "the directory for tests is on tmpfs, where no tier may be";
    }
  }
  TierFileOptions Options() const {
    return {.directory = directory_.path(),
            .bytes = kTierSegmentsMin * kSegment + 5,
            .segment_bytes = kSegment};
  }
  TierFileOptions Kept() const {
    TierFileOptions options = Options();
    options.keeps = true;
    return options;
  }
  absl::StatusOr<std::unique_ptr<TierFile>> Open() const { return TierFile::Open(Options()); }
  std::string path() const { return directory_.path() + "/tier"; }

  test_support::TemporaryDirectory directory_;
};

TEST_F(TierFileTest, HasNoNameUnlessItIsKept) {
  const auto file = Open();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  EXPECT_EQ((*file)->segments(), kTierSegmentsMin);
  EXPECT_EQ(*(*file)->Size(), kTierBlockBytes + kTierSegmentsMin * kSegment);
  EXPECT_FALSE((*file)->kept());
}

TEST_F(TierFileTest, IsForItsUserOnly) {
  const auto file = TierFile::Open(Kept());
  ASSERT_TRUE(file.ok()) << file.status();
  struct stat about {};
  ASSERT_EQ(stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(TierFileTest, IsFoundAgainWithWhatItHas) {
  const TierBuffer buffer(kTierBlockBytes);
  std::memset(buffer.bytes().data(), 7, buffer.bytes().size());
  uint64_t tier = 0;
  {
    const auto file = TierFile::Open(Kept());
    ASSERT_TRUE(file.ok()) << file.status();
    tier = (*file)->tier();
    ASSERT_TRUE((*file)->WriteAt(kTierBlockBytes, buffer.bytes()).ok());
  }
  const auto file = TierFile::Open(Kept());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->kept());
  EXPECT_EQ((*file)->tier(), tier);
  std::memset(buffer.bytes().data(), 0, buffer.bytes().size());
  ASSERT_EQ(*(*file)->ReadAt(kTierBlockBytes, buffer.bytes()), kTierBlockBytes);
  EXPECT_EQ(buffer.bytes()[100], std::byte{7});
}

TEST_F(TierFileTest, OfAnotherSizeIsMadeAnew) {
  uint64_t tier = 0;
  {
    const auto file = TierFile::Open(Kept());
    ASSERT_TRUE(file.ok()) << file.status();
    tier = (*file)->tier();
  }
  TierFileOptions longer = Kept();
  longer.bytes += kSegment;
  const auto file = TierFile::Open(longer);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->kept());
  EXPECT_NE((*file)->tier(), tier);
  EXPECT_EQ((*file)->segments(), kTierSegmentsMin + 1);
}

TEST_F(TierFileTest, IsOfOneProcess) {
  const auto file = TierFile::Open(Kept());
  ASSERT_TRUE(file.ok()) << file.status();
  const auto other = TierFile::Open(Kept());
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("another process uses the tier"));
}

TEST_F(TierFileTest, RefusesAnotherLayout) {
  { ASSERT_TRUE(TierFile::Open(Kept()).ok()); }
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offsetof(TierHeader, layout));
    file.put(9);
  }
  const auto file = TierFile::Open(Kept());
  EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("a tier of layout 9"));
}

TEST_F(TierFileTest, RefusesAFileThatIsNoTier) {
  { std::ofstream(path()) << "somebody's diary"; }
  const auto file = TierFile::Open(Kept());
  EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("is no tier"));
  EXPECT_EQ(std::filesystem::file_size(path()), 16u);
}

TEST_F(TierFileTest, RefusesMoreThanTheDiskHas) {
  TierFileOptions huge = Options();
  huge.bytes = uint64_t{1} << 60;
  huge.segment_bytes = kTierSegmentBytes;
  const auto file = TierFile::Open(huge);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kResourceExhausted) << file.status();
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("and its disk has"));
}

TEST_F(TierFileTest, RefusesWhatIsNoFile) {
  std::filesystem::create_symlink("/etc/hostname", path());
  EXPECT_THAT(std::string(TierFile::Open(Kept()).status().message()),
              HasSubstr("is a symbolic link: remove it"));
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_THAT(std::string(TierFile::Open(Kept()).status().message()),
              HasSubstr(path() + ": Is a directory"));
}

TEST_F(TierFileTest, RefusesTooFewSegments) {
  TierFileOptions few = Options();
  few.bytes = (kTierSegmentsMin - 1) * kSegment;
  EXPECT_EQ(TierFile::Open(few).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TierFileTest, IsExaminedWithoutAChange) {
  const auto found = TierFile::Examine(Kept());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->kept);
  EXPECT_GT(found->free_bytes, kTierSegmentsMin * kSegment);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  bool direct = false;
  {
    const auto file = TierFile::Open(Kept());
    ASSERT_TRUE(file.ok()) << file.status();
    direct = (*file)->direct();
    EXPECT_THAT(std::string(TierFile::Examine(Kept()).status().message()),
                HasSubstr("another process uses the tier"));
  }
  EXPECT_EQ(found->direct, direct);
  EXPECT_TRUE(TierFile::Examine(Kept())->kept);
  TierFileOptions longer = Kept();
  longer.bytes += kSegment;
  const auto of_longer = TierFile::Examine(longer);
  ASSERT_TRUE(of_longer.ok()) << of_longer.status();
  EXPECT_FALSE(of_longer->kept);
  EXPECT_TRUE((*TierFile::Open(Kept()))->kept()) << "the other size was not made";
}

// What is written over gives its space.
TEST_F(TierFileTest, AnExaminationCountsTheSpaceOfATierThatIsMadeAnew) {
  TierFileOptions large = Kept();
  large.segment_bytes = kTierSegmentBytes;
  large.bytes = kTierSegmentsMin * kTierSegmentBytes;
  { ASSERT_TRUE(TierFile::Open(large).ok()); }
  const auto with = TierFile::Examine(Kept());
  ASSERT_TRUE(with.ok()) << with.status();
  const auto free = std::filesystem::space(directory_.path()).available;
  EXPECT_GT(with->free_bytes, free + large.bytes / 2);
}

TEST_F(TierFileTest, AnExaminationRefusesWhatAStartRefuses) {
  TierFileOptions huge = Options();
  huge.bytes = uint64_t{1} << 60;
  huge.segment_bytes = kTierSegmentBytes;
  EXPECT_THAT(std::string(TierFile::Examine(huge).status().message()), HasSubstr("its disk has"));
  TierFileOptions few = Options();
  few.bytes = kSegment;
  EXPECT_TRUE(absl::IsInvalidArgument(TierFile::Examine(few).status()));
  TierFileOptions nowhere = Options();
  nowhere.directory += "/none";
  EXPECT_TRUE(absl::IsNotFound(TierFile::Examine(nowhere).status()));
  { std::ofstream(path()) << "somebody's diary"; }
  EXPECT_THAT(std::string(TierFile::Examine(Kept()).status().message()), HasSubstr("is no tier"));
  EXPECT_EQ(std::filesystem::file_size(path()), 16u);
  ASSERT_EQ(chmod(directory_.path().c_str(), 0777), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(TierFile::Examine(Options()).status()));
}

TEST_F(TierFileTest, RefusesADirectoryThatIsNotThere) {
  TierFileOptions nowhere = Options();
  nowhere.directory += "/none";
  EXPECT_EQ(TierFile::Open(nowhere).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TierFileTest, RefusesADirectoryThatOthersMayWriteTo) {
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(TierFileOnTmpfsTest, IsRefused) {
  const auto file = TierFile::Open(
      {.directory = "/dev/shm", .bytes = kTierSegmentsMin * kSegment, .segment_bytes = kSegment});
  EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("is in memory (tmpfs)"));
}

ssize_t RefusesDirectWrites(int fd, const void* bytes, size_t n, off_t offset) {
  if (fcntl(fd, F_GETFL) & O_DIRECT) {
    errno = EINVAL;
    return -1;
  }
  return pwrite(fd, bytes, n, offset);
}

TEST_F(TierFileTest, UsesThePageCacheIfDirectWritesAreRefused) {
  TierFileOptions options = Options();
  options.pwrite = RefusesDirectWrites;
  const auto file = TierFile::Open(options);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->direct());
  const TierBuffer buffer(kTierBlockBytes);
  EXPECT_TRUE((*file)->WriteAt(kTierBlockBytes, buffer.bytes()).ok());
}

ssize_t LosesWrites(int, const void*, size_t n, off_t) { return static_cast<ssize_t>(n); }

TEST_F(TierFileTest, RefusesADiskThatLosesItsHeader) {
  TierFileOptions options = Options();
  options.pwrite = LosesWrites;
  const auto file = TierFile::Open(options);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace gannet
