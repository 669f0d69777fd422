#include "common/protocol/partition_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace gannet {
namespace {

PartitionMap SomeMap() {
  PartitionMap map = {.groups = {{.name = "g1", .addresses = {"10.0.0.1:7471", "h:1"}},
                                 {.name = "g2", .addresses = {}}},
                      .partitions = std::vector<uint16_t>(kPartitions)};
  map.partitions[1] = 1;
  map.partitions[1023] = 1;
  return map;
}

PartitionMap ChangedMap() {
  PartitionMap map = SomeMap();
  map.revision = 0x0102030405060708;
  map.changed.resize(kPartitions);
  map.closed.resize(kPartitions);
  map.changed[1023] = 0x0102030405060707;
  map.closed[1023] = true;
  return map;
}

// Gives changed bytes the checksum that a liar would give them.
std::string Sealed(std::string bytes) {
  const uint64_t checksum =
      Xxh3Unseeded(bytes.data() + sizeof(uint64_t), bytes.size() - sizeof(uint64_t));
  std::memcpy(bytes.data(), &checksum, sizeof(checksum));
  return bytes;
}

std::string With(std::string bytes, size_t offset, char byte) {
  bytes.at(offset) = byte;
  return bytes;
}

// Every client and server must find the same partition, for ever.
TEST(PartitionMapTest, PartitionsOfKeysDoNotChange) {
  EXPECT_EQ(PartitionOf(""), 0x2d06800538d394c2u >> 54);  // XXH3's published hash of nothing
  std::vector<int> keys(kPartitions);
  for (int i = 0; i < 100'000; ++i) {
    const uint32_t partition = PartitionOf(absl::StrCat("key", i));
    ASSERT_LT(partition, kPartitions);
    ++keys[partition];
  }
  // 98 on average.
  EXPECT_THAT(keys, testing::Each(testing::AllOf(testing::Ge(40), testing::Le(180))));
}

TEST(PartitionMapTest, ComesBackAsItWasEncoded) {
  const PartitionMap map = SomeMap();
  EXPECT_EQ(DecodePartitionMap(EncodePartitionMap(map)), map);
  EXPECT_EQ(DecodePartitionMap(EncodePartitionMap(ChangedMap())), ChangedMap());
}

TEST(PartitionMapTest, HasTheseBytes) {
  const std::string bytes = EncodePartitionMap(SomeMap());
  ASSERT_EQ(bytes.size(), 24 + 2048 + 22u + 4u);
  EXPECT_EQ(bytes.substr(8, 8), std::string(8, '\0'));
  EXPECT_EQ(bytes.substr(16, 8), std::string("\x32\x08\0\0\x02\0\0\0", 8));
  EXPECT_EQ(bytes.substr(24, 6), std::string("\0\0\x01\0\0\0", 6));
  EXPECT_EQ(bytes.substr(24 + 2046, 2), std::string("\x01\0", 2));
  EXPECT_EQ(bytes.substr(24 + 2048), std::string("\x02g1\x02\x0d"
                                                 "10.0.0.1:7471\x03h:1"
                                                 "\x02g2\0",
                                                 26));
  EXPECT_EQ(Sealed(bytes), bytes);
}

TEST(PartitionMapTest, ChangesHaveTheseBytes) {
  const std::string bytes = EncodePartitionMap(ChangedMap());
  ASSERT_EQ(bytes.size(), 24 + 2048 + 8192 + 22u + 4u);
  EXPECT_EQ(bytes.substr(8, 8), std::string("\x08\x07\x06\x05\x04\x03\x02\x01", 8));
  EXPECT_EQ(bytes.substr(16, 8), std::string("\x32\x28\0\0\x02\0\x01\0", 8));
  EXPECT_EQ(bytes.substr(24, 4), std::string("\0\0\x01\0", 4));
  EXPECT_EQ(bytes.substr(24 + 2046, 2), std::string("\x01\x80", 2)) << "closed";
  EXPECT_EQ(bytes.substr(24 + 2048 + 8184, 8), std::string("\x07\x07\x06\x05\x04\x03\x02\x01", 8));
  EXPECT_EQ(bytes.substr(24 + 2048 + 8192, 3), std::string("\x02g1"));
}

TEST(PartitionMapTest, RefusesChangesThatCannotBe) {
  const std::string bytes = EncodePartitionMap(ChangedMap());
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, 22, 2))));
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, 22, 0)))) << "no changes";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, 24, 2)))) << "a partition of no group";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, 24 + 2048 + 8184, 9)))) << "a later change";
  std::string before = bytes;
  before.replace(8, 8, 8, '\0');
  EXPECT_FALSE(DecodePartitionMap(Sealed(before))) << "changes before the first revision";
  for (size_t size = 24; size < bytes.size(); size += 97) {
    EXPECT_FALSE(DecodePartitionMap(Sealed(bytes.substr(0, size)))) << size;
  }
}

TEST(PartitionMapTest, PiecesOfTwoMapsAreNone) {
  const std::string old = EncodePartitionMap(SomeMap());
  PartitionMap map = SomeMap();
  map.partitions[512] = 1;
  const std::string newer = EncodePartitionMap(map);
  EXPECT_FALSE(DecodePartitionMap(old.substr(0, 100) + newer.substr(100)));
}

TEST(PartitionMapTest, RefusesWhatCannotBe) {
  const std::string bytes = EncodePartitionMap(SomeMap());
  EXPECT_FALSE(DecodePartitionMap(""));
  for (size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_FALSE(DecodePartitionMap(bytes.substr(0, size))) << size;
    if (size > sizeof(PartitionMapStart)) {
      EXPECT_FALSE(DecodePartitionMap(Sealed(bytes.substr(0, size)))) << size;
    }
  }
  EXPECT_FALSE(DecodePartitionMap(Sealed(bytes + "x")));
  const size_t groups = 24 + 2048;
  EXPECT_TRUE(DecodePartitionMap(Sealed(With(bytes, groups + 1, 'G'))));
  EXPECT_FALSE(DecodePartitionMap(With(bytes, groups + 1, 'G'))) << "the checksum";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, 20, 0)))) << "no groups";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, 21, 5)))) << "too many groups";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, 22, 1)))) << "reserved";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, 24, 2)))) << "a partition of no group";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, groups, 0)))) << "no name";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, groups, 127)))) << "a name beyond the end";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, groups + 3, 17)))) << "too many members";
  EXPECT_FALSE(DecodePartitionMap(Sealed(With(bytes, groups + 4, 0)))) << "no address";
}

}  // namespace
}  // namespace gannet
