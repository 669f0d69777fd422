#include "common/base/file_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kRoot = 0;
constexpr uid_t kUs = 10471;
constexpr uid_t kSomebody = 1000;
constexpr gid_t kOurGroup = 10471;
constexpr gid_t kOtherGroup = 42;
constexpr mode_t kModes = 01000;

ProcessIds We() { return {.user = kUs, .groups = {kUs, kOurGroup}}; }
ProcessIds Root() { return {.user = kRoot, .groups = {kRoot}}; }

struct stat About(mode_t mode, uid_t user, gid_t group) {
  struct stat about {};
  about.st_mode = mode;
  about.st_uid = user;
  about.st_gid = group;
  return about;
}

absl::Status Secret(mode_t mode, uid_t user, gid_t group, const ProcessIds& ids = We()) {
  return CheckSecretFile("/keys", About(S_IFREG | mode, user, group), ids);
}

absl::Status Data(mode_t mode, uid_t user, gid_t group, const ProcessIds& ids = We()) {
  return CheckDataDirectory("/volume", About(S_IFDIR | mode, user, group), ids);
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// Returns whether a mode is one of those with no other rights than `most`.
bool Within(mode_t mode, mode_t most) { return (mode & ~most) == 0; }

TEST(SecretFileTest, IsOursAloneOrRootsForOurGroupToRead) {
  for (mode_t mode = 0; mode < kModes; ++mode) {
    for (const gid_t group : {kOurGroup, kOtherGroup}) {
      EXPECT_EQ(Secret(mode, kUs, group).ok(), Within(mode, 0700)) << std::oct << mode;
      const mode_t roots = group == kOurGroup ? 0740 : 0700;
      EXPECT_EQ(Secret(mode, kRoot, group).ok(), Within(mode, roots)) << std::oct << mode;
      EXPECT_FALSE(Secret(mode, kSomebody, group).ok()) << std::oct << mode;
      for (const uid_t user : {kRoot, kSomebody}) {
        EXPECT_EQ(Secret(mode, user, group, Root()).ok(), Within(mode, 0700)) << std::oct << mode;
      }
    }
  }
  EXPECT_FALSE(CheckSecretFile("/keys", About(S_IFIFO | 0400, kUs, kUs), We()).ok());
}

TEST(SecretFileTest, IsASecretOfKubernetes) { EXPECT_TRUE(Secret(0440, kRoot, kOurGroup).ok()); }

TEST(SecretFileTest, ARefusalSaysWhatToDo) {
  EXPECT_THAT(Text(Secret(0640, kUs, kUs)), HasSubstr("run chmod 600 /keys"));
  EXPECT_THAT(Text(Secret(0644, kRoot, kOurGroup)), HasSubstr("run chmod 640 /keys"));
  EXPECT_THAT(Text(Secret(0640, kRoot, kOtherGroup)), HasSubstr("run chgrp 10471 /keys"));
  EXPECT_THAT(Text(Secret(0600, kSomebody, kSomebody)), HasSubstr("run chown 10471 /keys"));
}

TEST(DataDirectoryTest, IsOursAndNobodyElseWrites) {
  for (mode_t mode = 0; mode < kModes; ++mode) {
    for (const gid_t group : {kOurGroup, kOtherGroup}) {
      EXPECT_EQ(Data(mode, kUs, group).ok(), Within(mode, 0755)) << std::oct << mode;
      EXPECT_EQ(Data(mode | S_ISGID, kUs, group).ok(), Within(mode, 0755)) << std::oct << mode;
      for (const uid_t user : {kRoot, kSomebody}) {
        EXPECT_FALSE(Data(mode, user, group).ok()) << std::oct << mode;
      }
      EXPECT_FALSE(Data(mode, kUs, group, Root()).ok()) << std::oct << mode;
    }
  }
}

TEST(DataDirectoryTest, AVolumeIsRefusedWithTheNameOfADirectoryInIt) {
  for (const mode_t mode : {02775, 02770, 0777, 01777}) {
    EXPECT_THAT(Text(Data(mode, kRoot, kOurGroup)), HasSubstr("give /volume/data, ")) << mode;
  }
  EXPECT_THAT(Text(Data(0775, kUs, kOurGroup)), HasSubstr("chmod go-w /volume"));
  EXPECT_THAT(Text(Data(02775, kRoot, kOtherGroup)), HasSubstr("run it as user 0, or"));
  EXPECT_THAT(Text(Data(0700, kUs, kUs, Root())), HasSubstr("run it as user 10471, or"));
}

TEST(ProcessIdsTest, OfThisProcessHaveItsGroup) {
  EXPECT_EQ(ProcessIds::Own().groups.front(), getegid());
  EXPECT_EQ(ProcessIds::Own().user, geteuid());
}

}  // namespace
}  // namespace gannet
