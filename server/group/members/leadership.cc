#include "server/group/members/leadership.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "glog/logging.h"

namespace gannet {

Leadership::Leadership(const GroupContext& context, const GroupTerms& terms,
                       const GroupRegister& known, const RingTail& tail)
    : context_(context),
      terms_(terms),
      opening_(tail),
      lease_(TimesOf(terms), context.rails.size() > 1),
      commit_(opening_.first_lsn()),
      membership_(context.group.config_store, &lease_, &commit_, context.self, known,
                  context.clocks.boot.Now()),
      hand_over_(TimesOf(terms), &membership_),
      min_copies_(terms.min_copies) {}

bool Leadership::TryToOpen(PrimaryRing* ring, bool all_linked, BootTime now) {
  GANNET_CHECK(phase() == PrimaryPhase::kOpening, "the primary is open");
  if (all_linked) ring->SendTail(&opening_);
  if (!opening_.IsOver(ring->committed(), lease_, now)) return false;
  phase_.To(PrimaryPhase::kApplies);
  return true;
}

void Leadership::Open() {
  phase_.To(PrimaryPhase::kOpen);
  LOG(INFO) << "takes clients, as primary of epoch " << epoch();
}

void Leadership::FollowOperator(BootTime now) {
  const GroupTerms terms = context_.group.directory->terms();
  const std::vector<std::string>& members = terms.members;
  min_copies_ = terms.min_copies;
  for (const GroupMember& member : configuration().in_sync) {
    const bool wanted = std::ranges::find(members, member.node) != members.end();
    if (!wanted && member != context_.self) membership_.OnBroken(member, now);
  }
  const std::optional<std::string> successor = context_.group.directory->WantedSuccessor();
  if (!successor || phase() != PrimaryPhase::kOpen) return;
  context_.group.directory->ForgetWantedSuccessor();
  for (const GroupMember& member : configuration().in_sync) {
    if (member.node != *successor || member == context_.self) continue;
    LOG(INFO) << "hands over to " << member.node << ", as an operator wants";
    return BeginHandOver(member, now);
  }
  LOG(WARNING) << "does not hand over to " << *successor
               << ", which is primary already, or not in sync";
}

void Leadership::StepDown(BootTime now, std::string_view why) {
  if (phase() != PrimaryPhase::kOpen) return;
  for (const GroupMember& member : configuration().in_sync) {
    if (member == context_.self || !lease_.IsHeard(member.incarnation, now)) continue;
    LOG(INFO) << "hands over to " << member.node << ", as " << why;
    return BeginHandOver(member, now);
  }
}

void Leadership::BeginHandOver(const GroupMember& successor, BootTime now) {
  hand_over_.Begin(successor, now);
  phase_.To(PrimaryPhase::kHandsOver);
}

bool Leadership::FollowHandOver(BootTime now) {
  const bool told_last = hand_over_.Poll(now);
  if (phase() == PrimaryPhase::kHandsOver && hand_over_.stopped()) {
    phase_.To(PrimaryPhase::kStepsDown);
  } else if (phase() == PrimaryPhase::kStepsDown && !hand_over_.begun()) {
    LOG(WARNING)
        << "goes on as primary: the successor was not named, as it is silent or not in sync";
    phase_.To(PrimaryPhase::kOpen);
  }
  return told_last;
}

void Leadership::FollowRegister() {
  if (membership_.deposed()) phase_.To(PrimaryPhase::kDeposed);
}

void Leadership::TellStanding(int64_t lease_ns_max, BootTime now) {
  const bool grants = phase() != PrimaryPhase::kStepsDown && membership_.MayCommit();
  context_.standing->SetServes(grants);
  const int64_t left = grants ? lease_.LeftNs(now) : 0;
  context_.standing->SetLeaseMax(std::min(hand_over_.LeaseNsMax(), lease_ns_max));
  context_.standing->SetLeaseEnd(left > 0 ? now + left : BootTime());
}

}  // namespace gannet
