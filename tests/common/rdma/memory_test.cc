#include "common/rdma/memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace gannet {
namespace {

using ::testing::HasSubstr;

// Returns the open file descriptor of the memfd with that name, or -1.
int FindMemfd(const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("/memfd:" + name + " ")) return std::stoi(entry.path().filename());
  }
  return -1;
}

bool CanMapWritable(int fd) {
  void* address = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return false;
  munmap(address, 4096);
  return true;
}

TEST(SharedMemoryTest, IsZeroFilledPageAlignedAndWritable) {
  for (const HugePages huge_pages : {HugePages::kAuto, HugePages::kOff}) {
    auto memory = SharedMemory::Create({.bytes = 100'000, .huge_pages = huge_pages});
    ASSERT_TRUE(memory.ok()) << memory.status();
    const std::span<std::byte> bytes = memory->bytes();
    EXPECT_GE(bytes.size(), 100'000u);
    EXPECT_EQ(bytes.size() % memory->page_bytes(), 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % memory->page_bytes(), 0u);
    EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }));
    bytes.back() = std::byte{7};
    EXPECT_EQ(bytes.back(), std::byte{7});
  }
}

TEST(SharedMemoryTest, HasWholePagesOfTheSystem) {
  for (const uint64_t page_bytes : {4096, 65536}) {
    auto memory = SharedMemory::Create(
        {.bytes = 100'000, .huge_pages = HugePages::kOff, .page_bytes = page_bytes});
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(memory->page_bytes(), page_bytes);
    EXPECT_EQ(memory->bytes().size(), (100'000 + page_bytes - 1) / page_bytes * page_bytes);
  }
  EXPECT_EQ(SystemPageBytes(), static_cast<uint64_t>(getpagesize()));
}

TEST(SharedMemoryTest, IsSealedAgainstPeersUnlessTheyWriteIt) {
  auto read_only = SharedMemory::Create({.name = "sealed", .bytes = 4096});
  auto writable = SharedMemory::Create({.name = "open", .bytes = 4096, .remote_write = true});
  ASSERT_TRUE(read_only.ok() && writable.ok());
  const int sealed_fd = FindMemfd("sealed");
  const int open_fd = FindMemfd("open");
  ASSERT_GE(sealed_fd, 0);
  ASSERT_GE(open_fd, 0);
  EXPECT_FALSE(CanMapWritable(sealed_fd));
  EXPECT_TRUE(CanMapWritable(open_fd));
  EXPECT_NE(ftruncate(sealed_fd, 0), 0);
  EXPECT_NE(ftruncate(open_fd, 0), 0);
}

TEST(SharedMemoryTest, ClosesItsFileWhenDestroyedAndNotWhenMoved) {
  {
    auto memory = SharedMemory::Create({.name = "moved", .bytes = 4096});
    ASSERT_TRUE(memory.ok());
    const std::byte* address = memory->bytes().data();
    const SharedMemory other = *std::move(memory);
    EXPECT_EQ(other.bytes().data(), address);
    EXPECT_GE(FindMemfd("moved"), 0);
  }
  EXPECT_EQ(FindMemfd("moved"), -1);
}

TEST(SharedMemoryTest, MoreThanThereIsIsRefusedWithWhatThereIs) {
  const auto memory = SharedMemory::Create({.bytes = uint64_t{1} << 46});
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(memory.status().message()), HasSubstr("MiB are available"));
}

TEST(SharedMemoryTest, NothingIsInvalid) {
  EXPECT_EQ(SharedMemory::Create({.bytes = 0}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PrivateMemoryTest, IsZeroFilledAndMoves) {
  auto memory = PrivateMemory::Create(5000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->bytes().size(), 8192u);
  EXPECT_TRUE(std::ranges::all_of(memory->bytes(), [](std::byte b) { return b == std::byte{0}; }));
  PrivateMemory other;
  other = *std::move(memory);
  EXPECT_EQ(other.bytes().size(), 8192u);
}

}  // namespace
}  // namespace gannet
