// Values that come back from a tier into memory, as they are read: where they are on the disk is
// made up, and nobody writes there.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/memory/store/stubs.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

class PromotionTest : public testing::Test {
 protected:
  using State = AheadOfEviction::State;
  static constexpr uint64_t kSegmentBytes = 1 << 20;
  static constexpr uint32_t kLap = 3;

  Stubs& stubs() { return *store_->stubs(); }
  ReadOutcome Look(std::string_view key) { return store_->Get(key, {}, At(1)); }
  bool OnDisk(std::string_view key) { return Look(key).on_disk.has_value(); }
  uint64_t Evicted() const { return store_.Stats().items_evicted; }

  TierPlace NextPlace(uint64_t version) {
    position_ += kTierRecordAlignment;
    return {.position = position_,
            .lap = kLap,
            .value_bytes = static_cast<uint32_t>(value_.size()),
            .version = version};
  }
  // Puts a value and makes it a stub. Returns where its record is said to be.
  TierPlace PutStub(std::string_view key, ItemAttributes attributes = {}) {
    const TierPlace place = NextPlace(store_.Put(key, value_, attributes, {}, 1).version);
    EXPECT_TRUE(stubs().Make(store_->HashOf(key), place));
    return place;
  }
  // The value was read from the disk so often.
  void Read(std::string_view key, const TierPlace& place, int times) {
    for (int i = 0; i < times; ++i) stubs().Promote(store_->HashOf(key), place, key, value_);
  }
  // Puts others until the memory is full. Returns how many.
  int Fill() {
    int others = 0;
    const uint64_t evicted = Evicted();
    for (; Evicted() == evicted; ++others) store_.Put(OtherKey(others), value_);
    return others;
  }
  static std::string OtherKey(int i) { return "other" + std::to_string(i); }
  // The values of all others are on the disk, and these are to be evicted.
  void WriteAll(int others) {
    for (int i = 0; i < others; ++i) {
      const uint64_t version = Look(OtherKey(i)).version;
      if (version == 0) continue;
      AheadOfEviction& ahead = stubs().ahead();
      ahead.Drop(version);
      ahead.Add({store_->HashOf(OtherKey(i)), version, value_.size()});
      ahead.Take();
      ahead.Written(NextPlace(version));
    }
  }

  TestStore store_{
      8 << 20, 4096,
      false,   TestStore::OnFull::kEvict,
      nullptr, TierOfStore{.number = 77, .segment_bytes = kSegmentBytes, .segments = 16}};
  const std::string value_ = std::string(5000, 'v');

 private:
  uint64_t position_ = kTierBlockBytes;
};

TEST_F(PromotionTest, AtTheSecondRead) {
  const TierPlace place = PutStub("key", {.flags = 7, .expiry = ExpiresAt(5000)});
  Read("key", place, 1);
  EXPECT_TRUE(OnDisk("key"));
  EXPECT_EQ(stubs().counts().promoted, 0u);
  Read("key", place, 1);
  const ReadOutcome read = Look("key");
  EXPECT_FALSE(read.on_disk.has_value());
  EXPECT_EQ(store_.Get("key"), value_);
  EXPECT_EQ(read.version, place.version);
  EXPECT_EQ(read.attributes.flags, 7u);
  EXPECT_EQ(read.attributes.expiry, ExpiresAt(5000));
  EXPECT_EQ(stubs().counts().promoted, 1u);
  EXPECT_EQ(stubs().count(), 0u);
  EXPECT_EQ(store_->Get("key", {}, At(5000)).status, ReplyStatus::kNotFound);
}

TEST_F(PromotionTest, OfAKeyThatIsComparedAndSwapped) {
  const TierPlace place = PutStub("key");
  Read("key", place, 2);
  ASSERT_FALSE(OnDisk("key"));
  EXPECT_EQ(store_.Put("key", "x", {}, {.only_if_version = place.version + 1}, 1).status,
            ReplyStatus::kVersionMismatch);
  EXPECT_EQ(store_.Put("key", "x", {}, {.only_if_version = place.version}, 1).status,
            ReplyStatus::kOk);
  EXPECT_EQ(store_.Get("key"), "x");
}

TEST_F(PromotionTest, LeavesALockAsItIs) {
  const TierPlace place = PutStub("key");
  store_.LockWordOf("key") = 1;
  Read("key", place, 2);
  EXPECT_EQ(store_.Get("key"), value_);
  EXPECT_EQ(store_.LockWordOf("key"), 1u);
}

TEST_F(PromotionTest, ReplacesThatStubOnly) {
  const TierPlace put = PutStub("put"), deleted = PutStub("deleted"), other = PutStub("other");
  Read("put", put, 1);
  Read("deleted", deleted, 1);
  Read("other", other, 1);
  store_.Put("put", "new");
  store_.Delete("deleted");
  store_.Delete("other");
  const TierPlace new_place = PutStub("other");
  Read("put", put, 2);
  Read("deleted", deleted, 2);
  Read("other", other, 2);
  EXPECT_EQ(store_.Get("put"), "new");
  EXPECT_EQ(Look("deleted").status, ReplyStatus::kNotFound);
  EXPECT_EQ(Look("other").on_disk, new_place);
  EXPECT_EQ(stubs().counts().promoted, 0u);
}

// The same at the last moment, when room was made and the value was copied.
TEST_F(PromotionTest, LooksAgainBeforeItReplacesTheStub) {
  const TierPlace old = PutStub("key");
  store_.Delete("key");
  const TierPlace place = PutStub("key");
  const uint64_t bytes = store_->heap().use().allocated_bytes();
  const auto room = store_->Reserve("key", value_, At(1));
  ASSERT_TRUE(room.has_value());
  EXPECT_FALSE(stubs().ReplaceByItem(store_->HashOf("key"), old, "key", room->offset));
  EXPECT_EQ(Look("key").on_disk, place);
  EXPECT_EQ(store_->heap().use().allocated_bytes(), bytes) << "the block is given back";
}

// The record is the same.
TEST_F(PromotionTest, OfATouchedStubHasWhatTheTouchGave) {
  const TierPlace place = PutStub("key");
  Read("key", place, 1);
  const WriteOutcome touched = store_.Touch("key", 5000);
  Read("key", place, 1);
  const ReadOutcome read = Look("key");
  EXPECT_FALSE(read.on_disk.has_value());
  EXPECT_EQ(read.version, touched.version);
  EXPECT_EQ(read.attributes.expiry, ExpiresAt(5000));
  EXPECT_EQ(stubs().ahead().PlaceOf(touched.version), place);
}

TEST_F(PromotionTest, TakesNoRoomOfValuesThatAreNotOnTheDisk) {
  const TierPlace place = PutStub("key");
  Fill();
  const uint64_t evicted = Evicted(), items = store_.Stats().items;
  Read("key", place, 100);
  EXPECT_TRUE(OnDisk("key"));
  EXPECT_EQ(stubs().counts().promoted, 0u);
  EXPECT_EQ(Evicted(), evicted);
  EXPECT_EQ(store_.Stats().items, items);
}

TEST_F(PromotionTest, TakesTheRoomOfValuesThatBecomeStubs) {
  const TierPlace place = PutStub("key");
  WriteAll(Fill());
  const uint64_t evicted = Evicted(), items = store_.Stats().items;
  Read("key", place, 100);
  EXPECT_FALSE(OnDisk("key"));
  EXPECT_EQ(Evicted(), evicted) << "these are no stubs";
  EXPECT_EQ(store_.Stats().items, items);
  EXPECT_GT(stubs().count(), 0u);
}

// Otherwise writes would find no value that may go, and evict others.
TEST_F(PromotionTest, LeavesWritesMostOfWhatMayGo) {
  const TierPlace place = PutStub("key");
  Fill();
  WriteAll(20);
  EXPECT_GT(stubs().ahead().written_bytes(), 10 * value_.size());
  Read("key", place, 100);
  EXPECT_TRUE(OnDisk("key"));
  EXPECT_EQ(stubs().count(), 1u);
}

// They stay in memory, and their records are remembered.
TEST_F(PromotionTest, LeavesWhatIsUsedAsMuch) {
  const TierPlace place = PutStub("key");
  const int others = Fill();
  for (int n = 0; n < 8; ++n) {
    for (int i = 0; i < others; ++i) Look(OtherKey(i));
  }
  WriteAll(others);
  Read("key", place, 4);
  EXPECT_TRUE(OnDisk("key"));
  EXPECT_EQ(stubs().count(), 1u);
  Read("key", place, 100);
  EXPECT_FALSE(OnDisk("key"));
}

TEST_F(PromotionTest, LeavesLockedVictims) {
  const TierPlace place = PutStub("key");
  const int others = Fill();
  WriteAll(others);
  for (int i = 0; i < others; ++i) store_.LockWordOf(OtherKey(i)) = 1;
  Read("key", place, 100);
  EXPECT_TRUE(OnDisk("key"));
  const uint64_t version = Look(OtherKey(others - 1)).version;
  EXPECT_TRUE(stubs().ahead().PlaceOf(version).has_value()) << "what is on the disk stays there";
}

// The item becomes a stub of the same record when it is evicted, and nobody writes.
TEST_F(PromotionTest, IsWrittenOnce) {
  const TierPlace place = PutStub("key");
  Read("key", place, 2);
  ASSERT_FALSE(OnDisk("key"));
  EXPECT_EQ(stubs().ahead().StateOf(place.version), State::kKept);
  for (int i = 0; i < 40'000 && stubs().count() == 0; ++i) {
    store_.Put(OtherKey(i), value_);
    store_->Tidy(At(1));
  }
  EXPECT_EQ(Look("key").on_disk, place);
  EXPECT_FALSE(stubs().ahead().PlaceOf(place.version).has_value()) << "that is what the stub says";
}

TEST_F(PromotionTest, OfAnItemThatChangesIsForgotten) {
  const TierPlace place = PutStub("key");
  Read("key", place, 2);
  const uint64_t version = store_.Put("key", value_).version;
  EXPECT_FALSE(stubs().ahead().PlaceOf(version).has_value());
}

TEST_F(PromotionTest, IsForgottenWithItsRecord) {
  const TierPlace place = PutStub("key");
  Read("key", place, 2);
  ASSERT_EQ(stubs().ahead().StateOf(place.version), State::kKept);
  stubs().Forget({.begin = kTierBlockBytes,
                  .end = kTierBlockBytes + kSegmentBytes,
                  .lap = kLap,
                  .list = std::vector<TierListEntry>()},
                 nullptr);
  EXPECT_EQ(stubs().ahead().StateOf(place.version), State::kNotHere);
  EXPECT_EQ(store_.Get("key"), value_);
}

// A segment is taken again: what was on the way there is forgotten, and then its stubs go. One of
// them may be promoted in between.
TEST_F(PromotionTest, KeepsNoRecordThatIsBeingWrittenOver) {
  const TierPlace place = PutStub("key");
  Read("key", place, 1);
  stubs().ahead().DropWrittenIn(kTierBlockBytes, kTierBlockBytes + kSegmentBytes, kLap);
  Read("key", place, 1);
  EXPECT_EQ(store_.Get("key"), value_);
  EXPECT_EQ(stubs().ahead().StateOf(place.version), State::kNotHere);
}

}  // namespace
}  // namespace gannet
