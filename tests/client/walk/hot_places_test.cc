#include "client/walk/hot_places.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace gannet {
namespace {

constexpr HeatsReply kHeatsOfMany = {.address = 0,
                                     .bytes = 1 << 20,
                                     .rkey = 1,
                                     .granule_bytes = 64,
                                     .used_once = 96,
                                     .units_per_doubling = 8,
                                     .most = 136,
                                     .reserved = {}};

TEST(HotPlacesTest, KeepsTheHottest) {
  HotPlaces places(kHeatsOfMany, 3);
  std::vector<std::byte> heats(10'000, std::byte{96});
  heats[17] = std::byte{136};
  heats[5'000] = std::byte{120};
  heats[9'999] = std::byte{97};
  heats[9'998] = std::byte{0};
  places.Take(0, std::span(heats).first(7'000));
  places.Take(7'000, std::span(heats).subspan(7'000));
  places.Finish();
  EXPECT_EQ(places.HeatAt(17 * 64), 136);
  EXPECT_EQ(places.HeatAt(17 * 64 + 48), 136);  // a second short item of the granule
  EXPECT_EQ(places.HeatAt(5'000 * 64), 120);
  EXPECT_EQ(places.HeatAt(9'999 * 64), 97);
  EXPECT_EQ(places.HeatAt(0), std::nullopt);
  EXPECT_EQ(places.HeatAt(18 * 64), std::nullopt);
}

TEST(HotPlacesTest, WithoutItemsThereAreNone) {
  HotPlaces places(kHeatsOfMany, 3);
  places.Take(0, std::vector<std::byte>(1000));
  places.Finish();
  EXPECT_TRUE(places.empty());
}

TEST(HotPlacesTest, KeepsAsManyOfOneHeatAsItHasRoomFor) {
  HotPlaces places(kHeatsOfMany, 3);
  places.Take(0, std::vector<std::byte>(1000, std::byte{255}));
  places.Finish();
  int kept = 0;
  for (uint64_t i = 0; i < 1000; ++i) kept += places.HeatAt(i * 64).has_value();
  EXPECT_EQ(kept, 3);
}

TEST(HotPlacesTest, EightUnitsMoreAreTwiceAsManyUses) {
  const HotPlaces places(kHeatsOfMany, 3);
  EXPECT_EQ(places.UsesOf(96), 1);
  EXPECT_EQ(places.UsesOf(104), 2);
  EXPECT_EQ(places.UsesOf(136), 32);
  EXPECT_TRUE(places.IsMost(136));
  EXPECT_FALSE(places.IsMost(135));
}

TEST(HotPlacesTest, RefusesRepliesThatCannotBe) {
  constexpr uint64_t kRegion = 64 << 20;
  EXPECT_TRUE(HotPlaces::IsSane(kHeatsOfMany, kRegion));
  HeatsReply heats = kHeatsOfMany;
  heats.bytes = 0;
  EXPECT_FALSE(HotPlaces::IsSane(heats, kRegion));
  heats = kHeatsOfMany;
  heats.bytes = UINT64_MAX;
  EXPECT_FALSE(HotPlaces::IsSane(heats, kRegion));
  heats = kHeatsOfMany;
  heats.granule_bytes = 0;
  EXPECT_FALSE(HotPlaces::IsSane(heats, kRegion));
  heats = kHeatsOfMany;
  heats.units_per_doubling = 0;
  EXPECT_FALSE(HotPlaces::IsSane(heats, kRegion));
}

}  // namespace
}  // namespace gannet
