#include "common/layout/item.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common/base/align.h"

namespace gannet {
namespace {

constexpr uint64_t kIncarnation = 77;
constexpr uint64_t kOffset = 4096;

using Copy = std::vector<std::byte>;

struct Content {
  uint64_t version;
  std::string key;
  std::string value;
  uint32_t flags = 3;
  uint64_t expiry_ms = 9;
};

// The bytes of a live item, in a block of `block_bytes`.
Copy Live(const Content& content, size_t block_bytes) {
  Copy copy(block_bytes);
  ItemHeader header{};
  header.version = content.version;
  header.value_bytes = content.value.size();
  header.flags = content.flags;
  header.SetExpiryAndKeyBytes(content.expiry_ms, content.key.size());
  std::memcpy(copy.data(), &header, sizeof(header));
  const std::string body = content.key + content.value;
  std::memcpy(copy.data() + sizeof(header), body.data(), body.size());
  const auto rest = std::span(copy).first(sizeof(header) + body.size()).subspan(8);
  const uint64_t commit = LiveCommitWord(rest, kIncarnation, kOffset);
  std::memcpy(copy.data(), &commit, sizeof(commit));
  return copy;
}

ItemProof Prove(const Copy& copy, std::string_view key) {
  ItemView view;
  return ProveItem(copy, kIncarnation, kOffset, key, &view);
}

TEST(ItemTest, ALiveItemProvesItself) {
  const Copy copy = Live({1, "key", "value"}, 48);
  ItemView view;
  ASSERT_EQ(ProveItem(copy, kIncarnation, kOffset, "key", &view), ItemProof::kThisKey);
  EXPECT_EQ(view.key, "key");
  EXPECT_EQ(view.value, "value");
  EXPECT_EQ(view.header.version, 1u);
  EXPECT_EQ(view.header.flags, 3u);
  EXPECT_EQ(view.header.expiry_ms(), 9u);
}

TEST(ItemTest, EmptyAndLongestKeysAndValues) {
  for (size_t key_bytes : {1, 250}) {
    for (size_t value_bytes : {0, 1, 1 << 20}) {
      const Content content{1, std::string(key_bytes, 'k'), std::string(value_bytes, 'v')};
      EXPECT_EQ(Prove(Live(content, ItemBytes(key_bytes, value_bytes)), content.key),
                ItemProof::kThisKey);
    }
  }
}

TEST(ItemTest, AnotherKeysItemIsNotThisKeys) {
  const Copy copy = Live({1, "key", "value"}, 48);
  EXPECT_EQ(Prove(copy, "kez"), ItemProof::kOtherKey);
  EXPECT_EQ(Prove(copy, "ke"), ItemProof::kOtherKey);
  EXPECT_EQ(Prove(copy, "keyv"), ItemProof::kOtherKey);  // key and value are told apart
}

TEST(ItemTest, ADeadItemIsDeadWhateverFollows) {
  Copy copy = Live({1, "key", "value"}, 48);
  copy[7] &= std::byte{0x7f};
  EXPECT_EQ(Prove(copy, "key"), ItemProof::kDead);
  std::fill(copy.begin(), copy.end(), std::byte{0});
  EXPECT_EQ(Prove(copy, "key"), ItemProof::kDead);
}

TEST(ItemTest, BelongsToItsPlaceAndServerRun) {
  const Copy copy = Live({1, "key", "value"}, 48);
  ItemView view;
  EXPECT_EQ(ProveItem(copy, kIncarnation, kOffset + 16, "key", &view), ItemProof::kTorn);
  EXPECT_EQ(ProveItem(copy, kIncarnation + 1, kOffset, "key", &view), ItemProof::kTorn);
}

// Every set of words from the one and the other version that is not wholly one of them, torn at
// every 8-byte boundary: from the front, from the back, and single words.
TEST(ItemTest, RejectsValueTornAcrossUpdate) {
  for (size_t value_bytes : {5, 64, 65, 1000}) {
    const Content before{1, "key", std::string(value_bytes, 'a')};
    const Content after{2, "key", std::string(value_bytes, 'b')};
    const size_t bytes = AlignUp(ItemBytes(3, value_bytes), 8);
    const Copy old_copy = Live(before, bytes), new_copy = Live(after, bytes);
    for (size_t at = 8; at < bytes; at += 8) {
      Copy copy = old_copy;
      std::copy(new_copy.begin() + at, new_copy.end(), copy.begin() + at);
      EXPECT_EQ(Prove(copy, "key"), ItemProof::kTorn) << "new from " << at;
      copy = new_copy;
      std::copy(old_copy.begin() + at, old_copy.end(), copy.begin() + at);
      EXPECT_EQ(Prove(copy, "key"), ItemProof::kTorn) << "old from " << at;
    }
    for (size_t at = 0; at < bytes; at += 8) {
      Copy copy = old_copy;
      std::copy_n(new_copy.begin() + at, 8, copy.begin() + at);
      if (copy == old_copy) continue;  // a word that both share
      EXPECT_EQ(Prove(copy, "key"), ItemProof::kTorn) << "one new word at " << at;
    }
  }
}

TEST(ItemTest, TwoVersionsOfOneValueAreNotMixed) {
  // Only the version differs: an ABA of the value must not pass either.
  const Copy a = Live({1, "key", "same"}, 40), b = Live({2, "key", "same"}, 40);
  Copy copy = a;
  std::copy_n(b.begin(), 8, copy.begin());
  EXPECT_EQ(Prove(copy, "key"), ItemProof::kTorn);
}

TEST(ItemTest, HostileLengthsAreBoundedByTheCopy) {
  Copy copy = Live({1, "key", "value"}, 48);
  for (uint32_t value_bytes : {14u, 1000u, 0x7fffffffu, 0xfffffff0u, 0xffffffffu}) {
    std::memcpy(copy.data() + offsetof(ItemHeader, value_bytes), &value_bytes, 4);
    EXPECT_EQ(Prove(copy, "key"), ItemProof::kTorn) << value_bytes;
  }
  copy = Live({1, "key", "value"}, 48);
  for (uint16_t key_bytes : {17, 250, 0x7fff, 0xffff}) {
    std::memcpy(copy.data() + offsetof(ItemHeader, expiry_and_key), &key_bytes, 2);
    EXPECT_EQ(Prove(copy, "key"), ItemProof::kTorn) << key_bytes;
  }
}

TEST(ItemTest, ShortCopiesAreTorn) {
  const Copy copy = Live({1, "key", "value"}, 40);
  for (size_t n = 0; n < copy.size(); ++n) {
    EXPECT_EQ(Prove(Copy(copy.begin(), copy.begin() + n), "key"), ItemProof::kTorn) << n;
  }
}

TEST(ItemTest, RandomBytesNeverProveAnything) {
  constexpr uint32_t kSeed = 3;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  for (int i = 0; i < 100'000; ++i) {
    Copy copy(random() % 128);
    std::generate(copy.begin(), copy.end(), [&] { return static_cast<std::byte>(random()); });
    const ItemProof proof = Prove(copy, "key");
    EXPECT_TRUE(proof == ItemProof::kDead || proof == ItemProof::kTorn);
  }
}

}  // namespace
}  // namespace gannet
