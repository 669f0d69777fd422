#ifndef GANNET_TESTS_SIMULATION_SCENARIO_H_
#define GANNET_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/main/control/server.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

// After so much silence a peer is dead. Less than the default, so that stalls are on both sides of
// it.
inline constexpr uint32_t kSilenceMs = 1500;

// Something that happens to the world at a given time.
struct Event {
  enum class Type : uint8_t {
    kStallServer,     // the control part and all workers are not polled
    kStallWorker,     // one worker is not polled
    kStallClient,     // one client is not polled
    kSuspend,         // nobody is polled, as on a suspended machine
    kRestart,         // the server stops, and another begins
    kBreak,           // a client's connections break, as after a fault
    kReplaceClient,   // a client goes, and another comes
    kBreakingFaults,  // the device fails requests for a while
    kRudePeer,        // a rude peer comes
    kCount,           // of those that any run may have
    kLinkDown,        // the link of a rail goes down for a while
  };
  Type type = Type::kStallServer;
  int64_t at_ns = 0;  // since the run began
  int64_t duration_ns = 0;
};

// All parameters of a run, drawn from its seed.
struct Scenario {
  explicit Scenario(Run* run);
  std::string ToString() const;

  Server::Options server;
  uint32_t clients = 0;
  uint32_t keys = 0;
  uint32_t acts_per_client = 0;
  int64_t active_ns = 0;
  int64_t calm_ns = 0;     // follows, before everybody becomes idle
  uint32_t besiegers = 0;  // peers that take no replies, from the beginning to the end
  bool rude_peers_stay = false;
  bool lock_thief = false;  // a peer that writes under others' locks, from the beginning
  bool crowded = false;     // the server takes few connections, and more connect at the end
  bool besieged = false;    // at the end, by peers that take no replies
  bool fills = false;       // the store is filled at the end
  uint32_t hasty_percent = 0;
  uint32_t locks_percent = 0;
  uint32_t leases_percent = 0;  // of the locks
  uint32_t ttl_percent = 0;
  uint32_t value_bytes_max = 0;
  std::string faults;           // break nothing; last all the time
  std::string breaking_faults;  // during Event::kBreakingFaults
  std::vector<Event> events;    // by time
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_SCENARIO_H_
