#include "common/auth/auth_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "softverbs/tests/support/key_file.h"
#include "tests/support/environment_variable.h"

namespace gannet {
namespace {

using test_support::EnvironmentVariable;
using test_support::KeyFile;
using ::testing::HasSubstr;

constexpr char kOneKey[] = "1 000102030405060708090a0b0c0d0e0f\n";
constexpr char kTwoKeys[] =
    "2 202122232425262728292a2b2c2d2e2f\n1 000102030405060708090a0b0c0d0e0f\n";

std::string ErrorOf(const std::string& path, absl::StatusCode code) {
  const auto file = AuthFile::Open(path);
  EXPECT_EQ(file.status().code(), code) << file.status();
  return std::string(file.status().message());
}

TEST(AuthFileTest, HasTheKeysOfTheFile) {
  const KeyFile text(kTwoKeys);
  const auto file = AuthFile::Open(text.path());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->keys().size(), 2u);
  EXPECT_EQ(file->keys().front().id, 2u);
  EXPECT_FALSE(file->Changed());
}

TEST(AuthFileTest, OthersMayHaveNoRightsToIt) {
  const KeyFile text(kOneKey);
  for (const mode_t right : {S_IRGRP, S_IWGRP, S_IROTH, S_IWOTH}) {
    ASSERT_EQ(chmod(text.path().c_str(), S_IRUSR | S_IWUSR | right), 0);
    EXPECT_THAT(ErrorOf(text.path(), absl::StatusCode::kFailedPrecondition),
                HasSubstr("run chmod 600 " + text.path()));
  }
}

TEST(AuthFileTest, SaysWhatIsWrongWithTheFile) {
  EXPECT_THAT(ErrorOf("/no/such/keys", absl::StatusCode::kNotFound), HasSubstr("/no/such/keys"));
  const std::string folder = std::filesystem::temp_directory_path().string();
  EXPECT_THAT(ErrorOf(folder, absl::StatusCode::kFailedPrecondition),
              HasSubstr("no ordinary file"));
  const KeyFile wrong("1 00\n");
  EXPECT_THAT(ErrorOf(wrong.path(), absl::StatusCode::kInvalidArgument),
              HasSubstr(wrong.path() + ":1: a key of 1 bytes"));
  const KeyFile large(std::string(AuthFile::kBytesMax + 1, '#'));
  EXPECT_THAT(ErrorOf(large.path(), absl::StatusCode::kInvalidArgument),
              HasSubstr("more than 65536 bytes"));
}

TEST(AuthFileTest, TheEnvironmentNamesItWhereNothingElseDoes) {
  const KeyFile one(kOneKey);
  const KeyFile two(kTwoKeys);
  auto file = AuthFile::OpenIfNamed("");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file, nullptr);
  const EnvironmentVariable named(kAuthFileVariable, two.path());
  file = AuthFile::OpenIfNamed("");
  ASSERT_TRUE(file.ok() && *file != nullptr) << file.status();
  EXPECT_EQ((*file)->keys().size(), 2u);
  file = AuthFile::OpenIfNamed(one.path());
  ASSERT_TRUE(file.ok() && *file != nullptr) << file.status();
  EXPECT_EQ((*file)->keys().size(), 1u);
  EXPECT_EQ(AuthFilePath(""), two.path());
  EXPECT_EQ(AuthFilePath(one.path()), one.path());
}

TEST(AuthFileTest, AnErrorSaysThatTheEnvironmentNamedTheFile) {
  const EnvironmentVariable named(kAuthFileVariable, "/no/such/keys");
  EXPECT_THAT(std::string(AuthFile::OpenIfNamed("").status().message()),
              HasSubstr("GANNET_AUTH_FILE: cannot read /no/such/keys"));
}

TEST(AuthFileTest, AFifoIsRefusedWithoutWaitingForItsWriter) {
  const KeyFile text(kOneKey);
  const std::string fifo = text.path() + ".fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), S_IRUSR | S_IWUSR), 0);
  EXPECT_THAT(ErrorOf(fifo, absl::StatusCode::kFailedPrecondition), HasSubstr("no ordinary file"));
  std::filesystem::remove(fifo);
}

TEST(AuthFileTest, ReadsAChangedFileAgain) {
  KeyFile text(kOneKey);
  auto file = AuthFile::Open(text.path());
  ASSERT_TRUE(file.ok()) << file.status();
  text.Write(kTwoKeys);
  EXPECT_TRUE(file->Changed());
  EXPECT_TRUE(file->Reload().ok());
  EXPECT_EQ(file->keys().size(), 2u);
  EXPECT_FALSE(file->Changed());
}

TEST(AuthFileTest, KeepsItsKeysWhileTheFileIsWrong) {
  KeyFile text(kTwoKeys);
  auto file = AuthFile::Open(text.path());
  ASSERT_TRUE(file.ok()) << file.status();
  text.Write("1 00\n");
  EXPECT_TRUE(file->Changed());
  EXPECT_FALSE(file->Reload().ok());
  EXPECT_EQ(file->keys().size(), 2u);
  EXPECT_FALSE(file->Changed()) << "it would be read, and complained of, again and again";
  std::filesystem::remove(text.path());
  EXPECT_TRUE(file->Changed());
  EXPECT_FALSE(file->Reload().ok());
  EXPECT_EQ(file->keys().size(), 2u);
  EXPECT_FALSE(file->Changed());
  text.Write(kOneKey);
  EXPECT_TRUE(file->Changed());
  EXPECT_TRUE(file->Reload().ok());
  EXPECT_EQ(file->keys().size(), 1u);
}

}  // namespace
}  // namespace gannet
