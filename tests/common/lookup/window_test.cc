#include "common/lookup/window.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include "softverbs/tests/support/test_seed.h"

namespace gannet {
namespace {

// Computes the expected mask, slot by slot.
uint32_t Expected(const Bucket* window, uint32_t tag) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kSlotsPerWindow; ++i) {
    const Slot slot = SlotOfWindow(window, i);
    mask |= uint32_t{!slot.empty() && slot.tag() == tag} << i;
  }
  return mask;
}

TEST(WindowTest, MatchesTheSlotsOfATagInEveryForm) {
  std::mt19937_64 random(test_support::TestSeed());
  for (int i = 0; i < 20'000; ++i) {
    const uint32_t tag = i % 4 == 0 ? 0 : random() % (1u << kTagBits);
    // Sets header words too, because they may look like slots with the tag.
    uint64_t words[kWindowBytes / sizeof(uint64_t)];
    for (uint64_t& word : words) {
      word = random() % 8 == 0 ? 0 : random();
      if (random() % 4 == 0) word = Slot::Of(tag, random() % 128, random() % 4096 * 16).word();
      if (random() % 8 == 0) word ^= 1ull << (44 + random() % kTagBits);
    }
    Bucket window[2];
    std::memcpy(window, words, sizeof(window));
    const uint32_t expected = Expected(window, tag);
    ASSERT_EQ(MatchingSlotsOfWindow(window, tag), expected);
    ASSERT_EQ(MatchingSlotsPortable(window[0], tag), expected & ((1u << kSlotsPerBucket) - 1));
    ASSERT_EQ(MatchingSlotsPortable(window[1], tag), expected >> kSlotsPerBucket);
    const Slot first =
        expected == 0 ? Slot()
                      : SlotOfWindow(window, static_cast<uint32_t>(std::countr_zero(expected)));
    ASSERT_EQ(FirstMatchingSlot(window, tag), first);
  }
}

}  // namespace
}  // namespace gannet
