#ifndef GANNET_TESTS_SIMULATION_GROUP_WORLD_H_
#define GANNET_TESTS_SIMULATION_GROUP_WORLD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/server_time.h"
#include "tests/simulation/group_register.h"
#include "tests/simulation/group_scenario.h"
#include "tests/simulation/group_server.h"
#include "tests/simulation/health.h"
#include "tests/simulation/history.h"
#include "tests/simulation/pace.h"
#include "tests/simulation/run.h"
#include "tests/simulation/simulated_client.h"

namespace gannet::simulation {

// The servers of a group, or of a cluster, their clients, and the register, from the beginning of a
// run to its last check. One thread steps them all, in an order that the seed chooses:
//
//   active: clients act, faults happen --> mended: until all servers are in sync, and nothing moves
//   --> calm: clients act --> drained: operations under way end --> quiet --> checks
//
// A walk does that again and again: after the checks of one piece it goes on with the next.
//
// Whoever reads a clock may be stopped right there, before or behind: then the others go on, within
// that call.
class GroupWorld {
 public:
  // `steps`: of a walk.
  GroupWorld(Run* run, GroupScenario::Kind kind, uint32_t steps = 0);
  ~GroupWorld();
  GroupWorld(const GroupWorld&) = delete;
  GroupWorld& operator=(const GroupWorld&) = delete;

  // Runs the seed. Returns early if a check fails.
  void Execute();
  const GroupScenario& scenario() const { return scenario_; }

  // What happened.
  struct Happened {
    uint64_t epochs = 0;
    uint64_t processes = 0;
    uint64_t kills = 0;
    uint64_t stops = 0;  // within a call
    uint64_t disbelieved = 0;
    uint64_t lost = 0;          // groups: nobody in sync lived
    uint64_t maps = 0;          // changes of the map
    int64_t whole_ns = 0;       // how long it took until all were in sync, once nothing went wrong
    uint64_t closed = 0;        // events that came while a partition was closed
    uint64_t losses = 0;        // of etcd's data
    uint64_t forced = 0;        // groups, by an operator
    uint64_t garbage = 0;       // that etcd had
    uint64_t leasing = 0;       // worlds whose servers lease items
    uint64_t near_answers = 0;  // from copies, of clients that stayed
    uint64_t hot_rounds = 0;
    uint64_t unseated = 0;  // primaries, while copies answered
    // Of a walk.
    uint64_t steps = 0;
    uint64_t pieces = 0;
    uint64_t groups_came = 0;
    uint64_t groups_went = 0;
    uint64_t upgrades = 0;
  };
  const Happened& happened() const { return happened_; }

 private:
  static constexpr uint64_t kTurnsMax = 600'000;
  static constexpr uint64_t kTurnsOfStepMax = 100'000;
  class GuestClock;
  struct Guest {
    uint32_t node = 0;
    std::unique_ptr<GuestClock> clock;
    std::unique_ptr<SimulatedClient> client;
    int64_t next_act_ns = 0;
  };

  std::unique_ptr<GroupServer> MakeServer(uint32_t node);
  bool Reaches(uint32_t node, const std::string& name) const;
  void MakeGuest(Guest* guest);
  std::string EndpointFor(uint32_t client) const;
  void TakeTurn();
  void PollSomebody();
  void PollEverybody();
  void PollPart(size_t node, size_t part);
  void PollGuest(Guest* guest);
  bool Stands(uint32_t node) const;
  void Act();
  int64_t NextTime() const;
  bool over() const { return run_->failed() || pace_.never_ends() || lost_; }

  // group_faults.cc
  void OnClock(uint32_t node);
  void HandleEvents();
  bool IsDue() const;
  void Happen(const GroupEvent& event);
  uint32_t AnyServer();
  bool Kill(uint32_t node);
  void KillSoon(uint32_t node);
  void TellToStop(uint32_t node);
  void KillBackups();
  void Cut(uint32_t from, uint32_t to, int64_t until_ns);
  void CheckWhyItEnds(GroupServer* server);
  void Later(int64_t at_ns, std::function<void()> what);
  void MendAll();
  static constexpr uint32_t kNobody = UINT32_MAX;
  bool SomebodyStays(uint32_t except) const;
  // Of each group somebody lives who has all. All but kNobody may be excepted.
  bool SomebodyLives(uint32_t except) const;
  bool SomebodyLives(uint32_t group, uint32_t except) const;
  std::optional<uint32_t> Primary(uint32_t group) const;
  bool Whole() const;
  bool Whole(uint32_t group) const;

  // What is before the checks, once nothing is to go wrong any more.
  void Settle();

  // group_walk.cc
  void Walk();
  void TakeSteps();
  void TakeStep();
  void ChangeGroups();
  void BeginGroup(uint32_t group);
  bool EndProcesses(uint32_t group);
  void EndProcessesSoon(uint32_t group);
  void Upgrade();
  void ReplaceClient();
  void BeginPiece();
  uint32_t WriteThere(const std::string& key);
  bool DeleteTallies();

  // group_moves.cc, of a cluster.
  void WishMoves();
  void WatchOwners(std::span<const uint64_t> leader);
  void AwaitMoves();
  void AwaitWhole();
  bool Moved() const;
  bool Clean() const;
  void CheckPlaces();
  void CheckPlacesKept();
  bool MayReceive(uint32_t group) const;
  uint64_t ReadsOfAll(Guest* guest);

  // group_hot_key.cc
  void TakeHotTurn();
  void BeginHotRound();
  void KeepReadingHot();
  void Unseat(uint32_t primary);
  void Split(uint32_t primary, int64_t until_ns);
  void WriteHotThere();
  void WriteHotSoon(size_t guest, int64_t ns_max);
  uint64_t NearAnswers() const;

  // group_etcd.cc
  void LoseEtcd();
  void PutGarbage(int64_t until_ns);
  void OperatorTurn();
  bool IsThereAgain() const;
  bool IsThereAgain(uint32_t group) const;
  void AskWhoLives();
  bool AllSaidThatTheyLive();
  bool MakeClusterAgain();
  void ForceTheBest(uint32_t group, const std::set<std::string>& living);
  bool SomebodyKnows(uint32_t group, uint32_t except) const;

  void WatchLeases();
  void WatchCopies();
  bool AllIdle() const;
  void CheckAtTheEnd();
  void CheckCopies();
  // By this clock all items have expired that will. A group deletes them sooner or later.
  ServerTime Late() const;
  // What a server has of a key, as a text; empty: nothing.
  std::string ItemAt(uint32_t node, const std::string& key) const;
  void CountWhatHappened();

  Run* const run_;
  const GroupScenario scenario_;
  const int64_t began_ns_;
  History history_;
  Health health_;
  GroupRegisterService register_;
  std::vector<std::unique_ptr<GroupServer>> servers_;
  std::vector<Guest> guests_;
  Pace pace_{run_,
             kTurnsMax + scenario_.steps* kTurnsOfStepMax,
             {.over = [this] { return over(); },
              .turn = [this] { TakeTurn(); },
              .poll_everybody = [this] { PollEverybody(); },
              .next_ns = [this] { return NextTime(); }}};
  int64_t had_copies_ns_ = 0;  // when as many lived in sync as the first group wants
  uint32_t last_client_ = 0;
  size_t next_event_ = 0;
  std::multimap<int64_t, std::function<void()>> mends_;
  bool acting_ = false;
  bool patient_ = false;
  bool faulty_ = true;
  bool lost_ = false;
  // By node: until when it is stopped, whether it is stopped within a call, and for how long it is
  // to be when it reads its clock next.
  struct Standing {
    int64_t until_ns = 0;
    bool within = false;
    int64_t stop_next_ns = 0;
    uint64_t reads_left = 0;
    std::map<size_t, int64_t> parts;  // a server's, that are stopped alone
  };
  std::array<Standing, GroupScenario::kNodesMax> standing_;
  std::array<std::array<bool, GroupScenario::kNodesMax>, GroupScenario::kNodesMax> cut_{};
  std::vector<GroupEvent> waiting_events_;  // until a partition is closed
  // What a server serves under its lease, of scenario_.partitions: a bit for each.
  struct Serving {
    uint64_t process = 0;  // its incarnation; 0: it has no lease
    uint64_t map = 0;      // that it goes by
    uint32_t partitions = 0;
  };
  std::array<Serving, GroupScenario::kNodesMax> serving_{};  // by node
  std::map<uint64_t, uint32_t> group_of_process_;            // that had a lease
  // While etcd's data are lost.
  bool etcd_lost_ = false;
  bool asked_who_lives_ = false;
  int64_t operator_ns_ = 0;    // when the operator looks next
  int64_t told_until_ns_ = 0;  // until when primaries may learn that they lead; 0: all live first
  bool has_garbage_ = false;
  // Of a hot key: what copies are to have answered before its primary loses its place, and when
  // that happens in any case; 0: it has lost it, and the next round begins then.
  uint64_t hot_answers_ = 0;
  int64_t hot_until_ns_ = 0;
  uint64_t hot_epoch_ = 0;           // of the primary that is to lose its place
  std::vector<size_t> hot_writers_;  // guests that write in the next epoch
  // Of a walk.
  uint32_t piece_end_ = 0;
  int64_t next_step_ns_ = 0;
  bool drains_ = false;  // the third group is to go
  uint32_t depth_ = 0;
  Happened happened_;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_GROUP_WORLD_H_
