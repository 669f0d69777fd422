#ifndef GANNET_TESTS_MODEL_RESTART_MODEL_H_
#define GANNET_TESTS_MODEL_RESTART_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::restart {

// A group whose members keep what they have on disks, with --sync=always, and that begins again by
// itself when all in sync are gone (docs/group-recovery.md, "A whole group that restarts"). Each
// process has a run of its own on its node's disk. The former run goes when the new one is whole. A
// primary acknowledges a write when all in sync have it in memory and its own disk has it.
//
// What is to hold: whoever begins the group again has all that was acknowledged, and all that was
// read. No process that is in sync lives then. If it was begun again and its primary died, it can
// be begun once more without an operator. So it can if all have come back with their disks.
//
// Takeovers, joins and removals are one step each, as the replication model has what is between. A
// takeover may be executed after its sender's death, until the next process of its node has
// announced itself. Nobody is cut off from the register.
struct RestartRules {
  bool all_are_back = true;          // it begins when all in sync have come back
  bool runs_match = true;            // each with the disk of the process that was in sync
  bool opened_matters = true;        // from the disk that has opened the highest epoch
  bool former_may_lead = true;       // which may be an earlier one than the register's
  bool gap_wants_all = true;         // if more than one came since, when all nodes are back
  bool disk_before_answers = true;   // a write is acknowledged when the primary's disk has it
  bool disk_before_clients = true;   // a new primary's disk has all before it takes clients
  bool whole_before_clients = true;  // and its run is whole
  bool restored_has_opened = true;   // a run that was made of the former one counts as that did
  bool claims_before = true;         // the former run is claimed for the new process beforehand
  bool compares_processes = true;    // the transaction compares who has announced himself
};

class RestartModel {
 public:
  static constexpr int kNodesMax = 3;
  static constexpr int kWrites = 1;
  enum Role : uint8_t { kWaits, kHasCopy, kLeads };
  using Log = std::array<uint8_t, kWrites>;  // numbers of writes; 0: none

  // What lies on a disk of a process that has ended.
  struct Run {
    uint8_t process;  // 0: there is none
    uint8_t history;
    uint8_t opened;  // the epoch in which it took clients; 0: none
    uint8_t claimed_by;
    uint8_t claimed_history;
    uint8_t claimed_epoch;
    Log log;
  };
  struct Node {
    uint8_t process;    // counts
    uint8_t announced;  // the newest process of this name that the register knows
    uint8_t alive;
    uint8_t role;
    uint8_t open;
    uint8_t whole;   // its own run
    uint8_t opened;  // noted in its own run
    uint8_t synced;  // records in its own run
    Log log;         // in memory
    Run former;
  };
  // A transaction that begins the group again, and is under way.
  struct Txn {
    uint8_t under_way;
    uint8_t outdated;  // the register has another revision
    uint8_t node;
    uint8_t process;
    uint8_t history;
    std::array<uint8_t, kNodesMax> announced;
  };
  struct State {
    std::array<Node, kNodesMax> nodes;
    std::array<uint8_t, kNodesMax> in_sync;  // the process, or 0
    uint8_t epoch;
    uint8_t primary;
    uint8_t history;
    uint8_t begun_again;  // this epoch began so
    uint8_t written;
    uint8_t spoiled;  // a disk was lost, or a name was used twice
    uint8_t lost;
    uint8_t misled;
    Log acknowledged;
    std::array<Txn, 2> txns;
  };

  RestartModel(const RestartRules& rules, int nodes) : rules_(rules), nodes_(nodes) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  void PrimarySteps(const State& state, int p, const Emit& emit) const;
  void FollowSteps(const State& state, int n, const Emit& emit) const;
  void DiskSteps(const State& state, int n, const Emit& emit) const;
  void LifeSteps(const State& state, int n, const Emit& emit) const;
  void RestartSteps(const State& state, int n, const Emit& emit) const;
  void Execute(const State& state, size_t which, const Emit& emit) const;
  bool MayBegin(const State& state, int n) const;
  bool AllCameBackWithTheirRuns(const State& state) const;
  // Whether the transaction of a process that begins with this run compares all nodes' processes.
  static bool RestsOnAll(const State& state, const Run& run);

  const RestartRules rules_;
  const int nodes_;
};

}  // namespace gannet::model::restart

#endif  // GANNET_TESTS_MODEL_RESTART_MODEL_H_
