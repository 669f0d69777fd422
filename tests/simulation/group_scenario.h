#ifndef GANNET_TESTS_SIMULATION_GROUP_SCENARIO_H_
#define GANNET_TESTS_SIMULATION_GROUP_SCENARIO_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "server/control/server.h"
#include "server/replica/register.h"
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
    kCount,
  };
  Type type = Type::kKill;
  int64_t at_ns = 0;  // since the run began
  int64_t duration_ns = 0;
};

// All parameters of a run of a group, drawn from its seed.
struct GroupScenario {
  static constexpr uint32_t kServers = 3;
  static constexpr uint32_t kClientsMax = 5;
  static constexpr uint32_t kNodes = kServers + kClientsMax;

  explicit GroupScenario(Run* run);
  std::string ToString() const;

  Server::Options server;
  GroupTerms terms;
  std::array<int64_t, kServers> drifts{};  // parts of 2^20
  bool third_comes_late = false;           // until nothing goes wrong any more there are two
  uint32_t clients = 0;
  uint32_t keys = 0;
  uint32_t acts_per_client = 0;
  int64_t active_ns = 0;
  int64_t calm_ns = 0;
  uint32_t hasty_percent = 0;
  uint32_t locks_percent = 0;
  uint32_t value_bytes_max = 0;
  std::string faults;              // break nothing
  std::string breaking_faults;     // during GroupEvent::kBreaking
  std::vector<GroupEvent> events;  // by time
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_GROUP_SCENARIO_H_
