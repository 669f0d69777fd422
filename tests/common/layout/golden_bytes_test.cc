// The exact bytes of everything that clients READ. Whoever changes something here changes the
// layout, and must also raise kLayoutVersion and update docs/memory-layout.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "common/layout/item_lease_header.h"
#include "common/layout/item_proof.h"
#include "common/layout/large_proof.h"
#include "common/layout/lock_word.h"
#include "common/layout/superblock.h"
#include "common/layout/version.h"

namespace gannet {
namespace {

using Bytes = std::vector<uint8_t>;

template <class T>
Bytes BytesOf(const T& value) {
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

TEST(GoldenBytesTest, Superblock) {
  Superblock s{};
  s.magic = kSuperblockMagic;
  s.layout_version = 3;
  s.struct_bytes = sizeof(s);
  s.incarnation = 0x1122334455667788;
  s.region_bytes = 1 << 30;
  s.hash_seed = 0x99aabbccddeeff00;
  s.heap_offset = 0x400000;
  s.index = GeometryForSlots(1000, 4096, 1);
  s.next_index = {2, 1 << 20, 0x8b, 2};
  s.checksum = SuperblockChecksum(s);
  const Bytes golden = {
      'G',  'N',  'E',  'T',  'B',  'L',  'K',  '1',   // magic
      3,    0,    0,    0,                             // layout version
      120,  0,    0,    0,                             // bytes of the struct
      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // incarnation
      0,    0,    0,    0x40, 0,    0,    0,    0,     // region bytes
      0,    0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99,  // hash seed
      0,    0,    0x40, 0,    0,    0,    0,    0,     // heap offset
      1,    0,    0,    0,    0,    0,    0,    0,     // index: generation
      0,    0x10, 0,    0,    0,    0,    0,    0,     // offset
      0x45, 0,    0,    0,    0,    0,    0,    0,     // homes
      1,    0,    0,    0,    0,    0,    0,    0,     // stash homes
      2,    0,    0,    0,    0,    0,    0,    0,     // next index: generation
      0,    0,    0x10, 0,    0,    0,    0,    0,     // offset
      0x8b, 0,    0,    0,    0,    0,    0,    0,     // homes
      2,    0,    0,    0,    0,    0,    0,    0,     // stash homes
      0x74, 0x20, 0x0e, 0x0d, 0x77, 0x85, 0x7e, 0x0b,  // checksum
  };
  EXPECT_EQ(BytesOf(s), golden);
  EXPECT_TRUE(SuperblockValid(s));
}

TEST(GoldenBytesTest, Bucket) {
  Bucket b{};
  b.meta = BucketMeta()
               .WithNextVersion()
               .WithMovesNextBumped()
               .WithMovesPrevBumped()
               .WithMovesPrevBumped()
               .WithStashTags(0x41)
               .WithMigrated()
               .word();
  b.slots[0] = Slot::Of(0xabcde, 0x15, 0x123450).word();
  b.slots[13] = Slot::Of(1, 1, 16).word();
  b.checksum = BucketChecksum(b, BucketSeed(/*incarnation=*/7, /*generation=*/1, /*number=*/5));
  Bytes golden = {
      0xd2, 0x4f, 0x1d, 0x6d, 0x27, 0x43, 0x46, 0xa7,  // checksum
      1,    0,    0,                                   // version
      1,    0,                                         // moves with the next bucket
      2,    0,                                         // moves with the previous bucket
      0xc1,                                            // stash tags, migrated
      0x45, 0x23, 0x01, 0x00, 0xa0, 0xe2, 0xcd, 0xab,  // slot 0
  };
  golden.resize(120);
  golden.insert(golden.end(), {1, 0, 0, 0, 0x20, 0x10, 0, 0});  // slot 13
  EXPECT_EQ(BytesOf(b), golden);
}

TEST(GoldenBytesTest, Item) {
  std::vector<std::byte> item(40);
  ItemHeader header{};
  header.version = 0x0102030405060708;
  header.value_bytes = 5;
  header.flags = 0xa1b2c3d4;
  header.SetExpiryAndKeyBytes(Expiry::FromMs(0x18bcfe56800), 3);
  std::memcpy(item.data(), &header, sizeof(header));
  std::memcpy(item.data() + 32, "valuekey", 8);
  constexpr ItemPlace kPlace = {
      .incarnation = 0x1122334455667788, .hash_seed = 42, .offset = 0x400010};
  const ItemSeal seal(KeyHash::Of("key", kPlace.hash_seed), kPlace);
  header.commit = LiveCommitWord(item.data(), 5, seal);
  const Bytes golden = {
      0xab, 0xf0, 0x25, 0x28, 0x1a, 0x8d, 0x6d, 0xf4,  // commit: live, checksum
      8,    7,    6,    5,    4,    3,    2,    1,     // version
      5,    0,    0,    0,                             // value bytes
      0xd4, 0xc3, 0xb2, 0xa1,                          // flags
      3,    0,                                         // key bytes
      0x00, 0x68, 0xe5, 0xcf, 0x8b, 0x01,              // expiry
  };
  EXPECT_EQ(BytesOf(header), golden);
}

TEST(GoldenBytesTest, LargeItemHeader) {
  LargeItemHeader header{};
  header.item.version = 0x0102030405060708;
  header.item.value_bytes = 1 << 20;
  header.item.flags = 0xa1b2c3d4;
  header.item.SetExpiryAndKeyBytes(Expiry::FromMs(0x18bcfe56800), 3);
  header.placing = 0x1112131415161718;
  constexpr ItemPlace kPlace = {
      .incarnation = 0x1122334455667788, .hash_seed = 42, .offset = 0x400010};
  const ItemSeal seal(KeyHash::Of("key", kPlace.hash_seed), kPlace);
  header.item.commit = LiveCommitWordOf(header, seal);
  const Bytes golden = {
      0x81, 0xc0, 0xdc, 0xd3, 0x4d, 0x18, 0xe8, 0x92,  // commit: live, checksum of what follows
      8,    7,    6,    5,    4,    3,    2,    1,     // version
      0,    0,    0x10, 0,                             // value bytes
      0xd4, 0xc3, 0xb2, 0xa1,                          // flags
      3,    0,                                         // key bytes
      0x00, 0x68, 0xe5, 0xcf, 0x8b, 0x01,              // expiry
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  // placing
  };
  EXPECT_EQ(BytesOf(header), golden);
  EXPECT_EQ(ValueOffset(3, 1 << 20), 64u);
  EXPECT_EQ(ValueOffset(250, 1 << 20), 320u);
  EXPECT_EQ(ValueOffset(3, 4061), 32u) << "sealed: 4,096 bytes in all";
  EXPECT_EQ(ValueOffset(3, 4062), 64u);
}

TEST(GoldenBytesTest, Slot) {
  const Slot slot = Slot::Of(0xabcde, 0x15, 0x123450);
  EXPECT_EQ(slot.word(), 0xabcde2a000012345u);
  EXPECT_EQ(slot.tag(), 0xabcdeu);
  EXPECT_EQ(slot.size_class(), 0x15u);
  EXPECT_EQ(slot.offset(), 0x123450u);
  const Slot last = Slot::Of(0xfffff, 127, kRegionBytesMax - 16);
  EXPECT_EQ(last.word(), ~0ull);
  EXPECT_EQ(last.offset(), kRegionBytesMax - 16);
  EXPECT_EQ(last.read_bytes(), 0u);  // a class that does not exist
}

TEST(GoldenBytesTest, ItemLeaseHeader) {
  constexpr uint64_t kIncarnation = 0x1122334455667788;
  ItemLeaseHeader header{};
  header.generation = 0x0102030405060708;
  header.end_ms = 0x18bcfe56814;
  header.checksum = ItemLeaseChecksum(header, kIncarnation);
  const Bytes golden = {
      0xa6, 0x02, 0x58, 0x75, 0xf6, 0x68, 0xe4, 0x18,  // checksum
      8,    7,    6,    5,    4,    3,    2,    1,     // generation
      0x14, 0x68, 0xe5, 0xcf, 0x8b, 0x01, 0,    0,     // end
      0,    0,    0,    0,    0,    0,    0,    0,     // reserved
      0,    0,    0,    0,    0,    0,    0,    0,     //
      0,    0,    0,    0,    0,    0,    0,    0,     //
      0,    0,    0,    0,    0,    0,    0,    0,     //
      0,    0,    0,    0,    0,    0,    0,    0,     //
  };
  EXPECT_EQ(BytesOf(header), golden);
  EXPECT_TRUE(ItemLeaseValid(header, kIncarnation));
  EXPECT_FALSE(ItemLeaseValid(header, kIncarnation + 1)) << "of another run";
  ++header.end_ms;
  EXPECT_FALSE(ItemLeaseValid(header, kIncarnation)) << "one that was torn";
  EXPECT_FALSE(ItemLeaseValid(ItemLeaseHeader{}, kIncarnation)) << "memory that nobody wrote";
  EXPECT_EQ(ItemLeaseBytes(1024), 64u + 8192u);
}

// A server that starts at 2026-06-01T12:00:00.123456789Z.
TEST(GoldenBytesTest, FirstVersion) {
  const uint64_t version = FirstVersionAt(1'780'315'200'123'456'789).value();
  EXPECT_EQ(version, 0x05d01d80b389a2a0u);
  EXPECT_EQ(version >> 44, 0x05d01u);  // the epoch
}

TEST(GoldenBytesTest, LockWord) {
  const LockWord word = LockWord::Of(0xdeadbeef, 0x12345, 0x678);
  EXPECT_EQ(word.word(), 0xdeadbeef12345678u);
  EXPECT_EQ(word.connection_id(), 0xdeadbeefu);
  EXPECT_EQ(word.count(), 0x12345u);
  EXPECT_EQ(word.key_tag(), 0x678u);
  EXPECT_TRUE(LockWord().free());
}

TEST(GoldenBytesTest, KeyHash) {
  const KeyHash hash = KeyHash::Of("key", 42);
  EXPECT_EQ(hash.value(), 0x67197794b225585eu);
  EXPECT_EQ(hash.Home(1000), 402u);
  EXPECT_EQ(hash.StashHome(20), 14u);
  EXPECT_EQ(hash.Tag(), 0x5585eu);
  EXPECT_EQ(hash.StashTag(), 0x10u);
  EXPECT_EQ(hash.LockIndex(65536), 22622u);
  EXPECT_EQ(hash.LockTag(), 0x794u);
}

}  // namespace
}  // namespace gannet
