#ifndef GANNET_TESTS_SIMULATION_SIMULATED_SERVER_H_
#define GANNET_TESTS_SIMULATION_SIMULATED_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/log/changes/change_stream.h"
#include "server/main/control/server.h"
#include "tests/simulation/health.h"
#include "tests/simulation/history.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

// A server, its restarts, and the stalls of its parts. Part 0 is the control part, the others are
// the workers. It hears of the store's changes, and so of what is evicted.
class SimulatedServer : private ChangeConsumer {
 public:
  SimulatedServer(Server::Options options, Run* run, History* history);
  ~SimulatedServer() override;
  SimulatedServer(const SimulatedServer&) = delete;
  SimulatedServer& operator=(const SimulatedServer&) = delete;

  // Stops the server, if it runs, and lets Continue start another in its place after `pause_ns`.
  void Restart(int64_t pause_ns);
  // Starts the other server once it is due.
  void Continue();
  bool up() const { return server_ != nullptr; }
  const std::string& endpoint() const { return endpoint_; }

  size_t parts() const { return parts_.size(); }
  void ContinueNow();
  void Stall(size_t part, int64_t until_ns);
  void EndStall(size_t part) { parts_[part].stalled_until_ns = 0; }
  bool stalled(size_t part) const;
  void Poll(size_t part);
  // Call it after everybody was stalled for `ns`.
  void Suspend(int64_t ns);
  // Tells health() how long parts have not been polled.
  void WatchGaps();
  Health& health() { return health_; }

  // Ends all leases of items, and leases none any more.
  void EndLeases();

  // Returns how many resources are taken and requests wait: 0 if nothing is under way.
  size_t busy() const;
  // How many requests were set aside, by those that were stopped, too.
  uint64_t set_aside() const;
  // REQUIRES for this and the following: up().
  uint64_t sessions() const { return server_->Stats(now()).sessions; }
  Store& store() { return server_->store(); }
  Writes& writes() { return server_->writes(); }
  const auto& lock_words() const { return server_->all_workers().context().lock_words; }
  Now now() const { return {BootTime::FromNs(run_->now_ns()), run_->Time()}; }

 private:
  struct Part {
    int64_t last_poll_ns = 0;
    int64_t stalled_until_ns = 0;
  };
  void Start();
  void Stop();
  void PollWorker(Worker& worker);
  bool Take(const Change& change, ChangePlace* place) override;
  // Writes another key, so that the index grows while clients look for theirs.
  void FillIndex();
  // Writes other long values, so that there is never room for all.
  void FillMemory();
  // Leases clients' items, as if these had been READ often.
  void LeaseItems();

  Server::Options options_;
  Run* const run_;
  History* const history_;
  std::unique_ptr<Server> server_;
  uint64_t set_aside_before_ = 0;  // by those that were stopped
  std::string endpoint_;
  std::vector<Part> parts_;
  Health health_;
  uint64_t fillers_ = 0;  // keys of FillIndex or FillMemory in this server
  int64_t fill_ns_ = 0;   // when FillMemory writes the next ones
  bool leases_ = false;   // whether LeaseItems leases any
  int64_t lease_ns_ = 0;  // when it looks for the next ones
  struct Written {
    uint32_t id = 0;
    bool expires = false;
  };
  std::map<std::string, Written, std::less<>> written_;  // by key: its item's write
  int64_t start_ns_ = 0;                                 // when the next server starts
  int64_t stopped_tick_ = 0;                             // when the last server began to stop
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_SIMULATED_SERVER_H_
