#include "server/group/members/follower_admission.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/layout/superblock.h"
#include "server/group/replica/neighbours.h"

namespace gannet {
namespace {

constexpr const char* kOtherRing = "its ring has another length";
constexpr const char* kLinkedAlready = "it has a link already";
constexpr const char* kServesNotYet = "the primary does not serve yet: try again";
constexpr const char* kTooLate = "it comes too late: it has to join again";

}  // namespace

std::string FollowerAdmission::WhyNot(const ReplicaHello& hello, bool linked) const {
  if (std::string why = WhyVersionsDoNotFit(hello, kLayoutVersion, ring_.version()); !why.empty()) {
    return why;
  }
  if (hello.memory_bytes < context_.grant.region_bytes) {
    return absl::StrCat("it has ", hello.memory_bytes, " bytes of memory, and needs the primary's ",
                        context_.grant.region_bytes, ": use the same --memory");
  }
  if (hello.workers != context_.workers) {
    return absl::StrCat("it has ", hello.workers, " workers, the primary ", context_.workers,
                        ": use the same --workers");
  }
  if (hello.ring_bytes != ring_.bytes()) return kOtherRing;
  if (linked) return kLinkedAlready;
  const std::vector<std::string> members = context_.group.directory->terms().members;
  if (std::ranges::find(members, NameOf(hello)) == members.end()) {
    return absl::StrCat("node ", std::string(NameOf(hello)), " is no member: kvcli cluster add");
  }
  const bool joins = hello.history == 0;
  const bool counts = lead_.membership().Counts(hello.incarnation);
  if (joins && !lead_.open()) return kServesNotYet;
  if (joins && counts) return "it is in sync already";
  if (joins) return "";
  if (hello.history != lead_.terms().history) return "it has another history";
  const bool sent = ring_.writer().end().lsn != lead_.opening().first_lsn();
  if (!counts || lead_.phase() != PrimaryPhase::kOpening || sent) return kTooLate;
  return "";
}

std::string FollowerAdmission::WhyNot(const ReceiverHello& hello, bool linked) const {
  if (std::string why = WhyVersionsDoNotFit(hello, kLayoutVersion, ring_.version()); !why.empty()) {
    return why;
  }
  if (hello.ring_bytes != ring_.bytes()) return kOtherRing;
  if (linked) return kLinkedAlready;
  return lead_.open() ? "" : kServesNotYet;
}

std::string FollowerAdmission::WhyNot(const ReplicaResume& resume, const Follower* former,
                                      BootTime now) const {
  if (resume.epoch != lead_.epoch()) return "it means the primary of another epoch";
  if (resume.ring_bytes != ring_.bytes()) return kOtherRing;
  if (former == nullptr || former->link->revoked()) return kTooLate;
  const bool counts = lead_.membership().Counts(resume.incarnation);
  if (former->state.now() == FollowerState::kCounted && !counts) return kTooLate;
  if (!former->link->closing()) return "";
  if (!former->may_resume()) return "the primary has ended its link";
  return counts || now < former->resumes_until ? "" : kTooLate;
}

bool FollowerAdmission::Speaks(const GroupMember& member, uint16_t version) const {
  const std::optional<NodeSeen> seen = context_.group.directory->NodeOf(member.node);
  return seen && seen->incarnation == member.incarnation && seen->stream_version >= version;
}

}  // namespace gannet
