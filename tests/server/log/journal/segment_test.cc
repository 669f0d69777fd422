#include "server/log/journal/segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "tests/support/hex.h"

namespace gannet {
namespace {

// docs/durability-formats.md has the same fields.
TEST(SegmentTest, HeaderHasGoldenBytes) {
  const std::string hex =
      test_support::Hex(EncodeSegmentHeader(0x1122334455667788, 0x4000, 0x100040));
  EXPECT_EQ(hex.substr(0, 64),
            "474e45544a524e4c"
            "0100000040000000"
            "8877665544332211"
            "0040000000000000");
  EXPECT_EQ(hex.substr(80, 16), "4000100000000000");
  EXPECT_EQ(hex.substr(112), std::string(16, '0'));
  EXPECT_EQ(SegmentName(0x4000), "journal-0000000000004000");
}

TEST(SegmentTest, SaysHowLongItsFileWasMadeUnlessThatIsNotKnown) {
  auto header = EncodeSegmentHeader(1, 2, 3);
  EXPECT_EQ(FileBytesOf(header), 3u);
  header[offsetof(SegmentHeader, file_bytes)] ^= std::byte{1};
  EXPECT_EQ(FileBytesOf(header), std::nullopt);
  EXPECT_EQ(ProveSegment(header, 1, 2), SegmentProof::kOk) << "the rest does not depend on it";
  std::fill(header.begin() + offsetof(SegmentHeader, file_bytes), header.end(), std::byte{0});
  EXPECT_EQ(FileBytesOf(header), std::nullopt) << "as an earlier version wrote it";
}

}  // namespace
}  // namespace gannet
