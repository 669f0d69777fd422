#include "server/memory/store/ahead_of_eviction.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>

namespace gannet {
namespace {

constexpr size_t kPlacesMax = 1000;

AheadOfEviction::Item ItemOf(uint64_t version) {
  return {.hash = KeyHash(version * 7), .version = version, .bytes = 100 * version};
}

TierPlace PlaceOf(uint64_t version, uint64_t position) {
  return {.position = position, .lap = 1, .value_bytes = 5000, .version = version};
}

TEST(AheadOfEvictionTest, ItemsPassInTheirOrder) {
  AheadOfEviction ahead(kPlacesMax);
  ASSERT_TRUE(ahead.Add(ItemOf(1)));
  ASSERT_TRUE(ahead.Add(ItemOf(2)));
  EXPECT_FALSE(ahead.Add(ItemOf(1))) << "it is here";
  EXPECT_EQ(ahead.bytes(), 300u);
  EXPECT_EQ(ahead.Take()->version, 1u);
  EXPECT_EQ(ahead.Take()->version, 2u);
  EXPECT_FALSE(ahead.Take().has_value());
  EXPECT_FALSE(ahead.Add(ItemOf(1))) << "it is being written";
  EXPECT_FALSE(ahead.PlaceOf(1).has_value());
  ahead.Written(PlaceOf(2, 8192));
  ahead.Written(PlaceOf(1, 4096));
  EXPECT_EQ(ahead.PlaceOf(1), PlaceOf(1, 4096));
  EXPECT_EQ(ahead.TakeWritten()->version, 2u);
  EXPECT_EQ(ahead.PlaceOf(2), PlaceOf(2, 8192)) << "it was taken, and not dropped";
  ahead.Drop(2);
  EXPECT_FALSE(ahead.PlaceOf(2).has_value());
  EXPECT_EQ(ahead.TakeWritten()->version, 1u);
  EXPECT_EQ(ahead.bytes(), 100u);
}

TEST(AheadOfEvictionTest, WhatIsDroppedIsPassedOver) {
  AheadOfEviction ahead(kPlacesMax);
  for (uint64_t version = 1; version <= 4; ++version) ASSERT_TRUE(ahead.Add(ItemOf(version)));
  ahead.Drop(1);
  EXPECT_EQ(ahead.Take()->version, 2u);
  EXPECT_EQ(ahead.Take()->version, 3u);
  ahead.Written(PlaceOf(1, 4096));
  EXPECT_FALSE(ahead.PlaceOf(1).has_value());
  ahead.Written(PlaceOf(2, 4096));
  ahead.Written(PlaceOf(3, 8192));
  ahead.DropWrittenIn(4096, 8192, 1);
  EXPECT_EQ(ahead.TakeWritten()->version, 3u);
  EXPECT_EQ(ahead.StateOf(4), AheadOfEviction::State::kOnTheWay);
  EXPECT_EQ(ahead.StateOf(2), AheadOfEviction::State::kNotHere);
  EXPECT_EQ(ahead.StateOf(3), AheadOfEviction::State::kWritten);
  EXPECT_EQ(ahead.bytes(), 700u);
}

TEST(AheadOfEvictionTest, ADiskWorksAsLongAsItWrites) {
  AheadOfEviction ahead(kPlacesMax);
  EXPECT_FALSE(ahead.SomeAreOnTheWay());
  for (uint64_t version = 1; version <= 3; ++version) ASSERT_TRUE(ahead.Add(ItemOf(version)));
  EXPECT_TRUE(ahead.SomeAreOnTheWay());
  const auto works_for_so_many_steps = [&ahead] {
    for (uint32_t i = 0; i < AheadOfEviction::kStepsMax; ++i) {
      ASSERT_TRUE(ahead.DiskWorks());
      ahead.StepPassed();
    }
    EXPECT_FALSE(ahead.DiskWorks());
    ahead.StepPassed();
    EXPECT_FALSE(ahead.DiskWorks());
  };
  works_for_so_many_steps();  // for the first value
  ahead.Written(PlaceOf(1, 4096));
  works_for_so_many_steps();
  ahead.Written(PlaceOf(2, 8192));
  EXPECT_TRUE(ahead.SomeAreOnTheWay());
  ahead.Drop(3);
  EXPECT_FALSE(ahead.SomeAreOnTheWay());
  for (uint32_t i = 0; i <= AheadOfEviction::kStepsMax; ++i) ahead.StepPassed();
  EXPECT_TRUE(ahead.DiskWorks()) << "nothing is on the way";
  ASSERT_TRUE(ahead.Add(ItemOf(4)));
  ahead.NotWritten(4);
  EXPECT_FALSE(ahead.DiskWorks()) << "it does not take any";
}

TEST(AheadOfEvictionTest, SoManyWaitAtMost) {
  AheadOfEviction ahead(kPlacesMax);
  for (uint64_t version = 1; version <= AheadOfEviction::kChosenMax; ++version) {
    EXPECT_FALSE(ahead.full());
    ASSERT_TRUE(ahead.Add(ItemOf(version)));
  }
  EXPECT_TRUE(ahead.full());
  EXPECT_FALSE(ahead.Add(ItemOf(1000)));
  ahead.Take();
  EXPECT_TRUE(ahead.Add(ItemOf(1000)));
}

// Items that came back are chosen without another write, and kept if they stay.
TEST(AheadOfEvictionTest, WhatIsKeptIsWritten) {
  AheadOfEviction ahead(kPlacesMax);
  ahead.Keep(ItemOf(1), PlaceOf(1, 4096));
  EXPECT_EQ(ahead.StateOf(1), AheadOfEviction::State::kKept);
  EXPECT_EQ(ahead.bytes(), 0u);
  EXPECT_FALSE(ahead.TakeWritten().has_value()) << "nobody chose it";
  ASSERT_TRUE(ahead.Add(ItemOf(1)));
  EXPECT_FALSE(ahead.Add(ItemOf(1)));
  EXPECT_EQ(ahead.bytes(), 100u);
  EXPECT_FALSE(ahead.Take().has_value()) << "it is on the disk";
  EXPECT_EQ(ahead.TakeWritten()->version, 1u);
  ahead.Spare(1);
  ahead.Spare(1);
  EXPECT_EQ(ahead.bytes(), 0u);
  EXPECT_FALSE(ahead.TakeWritten().has_value());
  EXPECT_EQ(ahead.PlaceOf(1), PlaceOf(1, 4096));
  ahead.DropWrittenIn(4096, 8192, 1);
  EXPECT_EQ(ahead.StateOf(1), AheadOfEviction::State::kNotHere);
  EXPECT_EQ(ahead.bytes(), 0u);
}

// While the segment is taken again, and also afterwards: only the next lap's records are new.
TEST(AheadOfEvictionTest, NothingIsKeptThatIsWrittenOver) {
  AheadOfEviction ahead(kPlacesMax);
  TierPlace place = PlaceOf(1, 4096);
  ahead.DropWrittenIn(4096, 8192, place.lap);
  ahead.Keep(ItemOf(1), place);
  EXPECT_EQ(ahead.StateOf(1), AheadOfEviction::State::kNotHere);
  ahead.Keep(ItemOf(2), PlaceOf(2, 8192));
  EXPECT_EQ(ahead.StateOf(2), AheadOfEviction::State::kKept);
  ++place.lap;
  ahead.Keep(ItemOf(1), place);
  EXPECT_EQ(ahead.StateOf(1), AheadOfEviction::State::kKept);
}

// The stub of an item was touched, and came back with another version.
TEST(AheadOfEvictionTest, ARecordIsOneItems) {
  AheadOfEviction ahead(kPlacesMax);
  ASSERT_TRUE(ahead.Add(ItemOf(1)));
  ASSERT_TRUE(ahead.Take().has_value());
  ahead.Written(PlaceOf(1, 4096));
  ahead.Keep(ItemOf(2), PlaceOf(1, 4096));
  EXPECT_EQ(ahead.StateOf(1), AheadOfEviction::State::kNotHere);
  EXPECT_EQ(ahead.bytes(), 0u);
  ahead.Drop(1);
  EXPECT_EQ(ahead.StateOf(2), AheadOfEviction::State::kKept);
  ahead.DropWrittenIn(4096, 8192, 1);
  EXPECT_EQ(ahead.StateOf(2), AheadOfEviction::State::kNotHere) << "its record was written over";
}

TEST(AheadOfEvictionTest, ThePlacesThatAreWrittenOverFirstAreForgotten) {
  AheadOfEviction ahead(/*places_max=*/3);
  ahead.DropWrittenIn(4096, 8192, 1);
  ahead.Keep(ItemOf(1), {.position = 4096, .lap = 2, .value_bytes = 5000, .version = 1});
  for (uint64_t version = 2; version <= 5; ++version) {
    ahead.Keep(ItemOf(version), PlaceOf(version, version * 8192));
  }
  EXPECT_FALSE(ahead.PlaceOf(2).has_value());
  EXPECT_FALSE(ahead.PlaceOf(3).has_value());
  for (const uint64_t version : {1, 4, 5}) EXPECT_TRUE(ahead.PlaceOf(version).has_value());
}

}  // namespace
}  // namespace gannet
