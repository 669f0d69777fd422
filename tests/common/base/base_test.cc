#include <gtest/gtest.h>
#include <xxhash.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "common/base/align.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/base/copy_bytes.h"
#include "common/base/data_path_checks.h"
#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "common/base/same_bytes.h"
#include "common/base/status_macros.h"
#include "common/base/words.h"

namespace gannet {
namespace {

TEST(AlignTest, RoundsUp) {
  EXPECT_EQ(AlignUp(0, 8), 0u);
  EXPECT_EQ(AlignUp(1, 8), 8u);
  EXPECT_EQ(AlignUp(8, 8), 8u);
  EXPECT_EQ(AlignUp(4097, 4096), 8192u);
}

TEST(AlignTest, MapsHashesOntoTheWholeRange) {
  EXPECT_EQ(MapToRange(0, 10), 0u);
  EXPECT_EQ(MapToRange(~0ull, 10), 9u);
  EXPECT_EQ(MapToRange(1ull << 63, 10), 5u);
  EXPECT_EQ(MapToRange(~0ull, 1), 0u);
}

TEST(HashTest, IsXxh3AsPublished) {
  EXPECT_EQ(Xxh3("", 0, 0), 0x2d06800538d394c2u);  // the reference's own test vector
  EXPECT_EQ(Xxh3("gannet", 6, 1), 0xd30f40ad472226e7u);
  EXPECT_EQ(HashKey("gannet", 1), Xxh3("gannet", 6, 1));
}

TEST(HashTest, UnseededIsTheLibrarys) {
  std::string bytes(600, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(Mix64(i + 1));
  for (size_t size = 0; size < bytes.size(); ++size) {
    for (size_t at : {0, 1}) {
      EXPECT_EQ(Xxh3Unseeded(&bytes[at], size), Xxh3(&bytes[at], size, 0)) << size << " at " << at;
    }
  }
}

// Processors with wide registers compute long hashes by other instructions than all others do.
// The library has no such path in these functions.
TEST(HashTest, LongHashesAreTheSameOnEveryProcessor) {
  std::string bytes(5000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(Mix64(i + 1));
  for (size_t size = 230; size < bytes.size(); size += size < 1300 ? 1 : 61) {
    const char* const data = &bytes[size % 8];
    const size_t n = size - size % 8;
    EXPECT_EQ(Xxh3Unseeded(data, n), XXH3_64bits(data, n)) << n;
    EXPECT_EQ(Xxh3(data, n, size), XXH3_64bits_withSeed(data, n, size)) << n;
  }
}

TEST(SameBytesTest, SeesEveryDifferenceAndNothingBehindTheEnd) {
  for (size_t size = 0; size <= 70; ++size) {
    const std::string a(size + 1, 'a');
    std::string b = a;
    b[size] = 'b';
    EXPECT_TRUE(SameBytes(a.data(), b.data(), size)) << size;
    for (size_t at = 0; at < size; ++at) {
      std::string c = b;
      c[at] = 'c';
      EXPECT_FALSE(SameBytes(a.data(), c.data(), size)) << size << " at " << at;
    }
  }
}

TEST(HashTest, Mix64IsMurmursFinaliser) {
  EXPECT_EQ(Mix64(0), 0u);
  EXPECT_EQ(Mix64(1), 0xb456bcfc34c2cb2cu);
}

TEST(WordsTest, CopiesAnyLengthAndPadsTheLastWord) {
  for (size_t size = 0; size <= 40; ++size) {
    std::string from(size, '\0');
    for (size_t i = 0; i < size; ++i) from[i] = static_cast<char>(i + 1);
    alignas(8) char memory[48];
    std::memset(memory, 0x7f, sizeof(memory));
    StoreWords(memory, from.data(), size);
    EXPECT_EQ(std::string_view(memory, size), from);
    for (size_t i = size; i < AlignUp(size, 8); ++i) EXPECT_EQ(memory[i], 0) << size;
    for (size_t i = AlignUp(size, 8); i < sizeof(memory); ++i) EXPECT_EQ(memory[i], 0x7f) << size;

    std::string to(size + 1, '\x55');
    LoadWords(to.data(), memory, size);
    EXPECT_EQ(to.substr(0, size), from);
    EXPECT_EQ(to[size], '\x55');
  }
}

TEST(WordsTest, WordsAreNotTornUnderAWriter) {
  alignas(8) uint64_t word = 0;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint32_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      StoreWord(&word, static_cast<uint64_t>(i) << 32 | i);
    }
  });
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t seen = LoadWord(&word);
    ASSERT_EQ(seen >> 32, seen & 0xffffffff);
  }
  stop.store(true, std::memory_order_relaxed);
  writer.join();
}

TEST(ClockTest, MonotonicGoesForwardAndWallIsThisCentury) {
  const int64_t a = MonotonicNs();
  EXPECT_GE(MonotonicNs(), a);
  EXPECT_GT(MachineWallTime().ms(), 1'600'000'000'000u);
}

TEST(DataPathChecksDeathTest, AreEvaluatedInBuildsForThatOnly) {
  int looks = 0;
  GANNET_CHECK_DATA_PATH(++looks == 1, "the first look");
  EXPECT_EQ(looks, kChecksDataPaths ? 1 : 0);
  if (kChecksDataPaths) {
    EXPECT_DEATH(GANNET_CHECK_DATA_PATH(looks == 0, "two looks"), "two looks");
  }
}

TEST(MutexTest, Excludes) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, 40'000);
}

TEST(CopyBytesTest, CopiesAllAndNothingElse) {
  std::string from(300, '\0');
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7 + 1);
  for (size_t size = 0; size <= 250; ++size) {
    for (const auto copy : {&CopyKeyBytes, &CopyValueBytes}) {
      std::string to(size + 2, '#');
      copy(to.data() + 1, from.data(), size);
      EXPECT_EQ(to, "#" + from.substr(0, size) + "#");
    }
  }
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  GANNET_ASSIGN_OR_RETURN(const int half, Half(n));
  GANNET_RETURN_IF_ERROR(Half(half).status());
  return half / 2;
}

TEST(StatusMacrosTest, PassErrorsOn) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(3).status().message(), "odd");
  EXPECT_EQ(Quarter(6).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gannet
