#include "tests/model/replication_model.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/model/model_test.h"

namespace gannet::model::replication {
namespace {

// Scenarios of the full rules. Each has what another one leaves out, so that each is small.
constexpr uint8_t kWrites = kSanitized ? 1 : 2;
constexpr ReplicationScenario kTakeover = {.writes = kWrites, .crashes = 1};
constexpr ReplicationScenario kReads = {
    .writes = kWrites, .crashes = 1, .abandoned = 0, .reads = 1};
constexpr ReplicationScenario kJoin = {.writes = 1, .in_sync = 0b011, .crashes = 1};
constexpr ReplicationScenario kRestart = {
    .writes = 1, .in_sync = 0b011, .crashes = 1, .restarts = 1, .abandoned = 0};
constexpr ReplicationScenario kSecondEpoch = {.crashes = 0, .abandoned = 0, .second_epoch = true};
constexpr ReplicationScenario kHandOver = {.writes = 1, .crashes = 0, .hand_overs = 1};
constexpr ReplicationScenario kHandOverOfTwo = {
    .writes = kWrites, .crashes = 0, .abandoned = 0, .hand_overs = 1};
constexpr ReplicationScenario kHandOverAndRead = {
    .writes = 1, .crashes = 0, .abandoned = 0, .hand_overs = 1, .reads = 1};
// Both backups are told to stop, and the primary dies. Or it hands over meanwhile.
constexpr ReplicationScenario kLeave = {.writes = 1, .crashes = 1, .abandoned = 0, .leaves = 2};
constexpr ReplicationScenario kLeaveUnknown = {
    .writes = 1, .in_sync = 0b011, .crashes = 1, .abandoned = 1, .leaves = 1};
constexpr ReplicationScenario kLeaveAlone = {
    .writes = 1, .in_sync = 0b001, .crashes = 1, .abandoned = 0, .leaves = 1};
constexpr ReplicationScenario kLeaveAndHandOver = {
    .writes = 1, .crashes = 0, .abandoned = 0, .hand_overs = 1, .leaves = 2};

void ExpectHolds(const std::string& name, const ReplicationScenario& scenario,
                 const ReplicationRules& rules = {}) {
  model::ExpectHolds(name, ReplicationModel(rules, scenario));
}

TEST(ReplicationModel, HoldsForTakeovers) { ExpectHolds("takeovers", kTakeover); }
TEST(ReplicationModel, HoldsForAReader) { ExpectHolds("a reader", kReads); }
TEST(ReplicationModel, HoldsForAJoiner) { ExpectHolds("a joiner", kJoin); }
TEST(ReplicationModel, HoldsForAMemberThatStartsAgain) { ExpectHolds("starts again", kRestart); }
TEST(ReplicationModel, HoldsFromTheSecondEpoch) {
  if (kSanitized) GTEST_SKIP() << "two writes make it too large for a sanitizer";
  ExpectHolds("second epoch", kSecondEpoch);
}
TEST(ReplicationModel, HoldsForAHandOver) {
  ExpectHolds("hand-over", kHandOver);
  ExpectHolds("hand-over, two writes", kHandOverOfTwo);
  ExpectHolds("hand-over, a reader", kHandOverAndRead);
}

TEST(ReplicationModel, HoldsForMembersThatLeave) {
  ExpectHolds("members leave", kLeave);
  ExpectHolds("a member leaves, a joiner, an abandoned transaction", kLeaveUnknown);
  ExpectHolds("a joiner leaves a primary that is alone", kLeaveAlone);
  ExpectHolds("members leave during a hand-over", kLeaveAndHandOver);
}

// What survivors would hear of the former primary between learning of the next one and connecting
// to it does no harm. They fence first all the same, as the rule is simpler with it.
TEST(ReplicationModel, HoldsIfSurvivorsFenceOnlyWhenTheyConnect) {
  ExpectHolds("survivors that fence late", {.writes = kWrites, .crashes = 1, .abandoned = 0},
              {.survivors_fence = false});
}

// Another way to the same end: a survivor compares what comes with what it has.
TEST(ReplicationModel, HoldsIfTheRestEndsAtTheFirstDifference) {
  ReplicationRules rules;
  rules.rest = ReplicationRules::Rest::kToOwnEnd;
  rules.opens_when_all_connected = false;
  rules.drops_at_difference = true;
  ExpectHolds("first difference", kSanitized ? kTakeover : kSecondEpoch, rules);
}

TEST(ReplicationModel, HoldsAtLargerSizes) {
  if (!Large()) GTEST_SKIP() << "takes minutes; set LARGE_MODELS=1";
  ExpectHolds("takeovers, two crashes, two abandoned transactions", {.abandoned = 2});
  ExpectHolds("a joiner, two writes", {.in_sync = 0b011, .crashes = 1});
  ExpectHolds("hand-over, two writes, an abandoned transaction", {.crashes = 0, .hand_overs = 1});
  ExpectHolds("second epoch, a crash", {.crashes = 1, .abandoned = 0, .second_epoch = true});
}

struct Variant {
  const char* name;
  ReplicationRules rules;
  ReplicationScenario scenario = {.crashes = 1};
};

class WeakerReplication : public testing::TestWithParam<Variant> {};

// Each variant does harm that users notice.
TEST_P(WeakerReplication, HasACounterexample) {
  ReplicationScenario scenario = GetParam().scenario;
  scenario.harm_only = true;
  ExpectCounterexample(GetParam().name, ReplicationModel(GetParam().rules, scenario));
}

using Rest = ReplicationRules::Rest;

INSTANTIATE_TEST_SUITE_P(
    Commits, WeakerReplication,
    testing::Values(
        Variant{"published before all of R have it", {.commits_by_all = false}},
        Variant{"completions counted without a look at the lease", {.commits_under_lease = false}},
        Variant{"uncommitted records applied", {.applies_committed = false}},
        Variant{"reads not under the lease", {.reads_under_lease = false}},
        Variant{"a READ not under the lease", {.reads_under_lease = false}, kReads},
        Variant{"lease from connected members only", {.lease_from_all = false}},
        Variant{"beacons answered after the ring was read", {.fenced_are_silent = false}}),
    kVariantName);

INSTANTIATE_TEST_SUITE_P(
    Members, WeakerReplication,
    testing::Values(
        Variant{"removed before the transaction is known", {.counts_until_removed = false}},
        Variant{"joiner counted after the transaction", {.counts_joiner_first = false}, kJoin},
        Variant{"added before it has all", {.adds_when_complete = false}, kJoin},
        Variant{"unknown transaction settled by a read", {.settles_by_txn = false}, kJoin},
        Variant{"hand-over settled by a read", {.settles_by_txn = false}, kHandOver},
        Variant{"stale revision", {.compares_revision = false}},
        Variant{"no incarnation", {.names_incarnations = false}, kRestart},
        Variant{"hand-over before the lease is over", {.waits_out_lease = false}, kHandOver},
        Variant{"members that stop without leaving", {.leaves_by_txn = false}, kLeave},
        Variant{"a ready joiner that ends at once", {.ready_joiner_waits = false}, kLeaveAlone},
        Variant{"leaving with a stale revision", {.compares_revision = false}, kLeave},
        Variant{"ends when it is out, with or without a primary",
                {.leaver_awaits_primary = false},
                kLeave}),
    kVariantName);

INSTANTIATE_TEST_SUITE_P(
    Takeovers, WeakerReplication,
    testing::Values(Variant{"ring read before the fence", {.fences_before_reading = false}},
                    Variant{"executing again after a lost transaction",
                            {.loser_reads_again = false}},
                    Variant{"ring memory used again", {.new_rings = false}},
                    Variant{"tail not sent again", {.resends_tail = false}},
                    Variant{"tail sent again with new LSNs", {.keeps_lsns = false}},
                    Variant{"old tail dropped before the new one is whole", {.rest = Rest::kNone}},
                    Variant{"old tail kept to its own end", {.rest = Rest::kToOwnEnd}},
                    Variant{"takeover with the old tail alone", {.overlays = false}},
                    Variant{"clients taken before all are connected",
                            {.opens_when_all_connected = false},
                            kSecondEpoch}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::replication
