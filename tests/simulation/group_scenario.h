#ifndef GANNET_TESTS_SIMULATION_GROUP_SCENARIO_H_
#define GANNET_TESTS_SIMULATION_GROUP_SCENARIO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/cluster_config.h"
#include "server/group/replica/register.h"
#include "server/main/control/server.h"
#include "softverbs/tests/support/key_file.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

// A fault of a group, at a given time.
struct GroupEvent {
  enum class Type : uint8_t {
    kKill,          // a process ends, and another one comes
    kKillSoon,      // the same, soon after the node's next process began to join
    kStop,          // a node is not polled
    kStopWithin,    // a node is stopped where it reads its clock
    kStopPart,      // one thread of a server is not polled
    kStopClient,    // within a Poll
    kCut,           // one direction between two nodes
    kCutOff,        // a server from the others, both ways
    kCutClients,    // clients from a server, both ways
    kRegisterAway,  // no answers
    kBreaking,      // the device fails requests
    kHandOver,      // an operator wants another primary
    kLeave,        // a server is told to stop, or all of its group at once; then another one starts
    kMove,         // an operator wants partitions to move
    kStopMoves,    // an operator gives all moves up
    kKillBackups,  // all of the first group at once, if its primary lives
    kLoseEtcd,     // etcd loses its data, and an operator makes the cluster again with what lives
    kGarbage,      // etcd has what Gannet has not written
  };
  static constexpr uint64_t kOfOneGroup = static_cast<uint64_t>(Type::kMove);
  // Returns any fault of one group that has leases of this length, without a time.
  static GroupEvent AnyFault(Run* run, int64_t lease_ns);
  Type type = Type::kKill;
  int64_t at_ns = 0;  // since the run began
  int64_t duration_ns = 0;
  bool while_closed = false;  // it waits until a partition is closed
};

// All parameters of a run of a group, or of a cluster, drawn from its seed.
struct GroupScenario {
  // kWalk: of two groups, and a third one that comes and goes. What happens is chosen step by step.
  // kBadEtcd: two groups, whose etcd loses its data, or has garbage. Members have the real store.
  // kHotKey: one group, which leases items. What happens follows from what clients answer from
  // copies.
  enum class Kind : uint8_t { kOneGroup, kTwoGroups, kWalk, kBadEtcd, kHotKey };
  // Nodes of the simulated network.
  static constexpr uint32_t kNodesMax = 8;
  static constexpr uint32_t kClientsMax = 5;

  // `steps`: of a walk.
  GroupScenario(Run* run, Kind kind, uint32_t steps);
  std::string ToString() const;
  // Whether members and clients have keys. Then a server refuses who asks by another clock than the
  // run's, such as the machine's.
  bool with_keys() const { return !server.auth_file.empty(); }
  uint32_t servers() const { return static_cast<uint32_t>(group_of.size()); }
  bool moves() const { return groups.size() > 1; }
  // Whether servers lease items, and clients have near caches.
  bool leases() const { return server.item_lease_ms != 0; }
  // A key that all clients GET again and again, and write only when its primary loses its place.
  std::optional<uint32_t> hot_key() const;

  const Kind kind;
  const uint32_t steps;
  // Clients show the first key, as one with the right "replica" may only read.
  const test_support::KeyFile key_file{
      "1 000102030405060708090a0b0c0d0e0f\n"
      "2 101112131415161718191a1b1c1d1e1f replica\n"};
  Server::Options server;
  std::vector<GroupTerms> groups;
  std::vector<uint64_t> clocks_ahead_ms;  // by group: of their clocks for expiries
  std::vector<uint32_t> group_of;         // by node
  std::vector<int64_t> drifts;            // by node, in parts of 2^20
  std::vector<uint16_t> versions;         // by node: the newest version of the stream, at first
  bool last_comes_late = false;           // until nothing goes wrong any more there is one less
  uint32_t clients = 0;
  uint32_t keys = 0;
  uint32_t acts_per_client = 0;
  int64_t active_ns = 0;
  int64_t calm_ns = 0;
  uint32_t hasty_percent = 0;
  uint32_t locks_percent = 0;
  uint32_t ttl_percent = 0;
  uint32_t value_bytes_max = 0;
  std::string faults;              // break nothing
  std::string breaking_faults;     // during GroupEvent::kBreaking
  std::vector<GroupEvent> events;  // by time
  // Of a cluster.
  std::vector<std::string> names;    // of groups
  ClusterConfig map;                 // at first. It may not have all groups
  std::vector<uint16_t> partitions;  // those of the clients' keys
  bool moves_when_calm = false;

 private:
  void ChooseClocks(uint64_t seed);
  void AddLossOfCopies(uint64_t seed);
  void LeaseItems(uint64_t seed);
  void DrawHotKey(Run* run);
  void DrawGroups(Run* run, Kind kind);
  void DrawEvents(Run* run);
  void DrawTroublesOfEtcd(Run* run);
  void DrawMap(Run* run);
  void DrawMoves(Run* run);
};

// Returns the keys that clients of a group use.
std::vector<std::string> AllKeys();

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_GROUP_SCENARIO_H_
