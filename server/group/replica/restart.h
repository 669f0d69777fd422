#ifndef GANNET_SERVER_GROUP_REPLICA_RESTART_H_
#define GANNET_SERVER_GROUP_REPLICA_RESTART_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/group/replica/register.h"
#include "server/log/changes/kept_run.h"

namespace gannet {

// What is known of a node's newest process.
struct NodeSeen {
  uint64_t incarnation = 0;
  uint64_t applied = 0;         // LSN, as it says itself
  std::optional<KeptRun> kept;  // what an earlier process left on its disk; nullopt: not known
  uint16_t stream_version = 0;  // the newest that it speaks
  // Its addresses, if it has several rails; empty: one, or they are not known. Such a process takes
  // links that go on over another rail (docs/rails.md).
  std::vector<std::string> rails = {};
};
class GroupDirectory;

// Returns whose disk, of those that are known, is the one to begin with: the one that has opened
// the highest epoch, or else has most. Empty: no disk has items of this history.
std::string BestDisk(const std::vector<std::string>& members, uint64_t history,
                     const GroupDirectory& directory);

// Whether a process begins its group again with what a disk has (docs/group-recovery.md, "A whole
// group that restarts"). Pure.
struct RestartPlan {
  // Who begins; nullopt: nobody, because of `awaits`.
  std::optional<GroupMember> leader;
  // The processes of all who were in sync, without the leader's. The transaction compares that
  // these are their nodes' newest ones.
  std::vector<GroupMember> others;
  // What would have to come, for people: "n2 has not come back".
  std::string awaits;
  // Whose disk an operator would begin with, of those that are known: the one that has opened the
  // highest epoch, or else has most. Empty: no disk has items of this history.
  std::string best;
};

// Everybody finds the same leader, if everybody sees the same.
//
// 1. Each process in sync has been replaced by one that has found its run on the disk. A run is
//    locked by the process that writes it. So none of them lives.
// 2. If the primary's run was kept with sync always, the run leads that has opened the highest
//    epoch of all: it has what was acknowledged then, and nobody took clients later. Its process
//    may have been taken out of those in sync since. It must be sure that no other run has opened a
//    later epoch: it has opened this epoch, or the one before, whose only successor is the primary;
//    or each member of the group has come back with its run.
// 3. If not, the run with the highest LSN leads. No other member may have announced more: it may
//    have it in memory.
RestartPlan PlanRestart(const GroupConfiguration& now, const GroupTerms& terms,
                        const GroupDirectory& directory);

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_RESTART_H_
