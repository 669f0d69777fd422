#include "tools/kvload/value.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gannet::kvload {
namespace {

std::vector<std::byte> Made(std::string_view key, uint64_t sequence, size_t size) {
  const ValueMaker maker(1 << 20, 1);
  std::vector<std::byte> value(size);
  maker.Make(key, sequence, value);
  return value;
}

TEST(ValueTest, OwnValuesAreRightInAllSizes) {
  for (const size_t size : {24, 25, 31, 32, 100, 1024, 4096}) {
    EXPECT_EQ(VerifyValue("key", Made("key", 3, size)), ValueVerdict::kRight) << size;
  }
}

TEST(ValueTest, LongValuesAreCheckedByTheirHeaderAndSampledWords) {
  for (const size_t size : {4001, 4096, 65'536, 1 << 20}) {
    std::vector<std::byte> value = Made("key", 3, size);
    EXPECT_EQ(VerifyValue("key", value), ValueVerdict::kRight) << size;
    const std::vector<std::byte> other = Made("key", 4, size);
    for (const size_t from : {size_t{8}, size / 2, size - 8}) {
      std::vector<std::byte> torn(value);
      std::copy(other.begin() + static_cast<std::ptrdiff_t>(from), other.end(),
                torn.begin() + static_cast<std::ptrdiff_t>(from));
      EXPECT_EQ(VerifyValue("key", torn), ValueVerdict::kChecksum) << size << ", from " << from;
    }
    value.resize(size - 8);
    EXPECT_EQ(VerifyValue("key", value), ValueVerdict::kChecksum) << size;
  }
}

TEST(ValueTest, AnyFlippedBitIsDetected) {
  std::vector<std::byte> value = Made("key", 3, 64);
  for (size_t i = 0; i < value.size() * 8; ++i) {
    value[i / 8] ^= std::byte{1} << (i % 8);
    EXPECT_EQ(VerifyValue("key", value), ValueVerdict::kChecksum) << "bit " << i;
    value[i / 8] ^= std::byte{1} << (i % 8);
  }
}

TEST(ValueTest, ValueOfAnotherKeyIsDetected) {
  EXPECT_EQ(VerifyValue("key2", Made("key1", 3, 64)), ValueVerdict::kOtherKey);
}

TEST(ValueTest, TornBetweenTwoWritesIsDetected) {
  const std::vector<std::byte> old_value = Made("key", 3, 256);
  const std::vector<std::byte> new_value = Made("key", 4, 256);
  for (size_t cut = 8; cut < 256; cut += 8) {
    std::vector<std::byte> torn(old_value);
    std::copy(new_value.begin(), new_value.begin() + static_cast<std::ptrdiff_t>(cut),
              torn.begin());
    EXPECT_EQ(VerifyValue("key", torn), ValueVerdict::kChecksum) << "cut at " << cut;
  }
}

TEST(ValueTest, WrongLengthIsDetected) {
  std::vector<std::byte> value = Made("key", 3, 64);
  value.resize(56);
  EXPECT_EQ(VerifyValue("key", value), ValueVerdict::kChecksum);
  value.resize(80);
  EXPECT_EQ(VerifyValue("key", value), ValueVerdict::kChecksum);
  value.resize(23);
  EXPECT_EQ(VerifyValue("key", value), ValueVerdict::kTooShort);
  EXPECT_EQ(VerifyValue("key", {}), ValueVerdict::kTooShort);
}

TEST(ValueTest, ZeroesAreNotAValue) {
  EXPECT_EQ(VerifyValue("key", std::vector<std::byte>(64)), ValueVerdict::kChecksum);
}

TEST(ValueTest, WritesOfOneKeyDiffer) { EXPECT_NE(Made("key", 3, 64), Made("key", 4, 64)); }

TEST(ValueTest, UnverifiedValuesMayBeOfAnySize) {
  const ValueMaker maker(64, 1);
  std::vector<std::byte> value(8);
  maker.MakeUnverified(1, value);
  EXPECT_NE(value, std::vector<std::byte>(8));
  maker.MakeUnverified(1, {});
}

}  // namespace
}  // namespace gannet::kvload
