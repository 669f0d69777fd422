#include "server/main/control/byte_size.h"

#include "gtest/gtest.h"

namespace gannet {
namespace {

TEST(ByteSizeTest, ReadsSizesAsUsersWriteThem) {
  EXPECT_EQ(*ParseByteSize("0"), 0u);
  EXPECT_EQ(*ParseByteSize("4096"), 4096u);
  EXPECT_EQ(*ParseByteSize("64K"), 64u << 10);
  EXPECT_EQ(*ParseByteSize("512m"), 512u << 20);
  EXPECT_EQ(*ParseByteSize("3G"), 3ull << 30);
  EXPECT_EQ(*ParseByteSize("3GiB"), 3ull << 30);
  EXPECT_EQ(*ParseByteSize("3gb"), 3ull << 30);
  EXPECT_EQ(*ParseByteSize("2T"), 2ull << 40);
}

TEST(ByteSizeTest, RefusesWhatIsNotASize) {
  for (const char* text : {"", "G", "-1", "1x", "1Gx", "1 G", "1.5G", "99999999999999999999",
                           "16777216T", "0x10", "1KK", "1ib"}) {
    EXPECT_FALSE(ParseByteSize(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gannet
