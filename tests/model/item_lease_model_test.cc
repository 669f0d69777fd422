#include "tests/model/item_lease_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::item_lease {
namespace {

using Order = ItemLeaseRules::Order;

constexpr ItemLeaseRules kGrowsLater = {.grows_at_once = false};

TEST(ItemLeaseModel, HoldsForItemsThatMove) {
  ExpectHolds("two keys, moves", ItemLeaseModel({}, {.moves = true}));
}
TEST(ItemLeaseModel, HoldsForChangesThatWaitAndItemsThatExpire) {
  ExpectHolds("two keys, waiting, expiry", ItemLeaseModel({}, {.waiting = true, .expiry = true}));
}
TEST(ItemLeaseModel, HoldsForFlush) {
  ExpectHolds("two keys, FLUSH", ItemLeaseModel({}, {.flush = true}));
}
TEST(ItemLeaseModel, HoldsForTwoClients) {
  ExpectHolds("two clients, moves, own writes",
              ItemLeaseModel({}, {.keys = 1, .clients = 2, .moves = true, .own_write = true}));
}
TEST(ItemLeaseModel, HoldsForAllTogether) {
  constexpr ItemLeaseScenario kAll = {
      .keys = 1, .moves = true, .waiting = true, .expiry = true, .flush = true, .own_write = true};
  ExpectHolds("one key, all together", ItemLeaseModel({}, kAll));
}

// So a write needs no store of its own to the header.
TEST(ItemLeaseModel, TheGenerationMayGrowWithTheNextEnd) {
  ExpectHolds("grows later, two keys, moves", ItemLeaseModel(kGrowsLater, {.moves = true}));
  ExpectHolds("grows later, two keys, FLUSH", ItemLeaseModel(kGrowsLater, {.flush = true}));
}

TEST(ItemLeaseModel, HoldsAtLargerSizes) {
  if (!Large()) GTEST_SKIP() << "takes minutes; set LARGE_MODELS=1";
  constexpr ItemLeaseScenario kChanges = {.moves = true, .waiting = true, .expiry = true};
  constexpr ItemLeaseScenario kFlushes = {.moves = true, .waiting = true, .flush = true};
  ExpectHolds("L is 3", ItemLeaseModel({}, {.lease = 3, .moves = true, .waiting = true}));
  ExpectHolds("two keys, moves, waiting, expiry", ItemLeaseModel({}, kChanges));
  ExpectHolds("two keys, moves, waiting, FLUSH", ItemLeaseModel({}, kFlushes));
  ExpectHolds("grows later, two keys, moves, waiting, FLUSH",
              ItemLeaseModel(kGrowsLater, kFlushes));
  ExpectHolds("two keys, two clients", ItemLeaseModel({}, {.clients = 2}));
}

struct Variant {
  const char* name;
  ItemLeaseRules rules;
  ItemLeaseScenario scenario = {};
};

class WeakerItemLease : public testing::TestWithParam<Variant> {};

TEST_P(WeakerItemLease, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, ItemLeaseModel(variant.rules, variant.scenario));
}

constexpr ItemLeaseScenario kMoves = {.keys = 1, .moves = true};
constexpr ItemLeaseScenario kExpiry = {.keys = 1, .expiry = true};
constexpr ItemLeaseScenario kWaiting = {.keys = 1, .waiting = true};
constexpr ItemLeaseScenario kFlush = {.keys = 1, .flush = true};
constexpr ItemLeaseScenario kOne = {.keys = 1};

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerItemLease,
    testing::Values(
        Variant{"words READ before the header count", {.words_after_header = false}, kOne},
        Variant{"a header of two halves", {.header_is_whole = false}, kOne},
        Variant{"the generation does not grow", {.order = Order::kNoGeneration}, kOne},
        Variant{
            "the generation grows before the word goes", {.order = Order::kGenerationFirst}, kOne},
        Variant{"the end is read before the generation grows", {.order = Order::kEndFirst}, kOne},
        Variant{"the generation is to grow before the word goes",
                {.order = Order::kGenerationFirst, .grows_at_once = false},
                kOne},
        Variant{"the end is read before the generation is to grow",
                {.order = Order::kEndFirst, .grows_at_once = false},
                kOne},
        Variant{"an end is stored with a former generation", {.renews_in_one_step = false}, kOne},
        Variant{"a write does not wait", {.waits = false}, kOne},
        Variant{"leased again before the end is over", {.bars = false}, kOne},
        Variant{"an update does not look at the mark", {.updates_look = false}, kOne},
        Variant{"a write looks without the lock", {.looks_under_lock = false}, kOne},
        Variant{"an eviction does not wait", {.evictions_wait = false}, kOne},
        Variant{"a lease that ends without a write is forgotten",
                {.ended_leases_stay_marked = false},
                kOne},
        Variant{"FLUSH does not look at each key", {.flush_looks_at_keys = false}, kFlush},
        Variant{"a move leaves the mark at the old place", {.mark_is_the_keys = false}, kMoves},
        Variant{"a write takes out the word of the place", {.takes_out_by_key = false}, kMoves},
        Variant{"leased while a change waits", {.no_grant_while_a_change_waits = false}, kWaiting},
        Variant{"the end decreases", {.end_never_decreases = false}, kExpiry},
        Variant{"no look at the copys expiry", {.looks_at_expiry = false}, kExpiry},
        Variant{"the clock jumps ahead", {.clock_never_jumps = false}, kOne},
        Variant{"by the lower bound of the clock", {.upper_bound = false}, kOne},
        Variant{"by a clock of before the call", {.clock_read_within_call = false}, kOne},
        Variant{"own writes do not come first",
                {.own_writes_first = false},
                {.keys = 1, .own_write = true}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::item_lease
