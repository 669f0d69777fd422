#ifndef GANNET_TESTS_SIMULATION_MUTE_WORLD_H_
#define GANNET_TESTS_SIMULATION_MUTE_WORLD_H_

#include <cstdint>
#include <string>

#include "tests/client/engine/fake_server.h"
#include "tests/simulation/health.h"
#include "tests/simulation/history.h"
#include "tests/simulation/run.h"
#include "tests/simulation/simulated_client.h"

namespace gannet::simulation {

// A client beside a server that at times is mute: it answers only heartbeats, and never answers the
// other requests of that time. Meanwhile the client's operations must still end, and those that
// need no answer must succeed. Afterwards the client must recover fully.
class MuteWorld {
 public:
  explicit MuteWorld(Run* run);
  // Runs the seed. Returns early if a check fails.
  void Execute();
  std::string ToString() const;

 private:
  void StepUntil(int64_t until_ns, bool acting);
  std::optional<ReplyHeader> Answer(const FakeServer::Request& request);

  Run* const run_;
  Health health_;
  History history_;
  FakeServer server_;
  SimulatedClient client_;
  bool mute_ = false;
  uint64_t version_ = 0;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_MUTE_WORLD_H_
