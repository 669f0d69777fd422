#include "server/memory/recovery/examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "common/layout/item.h"
#include "tests/server/memory/store/at.h"
#include "tests/server/memory/store/killed_run.h"

namespace gannet {
namespace {

// Looks at the region as the next process would find it if this one were killed now.
absl::StatusOr<Examination> ExamineCopy(const KilledRun& run) {
  const TestRegion copy(run.region().size());
  std::memcpy(copy.span().data(), run.region().data(), run.region().size());
  return Examine(copy.span());
}

// Every slot and every byte is one thing or another, whatever moment the process was killed at.
void ExpectAllAccountedFor(KilledRun& run) {
  const absl::StatusOr<Examination> found = ExamineCopy(run);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->has_items);
  const KeyStates states = run.States(run.store());
  uint64_t item_bytes = 0;
  for (const auto& [key, state] : states) item_bytes += ItemBytes(key.size(), state.value.size());
  EXPECT_EQ(found->counts.items, states.size());
  EXPECT_EQ(found->counts.dropped(), 0u);
  EXPECT_EQ(found->item_bytes, item_bytes);
  EXPECT_EQ(found->region_bytes, run.region().size());
  EXPECT_EQ(found->reserved_bytes + found->index_bytes + found->item_bytes + found->unused_bytes,
            found->region_bytes);
  EXPECT_EQ(found->slots_empty + found->counts.items, found->slots_total);
}

TEST(ExaminationTest, AccountsForEverySlotAndByte) {
  KilledRun run({.index_slots = 56, .keys = 160});  // the index grows meanwhile
  for (int i = 0; i < 40; ++i) {
    run.Prepare(20);
    const auto found = ExamineCopy(run);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->counts.items, run.States(run.store()).size());
  }
  while (run.store().growing()) run.store().Tidy(At(kKilledRunMs));
  ExpectAllAccountedFor(run);
}

TEST(ExaminationTest, SaysHowTheProcessEnded) {
  KilledRun run({.keys = 5});
  run.Prepare(50);
  EXPECT_FALSE(ExamineCopy(run)->stopped_in_order);
  run.Stop();
  EXPECT_TRUE(ExamineCopy(run)->stopped_in_order);
}

TEST(ExaminationTest, CountsWhatIsDamaged) {
  KilledRun run({.keys = 5});
  const Slot slot(run.writes().Put("key", "value", {}, {}, At(kKilledRunMs)).outcome.slot);
  ASSERT_EQ(ExamineCopy(run)->counts.items, 1u);
  run.region()[slot.offset() + sizeof(ItemHeader)] ^= std::byte{1};
  const auto found = ExamineCopy(run);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->counts.items, 0u);
  EXPECT_EQ(found->counts.torn, 1u);
  EXPECT_EQ(found->item_bytes, 0u);
}

TEST(ExaminationTest, RefusesWhatIsNoMemoryFile) {
  TestRegion region(1 << 20);
  EXPECT_FALSE(Examine(region.span())->has_items);  // new
  EXPECT_TRUE(absl::IsInvalidArgument(Examine(region.span().first(4096)).status()));
  std::memset(region.span().data(), 'x', region.span().size());
  EXPECT_TRUE(absl::IsInvalidArgument(Examine(region.span()).status()));
}

}  // namespace
}  // namespace gannet
