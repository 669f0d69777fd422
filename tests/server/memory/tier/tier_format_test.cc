#include "server/memory/tier/tier_format.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/memory/tier/tier_buffer.h"

namespace gannet {
namespace {

constexpr uint64_t kTier = 0x1122334455667788;
constexpr TierPlace kPlace = {
    .position = 0x4000140, .lap = 7, .value_bytes = 5, .version = 0x0102030405060708};

TierRecord SomeRecord() {
  return {.key = "key",
          .value = "value",
          .hash = 42,
          .version = kPlace.version,
          .flags = 0xa1b2c3d4,
          .expiry = Expiry::FromMs(0x018bcfe56800)};
}

std::vector<std::byte> Encoded() {
  std::vector<std::byte> bytes(TierRecordBytes(3, 5));
  EncodeTierRecord(kTier, kPlace, SomeRecord(), bytes);
  return bytes;
}

TEST(TierFormatTest, RecordHasTheseBytes) {
  const std::vector<std::byte> bytes = Encoded();
  const std::array<unsigned char, 43> expected = {
      0x40, 0x01, 0x00, 0x04, 0,    0,    0,    0,     // position
      0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,  // version
      7,    0,    0,    0,    5,    0,    0,    0,     // lap, value bytes
      0xd4, 0xc3, 0xb2, 0xa1, 3,    0,    0,    0,     // flags, key bytes
      0x00, 0x68, 0xe5, 0xcf, 0x8b, 0x01, 0,    0,     // expiry
      'k',  'e',  'y'};
  ASSERT_EQ(bytes.size(), 128u);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(static_cast<unsigned char>(bytes[8 + i]), expected[i]) << "byte " << 8 + i;
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()) + 64, 5), "value");
}

TEST(TierFormatTest, ProvesItsRecord) {
  const std::vector<std::byte> bytes = Encoded();
  EXPECT_EQ(ProveTierRecord(bytes, kTier, kPlace, "key"), "value");
}

TEST(TierFormatTest, ProvesNoOtherRecord) {
  const std::vector<std::byte> bytes = Encoded();
  EXPECT_FALSE(ProveTierRecord(bytes, kTier + 1, kPlace, "key"));
  EXPECT_FALSE(ProveTierRecord(bytes, kTier, kPlace, "kez"));
  TierPlace other = kPlace;
  other.position += 64;
  EXPECT_FALSE(ProveTierRecord(bytes, kTier, other, "key"));
  other = kPlace;
  ++other.lap;
  EXPECT_FALSE(ProveTierRecord(bytes, kTier, other, "key"));
  other = kPlace;
  ++other.version;
  EXPECT_FALSE(ProveTierRecord(bytes, kTier, other, "key"));
  other = kPlace;
  --other.value_bytes;
  EXPECT_FALSE(ProveTierRecord(bytes, kTier, other, "key"));
}

TEST(TierFormatTest, ProvesNoRecordWithAFlippedBit) {
  for (size_t i = 0; i < 64 + 5; ++i) {
    std::vector<std::byte> bytes = Encoded();
    bytes[i] ^= std::byte{0x10};
    EXPECT_FALSE(ProveTierRecord(bytes, kTier, kPlace, "key")) << "byte " << i;
  }
}

TEST(TierFormatTest, HeaderSaysWhatItIs) {
  const TierBuffer buffer(kTierBlockBytes);
  const std::span<std::byte, kTierBlockBytes> block(buffer.bytes());
  EncodeTierHeader(kTier, 1 << 20, 16, block);
  TierHeader header;
  ASSERT_EQ(ProveTierHeader(block, &header), TierHeaderProof::kOk);
  EXPECT_EQ(header.tier, kTier);
  EXPECT_EQ(header.segment_bytes, 1u << 20);
  EXPECT_EQ(header.segments, 16u);
  block[8] = std::byte{2};
  EXPECT_EQ(ProveTierHeader(block, &header), TierHeaderProof::kOtherLayout);
  EncodeTierHeader(kTier, 1 << 20, 16, block);
  block[32] = std::byte{17};
  EXPECT_EQ(ProveTierHeader(block, &header), TierHeaderProof::kNoTier);
  block[0] = std::byte{0};
  EXPECT_EQ(ProveTierHeader(block, &header), TierHeaderProof::kNoTier);
}

TEST(TierFormatTest, HeaderOfZerosIsEmpty) {
  const TierBuffer buffer(kTierBlockBytes);
  const std::span<std::byte, kTierBlockBytes> block(buffer.bytes());
  std::fill(block.begin(), block.end(), std::byte{0});
  TierHeader header;
  EXPECT_EQ(ProveTierHeader(block, &header), TierHeaderProof::kEmpty);
}

TEST(TierFormatTest, ListGivesItsEntriesOrNothing) {
  // As many as need a second block for the end.
  std::vector<TierListEntry> entries(170);
  for (uint64_t i = 0; i < entries.size(); ++i) entries[i] = {i, i + 1, i * 64};
  std::vector<std::byte> bytes(TierListBytes(entries.size()));
  ASSERT_EQ(bytes.size(), 2 * kTierBlockBytes);
  EncodeTierList(kTier, 3, entries, bytes);
  const auto last = std::span<const std::byte>(bytes).last<kTierBlockBytes>();
  EXPECT_FALSE(TierListEntries(last, kTier + 1, 3, bytes.size()));
  EXPECT_FALSE(TierListEntries(last, kTier, 4, bytes.size()));
  EXPECT_FALSE(TierListEntries(last, kTier, 3, kTierBlockBytes));
  const std::optional<uint32_t> count = TierListEntries(last, kTier, 3, bytes.size());
  ASSERT_EQ(count, entries.size());
  const auto decoded = DecodeTierList(bytes, *count);
  ASSERT_TRUE(decoded);
  ASSERT_EQ(decoded->size(), entries.size());
  EXPECT_EQ(decoded->back().position, 169u * 64);
  bytes[5] ^= std::byte{1};
  EXPECT_FALSE(DecodeTierList(bytes, *count));
}

}  // namespace
}  // namespace gannet
