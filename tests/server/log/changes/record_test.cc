#include "server/log/changes/record.h"

#include <cstring>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "gtest/gtest.h"
#include "tests/support/hex.h"

namespace gannet {
namespace {

constexpr uint64_t kJournal = 0x1122334455667788;
constexpr uint64_t kPosition = 0x4000;
constexpr uint64_t kSynced = 0x3f80;

Change SomeChange() {
  return {.kind = Change::Kind::kPut,
          .version = 0x0102030405060708,
          .expiry = Expiry::FromMs(0x018bcfe56800),
          .flags = 0xa1b2c3d4,
          .key = "key",
          .value = "value",
          .session_token = 0x5152535455565758,
          .sequence = 9,
          .number = 10,
          .opcode = 2};
}

std::vector<std::byte> Encoded(const Change& change) {
  std::vector<std::byte> bytes(RecordBytes(change.key.size(), change.value.size()));
  EncodeRecord(change, kJournal, kPosition, kSynced, bytes);
  return bytes;
}

TEST(RecordTest, ComesBackAsItWasRecorded) {
  Change deletion = SomeChange();
  deletion.kind = Change::Kind::kDelete;
  deletion.value = "";
  const std::string long_value(100'000, 'v');
  Change large = SomeChange();
  large.value = long_value;
  for (const Change& change : {SomeChange(), deletion, large}) {
    const std::vector<std::byte> bytes = Encoded(change);
    ASSERT_EQ(LengthOfRecord(bytes), bytes.size());
    const auto view = DecodeRecord(bytes, kJournal, kPosition);
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(view->change, change);
    EXPECT_EQ(view->synced, kSynced);
  }
}

// docs/durability-formats.md has the same bytes.
TEST(RecordTest, HasTheseBytes) {
  const std::string hex = test_support::Hex(Encoded(SomeChange()));
  EXPECT_EQ(hex.substr(16),
            "5000000001020300"
            "0807060504030201"
            "0068e5cf8b010000"
            "d4c3b2a105000000"
            "5857565554535251"
            "0900000000000000"
            "0a00000000000000"
            "803f000000000000"
            "6b657976616c7565");
  EXPECT_EQ(hex.substr(0, 16), "740019394a8ca5c1");
}

TEST(RecordTest, IsRefusedIfAnyBitIsWrong) {
  const std::vector<std::byte> good = Encoded(SomeChange());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(DecodeRecord(bad, kJournal, kPosition).has_value()) << "bit " << bit;
  }
}

TEST(RecordTest, IsRefusedElsewhere) {
  const std::vector<std::byte> bytes = Encoded(SomeChange());
  EXPECT_FALSE(DecodeRecord(bytes, kJournal + 1, kPosition).has_value());
  EXPECT_FALSE(DecodeRecord(bytes, kJournal, kPosition + 8).has_value());
  EXPECT_FALSE(DecodeRecord(std::span(bytes).first(bytes.size() - 8), kJournal, kPosition));
  EXPECT_FALSE(DecodeRecord({}, kJournal, kPosition));
}

// Found by the fuzzer, which solves the checksum. Nobody encodes such bytes.
TEST(RecordTest, IsRefusedIfItsPaddingIsNotZero) {
  Change deletion = SomeChange();
  deletion.kind = Change::Kind::kDelete;
  deletion.value = "";
  std::vector<std::byte> bytes = Encoded(deletion);
  ASSERT_EQ(bytes.size(), sizeof(RecordHeader) + deletion.key.size() + 5);
  const auto seal = [&] {
    const uint64_t checksum = Xxh3(bytes.data() + sizeof(uint64_t), bytes.size() - sizeof(uint64_t),
                                   Mix64(kJournal ^ Mix64(kPosition)));
    std::memcpy(bytes.data(), &checksum, sizeof(checksum));
  };
  seal();
  EXPECT_TRUE(DecodeRecord(bytes, kJournal, kPosition).has_value());
  for (size_t at = bytes.size() - 5; at < bytes.size(); ++at) {
    bytes[at] = std::byte{1};
    seal();
    EXPECT_FALSE(DecodeRecord(bytes, kJournal, kPosition).has_value()) << "byte " << at;
    bytes[at] = std::byte{0};
  }
}

TEST(RecordTest, ZerosAreNoRecord) {
  const std::vector<std::byte> zeros(sizeof(RecordHeader));
  EXPECT_FALSE(LengthOfRecord(zeros).has_value());
}

}  // namespace
}  // namespace gannet
