// Compares the runs that the nodes' newest processes have found: the best one has opened the
// highest epoch, and then has the highest LSN. Every reason why it may not lead yet is a sentence
// for people (WhyNotBack, WhyNotBest).

#include "server/group/replica/restart.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/group/replica/group_directory.h"

namespace gannet {
namespace {

struct Back {
  GroupMember process;
  KeptRun kept;
};

// Returns the run of this history that the node's newest process has found, if any.
std::optional<Back> BackOf(const std::string& node, uint64_t history,
                           const GroupDirectory& directory) {
  const std::optional<NodeSeen> seen = directory.NodeOf(node);
  if (!seen || !seen->kept || seen->kept->history != history) return std::nullopt;
  return Back{.process = {.node = node, .incarnation = seen->incarnation}, .kept = *seen->kept};
}

// Returns why the member's disk does not count, or "" if it does.
std::string WhyNotBack(const GroupMember& member, uint64_t history,
                       const std::optional<NodeSeen>& seen) {
  if (!seen || seen->incarnation == member.incarnation) return " has not come back";
  if (!seen->kept) return " has come back without what its disk had of the group's items";
  if (seen->kept->history != history) return " has items of another history on its disk";
  if (seen->kept->process != member.incarnation) return " has another run on its disk";
  return "";
}

const Back* MostOf(const std::vector<Back>& all) {
  const auto most = std::ranges::max_element(all, {}, [](const Back& it) { return it.kept.lsn; });
  return most == all.end() ? nullptr : &*most;
}

// Returns the run that has opened the highest epoch; of those that have opened none, the one with
// the highest LSN.
const Back* BestOf(const std::vector<Back>& all) {
  const auto best = std::ranges::max_element(
      all, {}, [](const Back& it) { return std::pair(it.kept.opened, it.kept.lsn); });
  return best == all.end() ? nullptr : &*best;
}

// Returns who has announced more than this LSN, or nullopt.
std::optional<std::string> WhoHasMore(uint64_t lsn, const std::vector<std::string>& members,
                                      const GroupDirectory& directory) {
  for (const std::string& node : members) {
    const std::optional<NodeSeen> seen = directory.NodeOf(node);
    if (seen && seen->applied > lsn) return node;
  }
  return std::nullopt;
}

// With sync always: returns why another run than `best` may have opened a later epoch, or "".
// All in sync are back.
std::string WhyNotBest(const Back& best, const GroupMember& primary, uint64_t epoch,
                       const std::vector<std::string>& members, const std::vector<Back>& known) {
  const KeptRun& kept = best.kept;
  const bool is_primary = best.process.node == primary.node;
  if (kept.opened == 0 || !kept.always || kept.opened > epoch - (is_primary ? 0 : 1)) {
    return "no disk says in which epoch clients were taken";
  }
  if (kept.opened + 1 >= epoch) return "";
  for (const std::string& node : members) {
    const auto back =
        std::ranges::find(known, node, [](const Back& it) { return it.process.node; });
    if (back != known.end() && back->kept.always) continue;
    return absl::StrCat(node, " may have taken clients after epoch ", kept.opened,
                        ", and has not come back with its disk; ", primary.node,
                        " had not, as primary of epoch ", epoch);
  }
  return "";
}

std::vector<Back> BackOf(const std::vector<std::string>& members, uint64_t history,
                         const GroupDirectory& directory) {
  std::vector<Back> known;
  for (const std::string& node : members) {
    if (auto back = BackOf(node, history, directory)) known.push_back(*std::move(back));
  }
  return known;
}

}  // namespace

std::string BestDisk(const std::vector<std::string>& members, uint64_t history,
                     const GroupDirectory& directory) {
  const std::vector<Back> known = BackOf(members, history, directory);
  const Back* const best = BestOf(known);
  return best == nullptr ? "" : best->process.node;
}

RestartPlan PlanRestart(const GroupConfiguration& now, const GroupTerms& terms,
                        const GroupDirectory& directory) {
  RestartPlan plan;
  const std::vector<Back> known = BackOf(terms.members, terms.history, directory);
  const Back* const best = BestOf(known);
  if (best != nullptr) plan.best = best->process.node;
  std::vector<Back> all;  // who were in sync
  std::optional<Back> primary;
  for (const GroupMember& member : now.in_sync) {
    const std::optional<NodeSeen> seen = directory.NodeOf(member.node);
    if (const std::string why = WhyNotBack(member, terms.history, seen); !why.empty()) {
      absl::StrAppend(&plan.awaits, plan.awaits.empty() ? "" : ", ", member.node, why);
      continue;
    }
    all.push_back(
        {.process = {.node = member.node, .incarnation = seen->incarnation}, .kept = *seen->kept});
    if (member == now.primary) primary = all.back();
  }
  if (!plan.awaits.empty() || !primary) return plan;
  const Back* leader = &*primary;
  if (primary->kept.always) {
    if (best == nullptr) return plan;  // it is no member any more
    leader = best;
    plan.awaits = WhyNotBest(*best, now.primary, now.epoch, terms.members, known);
  } else {
    if (const Back* most = MostOf(all); most->kept.lsn > primary->kept.lsn) leader = most;
    if (const auto node = WhoHasMore(leader->kept.lsn, terms.members, directory)) {
      plan.awaits = absl::StrCat(*node, " has announced more than all of these disks have");
    }
  }
  if (!plan.awaits.empty()) return plan;
  plan.leader = leader->process;
  // Those who were taken out count, too, if the plan rests on what they have opened.
  if (leader->kept.opened + 1 < now.epoch && primary->kept.always) all = known;
  for (const Back& back : all) {
    if (back.process != leader->process) plan.others.push_back(back.process);
  }
  return plan;
}

}  // namespace gannet
