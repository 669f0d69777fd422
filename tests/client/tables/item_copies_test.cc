#include "client/tables/item_copies.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/server_time.h"

namespace gannet {
namespace {

constexpr uint64_t kIncarnation = 7;
constexpr ServerTime kEnd = ServerTime::FromMs(1'000'000);

class ItemCopiesTest : public testing::Test {
 protected:
  ItemCopiesTest() { copies_.Restart(kIncarnation); }

  static ItemLeaseHeader Header(uint64_t generation, ServerTime end = kEnd) {
    ItemLeaseHeader header{};
    header.generation = generation;
    header.end_ms = end.ms();
    header.checksum = ItemLeaseChecksum(header, kIncarnation);
    return header;
  }
  // READs header and words.
  void Read(uint64_t generation, const std::vector<uint64_t>& words, ServerTime end = kEnd) {
    copies_.OnHeader(Header(generation, end));
    copies_.OnWords(words);
  }
  bool Note(const std::string& key, uint64_t word, const std::string& value = "value") {
    ItemHeader header{};
    header.commit = word;
    header.version = word;
    header.value_bytes = static_cast<uint32_t>(value.size());
    return copies_.Note(Hash(key), key, value, header, Slot());
  }
  static KeyHash Hash(const std::string& key) { return KeyHash::Of(key, 42); }
  const ItemCopies::Copy* Find(const std::string& key) { return copies_.Find(Hash(key), key); }

  ItemCopies copies_{64 << 10};
};

TEST_F(ItemCopiesTest, ACopyOfALeasedItemIsRightUntilTheEnd) {
  EXPECT_EQ(copies_.end(), ServerTime());
  Read(1, {0, 0xa, 0});
  EXPECT_FALSE(Note("key", 0xa)) << "it was copied";
  ASSERT_NE(Find("key"), nullptr);
  EXPECT_EQ(Find("key")->value, "value");
  EXPECT_EQ(Find("other"), nullptr);
  EXPECT_EQ(copies_.end(), kEnd) << "the item may change then";
}

TEST_F(ItemCopiesTest, WhatIsNotLeasedIsNotCopied) {
  Read(1, {0xa});
  EXPECT_FALSE(Note("key", 0xb));
  EXPECT_EQ(Find("key"), nullptr);
  EXPECT_TRUE(Note("key", 0xb)) << "a copy would have answered";
  EXPECT_EQ(Find("key"), nullptr);
}

TEST_F(ItemCopiesTest, AnotherGenerationEndsAllCopiesUntilTheWordsAreRead) {
  Read(1, {0xa, 0xb});
  Note("key", 0xa);
  Note("other", 0xb);
  EXPECT_FALSE(copies_.WantsWords());
  copies_.OnHeader(Header(2));
  EXPECT_TRUE(copies_.WantsWords());
  EXPECT_EQ(copies_.end(), ServerTime()) << "the words were READ behind an older header";
  copies_.OnWords(std::vector<uint64_t>{0xb});
  EXPECT_EQ(copies_.end(), kEnd);
  EXPECT_EQ(Find("key"), nullptr) << "its word went";
  EXPECT_NE(Find("other"), nullptr);
}

TEST_F(ItemCopiesTest, WordsCountUnderLaterHeadersOfTheirGeneration) {
  Read(1, {0xa});
  copies_.OnHeader(Header(1, kEnd + 20));
  EXPECT_EQ(copies_.end(), kEnd + 20);
}

TEST_F(ItemCopiesTest, ATornHeaderTellsNothing) {
  Read(1, {0xa});
  ItemLeaseHeader torn = Header(1);
  torn.end_ms = (kEnd + 100).ms();
  copies_.OnHeader(torn);
  EXPECT_EQ(copies_.end(), kEnd);
}

TEST_F(ItemCopiesTest, NothingIsKeptForAnotherRunOfTheServer) {
  Read(1, {0xa});
  Note("key", 0xa);
  copies_.Restart(kIncarnation + 1);
  EXPECT_EQ(Find("key"), nullptr);
  EXPECT_EQ(copies_.bytes(), 0u);
  copies_.OnHeader(Header(1));
  copies_.OnWords(std::vector<uint64_t>{0xa});
  EXPECT_EQ(copies_.end(), ServerTime()) << "the header is the former run's";
}

TEST_F(ItemCopiesTest, WhatIsUsedStaysWhenTheMemoryIsFull) {
  std::vector<uint64_t> words(1000);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i + 1;
  Read(1, words);
  const std::string value(1000, 'v');
  for (size_t i = 0; i < words.size(); ++i) {
    Note("key" + std::to_string(i), i + 1, value);
    Find("key0");
    EXPECT_LE(copies_.bytes(), 64u << 10);
  }
  EXPECT_GT(copies_.size(), 20u);
  EXPECT_NE(Find("key0"), nullptr);
}

}  // namespace
}  // namespace gannet
