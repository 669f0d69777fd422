#include "common/layout/stub.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/layout/key_hash.h"

namespace gannet {
namespace {

constexpr ItemPlace kStubsPlace = {.incarnation = 77, .hash_seed = 42, .offset = 4096};
constexpr StubValue kStub = {.kind = StubValue::kOnDisk,
                             .reserved = {},
                             .value_bytes = 0x10000,
                             .tier = 0x55667788,
                             .lap = 7,
                             .position = 0x4000140,
                             .version = 0x0102030405060708};

std::string_view BytesOfStub(const StubValue& stub) {
  return {reinterpret_cast<const char*>(&stub), sizeof(stub)};
}

// Returns an item of "key" with the value, sealed for `place`.
std::vector<std::byte> Sealed(std::string_view value, const ItemPlace& place) {
  constexpr std::string_view kKey = "key";
  std::vector<std::byte> bytes(SealedItemBytes(kKey.size(), value.size()));
  ItemHeader header{};
  header.version = 9;
  header.value_bytes = value.size();
  header.SetExpiryAndKeyBytes(Expiry(), kKey.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), value.data(), value.size());
  std::memcpy(bytes.data() + sizeof(header) + value.size(), kKey.data(), kKey.size());
  const KeyHash hash = KeyHash::Of(kKey, place.hash_seed);
  const uint64_t commit = LiveCommitWord(bytes.data(), header.value_bytes, ItemSeal(hash, place));
  std::memcpy(bytes.data(), &commit, sizeof(commit));
  return bytes;
}

ItemProof Prove(const std::vector<std::byte>& copy, const ItemPlace& place, ItemView* view) {
  return ProveItem(copy, place, "key", KeyHash::Of("key", place.hash_seed), view);
}

TEST(StubTest, HasTheseBytes) {
  const std::array<unsigned char, sizeof(StubValue)> golden = {
      1,    0,    0,    0,                             // kind
      0,    0,    1,    0,                             // value bytes
      0x88, 0x77, 0x66, 0x55,                          // tier
      7,    0,    0,    0,                             // lap
      0x40, 0x01, 0x00, 0x04, 0,    0,    0,    0,     // position
      0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,  // version
  };
  EXPECT_EQ(std::memcmp(&kStub, golden.data(), golden.size()), 0);
  EXPECT_EQ(StubBytes(16), 80u);
}

TEST(StubTest, ProvesItselfAndSaysWhereTheValueIs) {
  const auto copy = Sealed(BytesOfStub(kStub), StubPlace(kStubsPlace));
  ItemView view;
  ASSERT_EQ(Prove(copy, StubPlace(kStubsPlace), &view), ItemProof::kThisKey);
  EXPECT_EQ(view.header.version, 9u);
  const auto stub = DecodeStub(view.value);
  ASSERT_TRUE(stub);
  EXPECT_EQ(BytesOfStub(*stub), BytesOfStub(kStub));
}

TEST(StubTest, ProvesNoItem) {
  const auto copy = Sealed(BytesOfStub(kStub), StubPlace(kStubsPlace));
  ItemView view;
  EXPECT_EQ(Prove(copy, kStubsPlace, &view), ItemProof::kTorn);
}

// Even if the key's value has the bytes of a stub.
TEST(StubTest, IsProvedByNoItem) {
  const auto copy = Sealed(BytesOfStub(kStub), kStubsPlace);
  ItemView view;
  EXPECT_EQ(Prove(copy, StubPlace(kStubsPlace), &view), ItemProof::kTorn);
}

TEST(StubTest, AnotherKindSaysNothing) {
  StubValue other = kStub;
  other.kind = 2;
  EXPECT_FALSE(DecodeStub(BytesOfStub(other)));
  other = kStub;
  other.reserved[2] = 1;
  EXPECT_FALSE(DecodeStub(BytesOfStub(other)));
  EXPECT_FALSE(DecodeStub("short"));
}

}  // namespace
}  // namespace gannet
