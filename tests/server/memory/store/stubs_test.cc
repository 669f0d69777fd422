#include "server/memory/store/stubs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/words.h"
#include "server/memory/store/item_leaser.h"
#include "server/memory/store/item_leases.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

constexpr TierOfStore kTier{.number = 0x1122334455667788, .segment_bytes = 1 << 20, .segments = 16};

// A record that could be the one of an item.
TierPlace PlaceOf(const WriteOutcome& item, size_t value_bytes, uint64_t position = 4096) {
  return {.position = position,
          .lap = 3,
          .value_bytes = static_cast<uint32_t>(value_bytes),
          .version = item.version};
}

class StubsTest : public testing::Test {
 protected:
  ReadOutcome Read(std::string_view key) { return store_->Get(key, {}, At(1)); }
  // Puts a value and makes it a stub. Returns where its record is said to be.
  TierPlace PutStub(std::string_view key, const std::string& value,
                    ItemAttributes attributes = {}) {
    const TierPlace place = PlaceOf(store_.Put(key, value, attributes, {}, 1), value.size());
    EXPECT_TRUE(store_->stubs()->Make(store_->HashOf(key), place));
    return place;
  }

  TestStore store_{8 << 20, 1024, false, TestStore::OnFull::kEvict, nullptr, kTier};
  const std::string value_ = std::string(5000, 'v');
};

TEST_F(StubsTest, SayWhereTheValueIs) {
  const TierPlace place = PutStub("key", value_, {.flags = 7, .expiry = ExpiresAt(5000)});
  const ReadOutcome read = Read("key");
  EXPECT_EQ(read.status, ReplyStatus::kBufferTooSmall);
  EXPECT_EQ(read.on_disk, place);
  EXPECT_EQ(read.version, place.version);
  EXPECT_EQ(read.slot, 0u);
  EXPECT_EQ(read.value_bytes, value_.size());
  EXPECT_EQ(read.attributes.flags, 7u);
  EXPECT_EQ(read.attributes.expiry, ExpiresAt(5000));
  EXPECT_EQ(store_->stubs()->count(), 1u);
}

TEST_F(StubsTest, AreMadeOfTheRecordsVersionOnly) {
  const WriteOutcome old = store_.Put("key", value_);
  store_.Put("key", value_);
  EXPECT_FALSE(store_->stubs()->Make(store_->HashOf("key"), PlaceOf(old, 5000)));
  EXPECT_EQ(store_.Get("key"), value_);
}

TEST_F(StubsTest, AreNotMadeOfLockedItems) {
  const WriteOutcome item = store_.Put("key", value_);
  store_.LockWordOf("key") = 1;
  EXPECT_FALSE(store_->stubs()->Make(store_->HashOf("key"), PlaceOf(item, 5000)));
  EXPECT_EQ(store_.Get("key"), value_);
}

TEST_F(StubsTest, AreDeletedByTheirPlaceOnly) {
  const TierPlace place = PutStub("key", value_);
  TierPlace other = place;
  ++other.lap;
  EXPECT_FALSE(store_->stubs()->Delete(store_->HashOf("key"), other));
  EXPECT_EQ(Read("key").on_disk, place);
  EXPECT_TRUE(store_->stubs()->Delete(store_->HashOf("key"), place));
  EXPECT_EQ(Read("key").status, ReplyStatus::kNotFound);
  EXPECT_FALSE(store_->stubs()->Delete(store_->HashOf("key"), place));
  EXPECT_EQ(store_->stubs()->count(), 0u);
  EXPECT_EQ(store_->stubs()->bytes(), 0u);
}

TEST_F(StubsTest, AreTouchedAndKeepTheirRecord) {
  const TierPlace place = PutStub("key", value_);
  const WriteOutcome touched = store_.Touch("key", 5000);
  EXPECT_EQ(touched.status, ReplyStatus::kOk);
  EXPECT_GT(touched.version, place.version);
  EXPECT_EQ(touched.slot, 0u);
  const ReadOutcome read = Read("key");
  EXPECT_EQ(read.on_disk, place);
  EXPECT_EQ(read.version, touched.version);
  EXPECT_EQ(read.attributes.expiry, ExpiresAt(5000));
  EXPECT_EQ(store_->Get("key", {}, At(5000)).status, ReplyStatus::kNotFound);
}

TEST_F(StubsTest, WhatNeedsTheValueSaysSo) {
  const TierPlace place = PutStub("key", value_);
  for (const WriteOutcome& outcome :
       {store_.Append("key", "+", Writes::End::kBack),
        store_.Append("key", "+", Writes::End::kFront), store_.Increment("key", {.delta = 1})}) {
    EXPECT_EQ(outcome.status, ReplyStatus::kUnimplemented);
    EXPECT_TRUE(outcome.needs_value);
  }
  EXPECT_EQ(Read("key").on_disk, place);
}

// A value of this length is as long as what a stub says.
TEST_F(StubsTest, AreReplacedAndNeverUpdatedInPlace) {
  for (const size_t bytes : {sizeof(StubValue), size_t{0}, size_t{100}, size_t{6000}}) {
    PutStub("key", value_);
    const std::string value(bytes, 'w');
    const WriteOutcome put = store_.Put("key", value);
    EXPECT_EQ(put.status, ReplyStatus::kOk);
    EXPECT_NE(Slot(put.slot).size_class(), kSizeClassMarker);
    EXPECT_EQ(store_.Get("key"), value);
    EXPECT_EQ(store_->stubs()->count(), 0u);
  }
  EXPECT_EQ(store_.updates_in_place(), 0u);
}

TEST_F(StubsTest, TakePartInConditions) {
  const TierPlace place = PutStub("key", value_);
  const WriteOutcome there = store_.Put("key", "x", {}, {.only_if_absent = true}, 1);
  EXPECT_EQ(there.status, ReplyStatus::kExists);
  EXPECT_EQ(there.version, place.version);
  EXPECT_EQ(there.slot, 0u);
  const WriteOutcome other = store_.Put("key", "x", {}, {.only_if_version = place.version + 1}, 1);
  EXPECT_EQ(other.status, ReplyStatus::kVersionMismatch);
  EXPECT_EQ(other.version, place.version);
  EXPECT_EQ(store_.Put("key", "x", {}, {.only_if_version = place.version}, 1).status,
            ReplyStatus::kOk);
  EXPECT_EQ(store_.Get("key"), "x");
}

TEST_F(StubsTest, AreDeletedFlushedAndSweptAway) {
  PutStub("deleted", value_);
  EXPECT_EQ(store_.Delete("deleted").status, ReplyStatus::kOk);
  PutStub("swept", value_, {.expiry = ExpiresAt(100)});
  EXPECT_EQ(store_->Sweep(At(101), 1 << 20).removed, 1u);
  PutStub("flushed", value_);
  EXPECT_EQ(store_.FlushSome(0).removed, 1u);
  EXPECT_EQ(store_->stubs()->count(), 0u);
  EXPECT_EQ(store_->heap().use().allocated_bytes(), 0u);
}

// Keys of all lengths, so that blocks of all classes move.
std::string KeyOf(int i) {
  return std::to_string(i) + std::string(static_cast<size_t>(1 + i * 7 % 240), 'k');
}

// A client that READ the item's head before, and its value meanwhile, must look again.
TEST_F(StubsTest, AValueThatComesBackHasACommitWordThatWasNeverThere) {
  const WriteOutcome item = store_.PutReserved("key", value_);
  const uint64_t offset = Slot(item.slot).offset();
  const uint64_t commit = LoadWord(store_.region().data() + offset);
  const KeyHash hash = store_->HashOf("key");
  const TierPlace place = PlaceOf(item, value_.size());
  ASSERT_TRUE(store_->stubs()->Make(hash, place));
  const std::optional<Reservation> room = store_->Reserve("key", value_, At(1));
  ASSERT_TRUE(room.has_value());
  ASSERT_EQ(room->offset, offset) << "the block is another one";
  EXPECT_TRUE(store_->stubs()->ReplaceByItem(hash, place, "key", room->offset));
  EXPECT_EQ(store_.Get("key"), value_);
  EXPECT_EQ(store_->Get("key", {}, At(1)).version, item.version);
  EXPECT_NE(LoadWord(store_.region().data() + offset), commit);
}

TEST_F(StubsTest, AreMovedTogether) {
  constexpr int kKeys = 800;
  std::map<int, TierPlace> places;
  for (int i = 0; i < kKeys; ++i) places[i] = PutStub(KeyOf(i), value_);
  for (int i = 0; i < kKeys; ++i) {
    if (i % 5 == 0) continue;
    ASSERT_EQ(store_.Delete(KeyOf(i)).status, ReplyStatus::kOk);
    places.erase(i);
  }
  store_->Compact(4096);
  EXPECT_GT(store_.Stats().items_moved, 10u);
  for (const auto& [i, place] : places) EXPECT_EQ(Read(KeyOf(i)).on_disk, place) << i;
  for (const auto& [i, place] : places) {
    EXPECT_TRUE(store_->stubs()->Delete(store_->HashOf(KeyOf(i)), place));
  }
  EXPECT_EQ(store_->heap().use().allocated_bytes(), 0u);
  EXPECT_EQ(store_->stubs()->bytes(), 0u);
}

TEST_F(StubsTest, StayWhenTheIndexGrows) {
  TestStore store(8 << 20, 100, /*index_grows=*/true, TestStore::OnFull::kEvict, nullptr, kTier);
  std::map<int, TierPlace> places;
  for (int i = 0; i < 2000; ++i) {
    const TierPlace place = PlaceOf(store.Put(KeyOf(i), value_), value_.size());
    ASSERT_TRUE(store->stubs()->Make(store->HashOf(KeyOf(i)), place));
    places[i] = place;
    // A key that found no slot would evict another one.
    store->Tidy(At(1));
  }
  while (store->Tidy(At(1))) {
  }
  EXPECT_GT(store.Stats().index_growths, 2u);
  for (const auto& [i, place] : places) {
    ASSERT_EQ(store->Get(KeyOf(i), {}, At(1)).on_disk, place) << i;
  }
}

// Returns the slot of the only stub.
Slot OnlyStub(TestStore& store) {
  const IndexGeometry index = store->superblock().index;
  for (uint64_t bucket = 0; bucket < index.buckets(); ++bucket) {
    Bucket copy;
    std::memcpy(&copy, store.region().data() + index.BucketOffset(bucket), sizeof(copy));
    for (const uint64_t word : copy.slots) {
      if (IsStub(Slot(word))) return Slot(word);
    }
  }
  return Slot();
}

// What its block holds proves itself for who knows that it is a stub, and for nobody else.
TEST_F(StubsTest, ProveThemselvesAsStubsOnly) {
  const TierPlace place = PutStub("key", value_, {.flags = 7});
  store_.Touch("key", 5000);
  const Slot slot = OnlyStub(store_);
  const ItemPlace at = {store_->superblock().incarnation, 42, slot.offset()};
  const auto copy = store_.region().subspan(slot.offset(), StubBytes(3));
  ItemView view;
  EXPECT_EQ(ProveItem(copy, at, "key", store_->HashOf("key"), &view), ItemProof::kTorn);
  EXPECT_EQ(ProveItem(copy, StubPlace(at), "key", store_->HashOf("key"), &view),
            ItemProof::kThisKey);
  const std::optional<StubValue> stub = DecodeStub(view.value);
  ASSERT_TRUE(stub.has_value());
  EXPECT_EQ(stub->position, place.position);
  EXPECT_EQ(stub->tier, 0x55667788u);
  EXPECT_EQ(view.header.flags, 7u);
}

class StubLeasesTest : public testing::Test {
 protected:
  StubLeasesTest() { leases_.Start(7); }
  bool Lease(Slot slot) {
    return ItemLeaser(*store_).Lease(slot.offset(), At(100'000),
                                     [](std::string_view) { return true; });
  }

  std::vector<uint64_t> memory_ = std::vector<uint64_t>(ItemLeaseBytes(16) / 8);
  ItemLeases leases_{{.memory = std::as_writable_bytes(std::span(memory_)), .lease_ms = 100}};
  TestStore store_{8 << 20, 1024, false, TestStore::OnFull::kEvict, &leases_, kTier};
  const std::string value_ = std::string(5000, 'v');
};

TEST_F(StubLeasesTest, NoClientCopiesAStub) {
  const TierPlace place = PlaceOf(store_.Put("key", value_), value_.size());
  ASSERT_TRUE(store_->stubs()->Make(store_->HashOf("key"), place));
  EXPECT_FALSE(Lease(OnlyStub(store_)));
}

// While a client may have a copy of an item, it stays where that client may look.
TEST_F(StubLeasesTest, ALeasedItemStaysInMemory) {
  const WriteOutcome item = store_.Put("key", value_);
  ASSERT_TRUE(Lease(Slot(item.slot)));
  ASSERT_TRUE(leases_.Renew(At(100'000)));
  const TierPlace place = PlaceOf(item, value_.size());
  EXPECT_FALSE(store_->stubs()->Make(store_->HashOf("key"), place));
  EXPECT_EQ(store_.Get("key"), value_);
}

}  // namespace
}  // namespace gannet
