// The bytes of the recovery area, as docs/memory-file.md has them.

#include "server/memory/recovery/recovery_area.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/hex.h"

namespace gannet {
namespace {

using test_support::Hex;

class RecoveryAreaTest : public testing::Test {
 protected:
  std::span<const std::byte> At(uint64_t offset, size_t bytes) const {
    return std::as_bytes(std::span(region_)).subspan(offset, bytes);
  }

  // Words, so that it is aligned.
  std::vector<uint64_t> region_ = std::vector<uint64_t>((kRecoveryEnd + 4096) / sizeof(uint64_t));
  RecoveryArea area_{std::as_writable_bytes(std::span(region_))};
};

TEST_F(RecoveryAreaTest, HeaderHasGoldenBytes) {
  area_.Format(0x40000000, kRecoveryFormat);
  area_.SetState(RegionState::kServing);
  area_.SetTakingOver(0x1122334455667788);
  area_.SetVersionsEnd(0x0102030405060708);
  EXPECT_EQ(Hex(At(4096, 24)),
            "474e45544d454d31"
            "0200000058000000"
            "0000004000000000");
  EXPECT_EQ(Hex(At(4136, 32)),
            "015e5e5e5e5e5e1b"
            "8877665544332211"
            "0807060504030201"
            "f7f8f9fafbfcfdfe");
  area_.SetClock(ServerTime::FromMs(0x0000018bcfe56800));
  EXPECT_EQ(Hex(At(4168, 16)),
            "0068e5cf8b010000"
            "ff971a3074feffff");
  area_.SetState(RegionState::kStopped);
  EXPECT_EQ(Hex(At(4136, 8)), "026d6d6d6d6d6d2c");
}

// A process is killed behind each of the stores.
TEST_F(RecoveryAreaTest, TheFormatChangesWithoutDamage) {
  const std::span<std::byte> region = std::as_writable_bytes(std::span(region_));
  constexpr size_t kFirst = kRecoveryOffset / sizeof(uint64_t);
  region_[0] = 1;  // without any of a superblock, the region would count as new
  for (const uint32_t from : {kRecoveryFormat, kRecoveryFormatWithStubs}) {
    const uint32_t to = kRecoveryFormat + kRecoveryFormatWithStubs - from;
    area_.Format(region.size(), from);
    const std::vector<uint64_t> before = region_;
    area_.SetFormat(to);
    EXPECT_EQ(LoadRecoveryHeader(region).format, to);
    EXPECT_TRUE(RecoveryArea::HasItems(region).ok());
    // The second store is that of the checksum.
    region_[kFirst + 4] = before[kFirst + 4];
    EXPECT_TRUE(RecoveryArea::HasItems(region).ok());
    region_[kFirst + 4] ^= 1;
    EXPECT_TRUE(absl::IsDataLoss(RecoveryArea::HasItems(region).status()));
  }
}

TEST_F(RecoveryAreaTest, RefusesAFormatThatItDoesNotKnow) {
  const std::span<std::byte> region = std::as_writable_bytes(std::span(region_));
  area_.Format(region.size(), 4);
  EXPECT_TRUE(absl::IsInvalidArgument(RecoveryArea::HasItems(region).status()));
}

TEST_F(RecoveryAreaTest, TheClockIsTheLastOneThatWasNotedAsAWhole) {
  const auto noted = [&] { return NotedClock(LoadRecoveryHeader(At(0, kRecoveryEnd))); };
  EXPECT_EQ(noted(), ServerTime()) << "as an earlier version leaves it";
  area_.Format(0x40000000, kRecoveryFormat);
  EXPECT_EQ(noted(), ServerTime());
  area_.SetClock(ServerTime::FromMs(1'000));
  EXPECT_EQ(noted(), ServerTime::FromMs(1'000));
  // A process was killed between the two stores.
  region_[(kRecoveryOffset + offsetof(RecoveryHeader, clock_ms)) / sizeof(uint64_t)] = 2'000;
  EXPECT_EQ(noted(), ServerTime::FromMs(1'000));
}

TEST_F(RecoveryAreaTest, IntentHasGoldenBytes) {
  // The upper 12 bits of the hash are the intent's number.
  const KeyHash hash(0x0031'0000'0000'0000);
  const uint64_t at = 8192 + 3 * 64;
  area_.BeginReplace(hash, Slot::Of(0xabcde, 3, 0x1000000), Slot::Of(0xabcde, 3, 0x1000040));
  EXPECT_EQ(Hex(At(at, 64)),
            "eeb0b9a1904f26a5"
            "0100000000000000"
            "0000100060e0cdab"
            "0400100060e0cdab" +
                std::string(64, '0'));
  area_.End(hash);
  EXPECT_EQ(Hex(At(at, 8)), "0000000000000000");
  EXPECT_FALSE(LoadIntent(std::as_bytes(std::span(region_)), 3).has_value());
}

}  // namespace
}  // namespace gannet
