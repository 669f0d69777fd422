#include "common/rdma/memory_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rdma/memory.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

class MemoryFileTest : public ::testing::Test {
 protected:
  ~MemoryFileTest() override { std::filesystem::remove(path_); }
  absl::StatusOr<SharedMemory> Open(uint64_t bytes) {
    return SharedMemory::Create({.bytes = bytes, .huge_pages = HugePages::kOff, .file = path_});
  }
  const std::string path_ = absl::StrCat("/dev/shm/gannet-test-", getpid());
};

TEST_F(MemoryFileTest, OutlivesWhoMappedIt) {
  for (const char* expected : {"", "kept"}) {
    const auto memory = Open(1 << 20);
    ASSERT_TRUE(memory.ok()) << memory.status();
    ASSERT_EQ(memory->bytes().size(), 1u << 20);
    EXPECT_STREQ(reinterpret_cast<const char*>(memory->bytes().data()), expected);
    std::memcpy(memory->bytes().data(), "kept", 5);
  }
}

TEST_F(MemoryFileTest, ASecondOneIsRefused) {
  const auto memory = Open(1 << 20);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto second = Open(1 << 20);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(second.status().message(), HasSubstr("another process"));
}

TEST_F(MemoryFileTest, AnotherSizeIsRefused) {
  ASSERT_TRUE(Open(1 << 20).ok());
  for (const uint64_t bytes : {uint64_t{1} << 19, uint64_t{1} << 21}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Open(bytes).status()));
  }
  std::filesystem::resize_file(path_, 5000);  // cut short
  EXPECT_THAT(Open(1 << 20).status().message(), HasSubstr("5000 bytes"));
}

TEST_F(MemoryFileTest, WhatIsNoMemoryIsRefused) {
  const auto opened = [](const std::string& path) {
    return OpenMemoryFile(path, 1 << 20).status();
  };
  EXPECT_THAT(opened("/proc/gannet").message(), HasSubstr("tmpfs"));
  EXPECT_FALSE(std::filesystem::exists("/proc/gannet"));
  EXPECT_TRUE(absl::IsInvalidArgument(opened("/dev/shm/no/such/folder")));
  EXPECT_TRUE(absl::IsInvalidArgument(opened("/dev/shm")));
  std::filesystem::create_symlink("/dev/shm/elsewhere", path_);
  EXPECT_TRUE(absl::IsInvalidArgument(opened(path_)));
}

}  // namespace
}  // namespace gannet
