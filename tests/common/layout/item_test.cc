#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common/base/align.h"
#include "common/layout/item_proof.h"

namespace gannet {
namespace {

constexpr ItemPlace kPlace = {.incarnation = 77, .hash_seed = 42, .offset = 4096};

using Copy = std::vector<std::byte>;

struct Content {
  uint64_t version;
  std::string key;
  std::string value;
  uint32_t flags = 3;
  uint64_t expiry_ms = 9;
};

KeyHash Hash(std::string_view key) { return KeyHash::Of(key, kPlace.hash_seed); }

// Returns the bytes of a live item in a block of `block_bytes`.
Copy Live(const Content& content, size_t block_bytes) {
  Copy copy(block_bytes);
  ItemHeader header{};
  header.version = content.version;
  header.value_bytes = content.value.size();
  header.flags = content.flags;
  header.SetExpiryAndKeyBytes(Expiry::FromMs(content.expiry_ms), content.key.size());
  std::memcpy(copy.data(), &header, sizeof(header));
  const std::string body = content.value + content.key;
  std::memcpy(copy.data() + sizeof(header), body.data(), body.size());
  const uint64_t commit =
      LiveCommitWord(copy.data(), header.value_bytes, ItemSeal(Hash(content.key), kPlace));
  std::memcpy(copy.data(), &commit, sizeof(commit));
  return copy;
}

ItemProof Prove(const Copy& copy, std::string_view key, const ItemPlace& place = kPlace) {
  ItemView view;
  return ProveItem(copy, place, key, Hash(key), &view);
}

TEST(ItemTest, ALiveItemProvesItself) {
  const Copy copy = Live({1, "key", "value"}, 48);
  ItemView view;
  ASSERT_EQ(ProveItem(copy, kPlace, "key", Hash("key"), &view), ItemProof::kThisKey);
  EXPECT_EQ(view.key, "key");
  EXPECT_EQ(view.value, "value");
  EXPECT_EQ(view.header.version, 1u);
  EXPECT_EQ(view.header.flags, 3u);
  EXPECT_EQ(view.header.expiry().ms(), 9u);
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
  EXPECT_EQ(Prove(copy, "ekey"), ItemProof::kOtherKey);  // value and key are told apart
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
  ItemPlace place = kPlace;
  place.offset += 16;
  EXPECT_EQ(Prove(copy, "key", place), ItemProof::kTorn);
  EXPECT_EQ(Prove(copy, "other key", place), ItemProof::kTorn);
  place = kPlace;
  ++place.incarnation;
  EXPECT_EQ(Prove(copy, "key", place), ItemProof::kTorn);
  EXPECT_EQ(Prove(copy, "other key", place), ItemProof::kTorn);
}

TEST(ItemTest, AKeyIsBelievedOnlyWithTheCommitWordOfItsHash) {
  const Copy whole = Live({1, "key", "value"}, 48);
  for (size_t i = 0; i < 3; ++i) {
    Copy copy = whole;
    copy[sizeof(ItemHeader) + 5 + i] ^= std::byte{1};
    EXPECT_EQ(Prove(copy, "key"), ItemProof::kTorn);
    const std::string seen(reinterpret_cast<const char*>(copy.data()) + sizeof(ItemHeader) + 5, 3);
    EXPECT_EQ(Prove(copy, seen), ItemProof::kTorn);
  }
}

// Checks every mixture of words from the two items in one block, torn at every 8-byte boundary:
// from the front, from the back, and single words.
void ExpectNoMixturePasses(const Content& before, const Content& after) {
  const size_t old_bytes = ItemBytes(before.key.size(), before.value.size());
  const size_t new_bytes = ItemBytes(after.key.size(), after.value.size());
  const size_t bytes = AlignUp(std::max(old_bytes, new_bytes), 8);
  const Copy old_copy = Live(before, bytes), new_copy = Live(after, bytes);
  const auto expect_torn = [&](const Copy& copy, const char* what, size_t at) {
    if (std::equal(copy.begin(), copy.begin() + old_bytes, old_copy.begin()) ||
        std::equal(copy.begin(), copy.begin() + new_bytes, new_copy.begin())) {
      return;  // they differ only in words that both share, or behind the item
    }
    EXPECT_EQ(Prove(copy, before.key), ItemProof::kTorn) << what << " " << at;
    EXPECT_EQ(Prove(copy, after.key), ItemProof::kTorn) << what << " " << at;
  };
  for (size_t at = 0; at < bytes; at += 8) {
    Copy copy = old_copy;
    std::copy(new_copy.begin() + at, new_copy.end(), copy.begin() + at);
    expect_torn(copy, "new from", at);
    copy = new_copy;
    std::copy(old_copy.begin() + at, old_copy.end(), copy.begin() + at);
    expect_torn(copy, "old from", at);
    copy = old_copy;
    std::copy_n(new_copy.begin() + at, 8, copy.begin() + at);
    expect_torn(copy, "one new word at", at);
  }
}

TEST(ItemTest, RejectsValueTornAcrossUpdate) {
  for (size_t value_bytes : {5, 64, 65, 1000}) {
    ExpectNoMixturePasses({1, "key", std::string(value_bytes, 'a')},
                          {2, "key", std::string(value_bytes, 'b')});
  }
}

TEST(ItemTest, RejectsAnUpdateThatMovesTheKey) {
  for (size_t key_bytes : {1, 3, 8, 16, 17, 32, 33, 250}) {
    const std::string key(key_bytes, 'k');
    for (size_t longer : {1, 3, 8, 11}) {
      // The value consists of the key's bytes, so that the key is found at the old place as well.
      ExpectNoMixturePasses({1, key, std::string(40, 'k')},
                            {2, key, std::string(40 + longer, 'k')});
      ExpectNoMixturePasses({1, key, std::string(40 + longer, 'k')},
                            {2, key, std::string(40, 'k')});
    }
  }
}

TEST(ItemTest, RejectsAMixtureOfTwoKeysItems) {
  for (size_t value_bytes : {0, 5, 16, 64}) {
    const std::string value(value_bytes, 'v');
    ExpectNoMixturePasses({1, "key", value}, {2, "kez", value});
    ExpectNoMixturePasses({1, "a key of 16 byte", value},
                          {2, "another key of 21 bit", value + "more"});
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
