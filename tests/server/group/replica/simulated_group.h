#ifndef GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_GROUP_H_
#define GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_GROUP_H_

#include <cstdint>
#include <string>

#include "tests/server/group/replica/simulated_world.h"

namespace gannet {

// A group of three nodes in virtual time, from a seed, over takeovers, removals, joins and
// hand-overs. Rings, leases, commits and all decisions are the real ones. Beacons and answers are
// late or lost, WRITEs are late, each direction between two nodes may be cut. Processes crash, and
// stop and go on, the primary also between polling completions and counting them. Clocks run at
// different rates. The register is away, forgets transactions, and executes them late. Clients send
// again what was not answered.
//
// A WRITE that was posted before the fence may complete at the primary without having landed, as
// that of a primary which was stopped in the middle of a copy. One that was posted later never
// completes.
//
// Left out: a joiner's walk (its store is there at once), sessions, full rings.
class SimulatedGroup {
 public:
  explicit SimulatedGroup(uint64_t seed);
  // Runs for 14 seconds, and then 12 more in which nothing goes wrong. All have to come back within
  // 8 of these, and to be there in the end.
  // Returns what went wrong, or "" if nothing did.
  std::string Run();

  using Tallies = SimulatedWorld::Tallies;
  const Tallies& tallies() const { return world_.tallies; }

 private:
  void Faults();
  void MaybeCrash();
  void Check();
  void CheckPrimary(SimulatedMember* member);
  // Returns what is not as it has to be in the end, or "".
  std::string WhoIsMissing();
  // Of a calm group: all are back before long.
  void CheckProgress();
  // Returns whether somebody who is in sync lives, other than `except`.
  bool SomebodyLives(const SimulatedMember* except) const {
    return SomebodyLives(world_.shared.now.configuration, except);
  }
  bool SomebodyLives(const GroupConfiguration& now, const SimulatedMember* except) const;
  void OnLost(const GroupConfiguration& before);
  SimulatedMember* RegistersPrimary();

  SimulatedWorld world_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_GROUP_H_
