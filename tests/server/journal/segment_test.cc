#include "server/journal/segment.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/hex.h"

namespace gannet {
namespace {

// docs/durability.md has the same fields.
TEST(SegmentTest, HeaderHasGoldenBytes) {
  const std::string hex = test_support::Hex(EncodeSegmentHeader(0x1122334455667788, 0x4000));
  EXPECT_EQ(hex.substr(0, 64),
            "474e45544a524e4c"
            "0100000040000000"
            "8877665544332211"
            "0040000000000000");
  EXPECT_EQ(hex.substr(80), std::string(48, '0'));
  EXPECT_EQ(SegmentName(0x4000), "journal-0000000000004000");
}

}  // namespace
}  // namespace gannet
