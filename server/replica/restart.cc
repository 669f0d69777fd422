#include "server/replica/restart.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

struct Back {
  GroupMember process;
  KeptRun kept;
};

// Returns why the member's disk does not count, or "" if it does.
std::string WhyNotBack(const GroupMember& member, uint64_t history,
                       const std::optional<NodeSeen>& seen) {
  if (!seen || seen->incarnation == member.incarnation) return " has not come back";
  if (!seen->kept) return " has come back without what its disk had of the group's items";
  if (seen->kept->history != history) return " has items of another history on its disk";
  if (seen->kept->process != member.incarnation) return " has another run on its disk";
  return "";
}

const Back& MostOf(const std::vector<Back>& all) {
  return *std::ranges::max_element(all, {}, [](const Back& it) { return it.kept.lsn; });
}

// Returns who has announced more than this LSN, or nullopt.
std::optional<std::string> WhoHasMore(uint64_t lsn, const std::vector<std::string>& members,
                                      const FindNodeSeen& find) {
  for (const std::string& node : members) {
    const std::optional<NodeSeen> seen = find(node);
    if (seen && seen->applied > lsn) return node;
  }
  return std::nullopt;
}

}  // namespace

RestartPlan PlanRestart(const GroupConfiguration& now, const GroupTerms& terms,
                        const FindNodeSeen& find) {
  RestartPlan plan;
  std::vector<Back> all;
  const Back* primary = nullptr;
  all.reserve(now.in_sync.size());
  for (const GroupMember& member : now.in_sync) {
    const std::optional<NodeSeen> seen = find(member.node);
    if (const std::string why = WhyNotBack(member, terms.history, seen); !why.empty()) {
      absl::StrAppend(&plan.awaits, plan.awaits.empty() ? "" : ", ", member.node, why);
      continue;
    }
    all.push_back(
        {.process = {.node = member.node, .incarnation = seen->incarnation}, .kept = *seen->kept});
    if (member == now.primary) primary = &all.back();
  }
  if (!plan.awaits.empty() || primary == nullptr) return plan;
  const Back* leader = primary;
  if (!primary->kept.always) {
    if (const Back& most = MostOf(all); most.kept.lsn > primary->kept.lsn) leader = &most;
    if (const auto node = WhoHasMore(leader->kept.lsn, terms.members, find)) {
      plan.awaits = absl::StrCat(*node, " has announced more than all of these disks have");
      return plan;
    }
  } else if (primary->kept.opened != now.epoch) {
    plan.awaits = absl::StrCat(primary->process.node, " had not taken clients yet as primary of ",
                               "epoch ", now.epoch, ", so a former primary may have more");
    return plan;
  }
  plan.leader = leader->process;
  for (const Back& back : all) {
    if (back.process != leader->process) plan.others.push_back(back.process);
  }
  return plan;
}

}  // namespace gannet
