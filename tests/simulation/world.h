#ifndef GANNET_TESTS_SIMULATION_WORLD_H_
#define GANNET_TESTS_SIMULATION_WORLD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/simulation/history.h"
#include "tests/simulation/pace.h"
#include "tests/simulation/rude_peer.h"
#include "tests/simulation/run.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulated_client.h"
#include "tests/simulation/simulated_server.h"

namespace gannet::simulation {

// One server and its clients, from the beginning of a run to its last check. One thread steps them
// all, in an order that the seed chooses:
//
//   active: clients act, events happen --> calm: clients act --> drained: operations under way end
//   --> quiet: nobody does anything, until the dead are forgotten --> checks
class World {
 public:
  explicit World(Run* run);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Runs the seed. Returns early if a check fails.
  void Execute();
  const Scenario& scenario() const { return scenario_; }
  uint64_t set_aside() const { return server_.set_aside(); }
  // How many GETs were answered from copies, by those clients that stayed.
  uint64_t near_answers() const;

 private:
  static constexpr uint64_t kTurnsMax = 400'000;
  struct Guest {
    std::unique_ptr<SimulatedClient> client;
    int64_t next_act_ns = 0;
    int64_t stalled_until_ns = 0;
  };

  void Besiege();
  SimulatedClient::Options NewClientOptions();
  std::unique_ptr<SimulatedClient> NewClient() { return NewClient(NewClientOptions()); }
  std::unique_ptr<SimulatedClient> NewClient(const SimulatedClient::Options& options);
  void TakeTurn();
  void PollSomebody();
  void PollEverybody();
  void PollPart(size_t part);
  void PollGuest(Guest* guest);
  size_t participants() const;
  void Act();
  int64_t NextTime() const;

  bool over() const { return run_->failed() || pace_.never_ends(); }

  void HandleEvents();
  void ForgetLinks(int64_t now_ns);
  void BringLinksUp(int64_t now_ns);
  void TellHealth(int64_t now_ns);
  void Happen(const Event& event);
  void EndStalls();
  bool suspended() const { return run_->now_ns() < suspended_until_ns_; }
  void Suspend(int64_t ns);
  void Resume();
  void CheckAtTheEnd();
  void CheckLockWords();

  // world_end.cc
  RudePeer* Invite(RudePeer::Kind kind);
  void CheckRefusals();
  void CheckSiege();
  void CheckBatch();
  void Ask(RudePeer* peer, Opcode opcode, const std::string& key, ReplyStatus expected);
  bool AllIdle() const;

  Run* const run_;
  Scenario scenario_;
  const int64_t began_ns_;
  History history_;
  SimulatedServer server_;
  std::vector<Guest> guests_;
  std::vector<std::unique_ptr<RudePeer>> peers_;
  Pace pace_{run_,
             kTurnsMax,
             {.over = [this] { return over(); },
              .turn = [this] { TakeTurn(); },
              .poll_everybody = [this] { PollEverybody(); },
              .next_ns = [this] { return NextTime(); }}};
  uint32_t last_client_ = 0;
  size_t next_event_ = 0;
  bool acting_ = false;
  bool patient_ = false;
  int64_t breaking_until_ns_ = 0;
  std::array<int64_t, 2> link_down_until_ns_{};  // by rail; 0: it is up
  int64_t links_settle_ns_ = 0;                  // 0: all did
  int64_t suspended_ns_ = 0;                     // for how long nobody is polled; 0: not suspended
  int64_t suspended_until_ns_ = 0;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_WORLD_H_
