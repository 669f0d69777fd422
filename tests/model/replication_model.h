#ifndef GANNET_TESTS_MODEL_REPLICATION_MODEL_H_
#define GANNET_TESTS_MODEL_REPLICATION_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::replication {

// A group of three members (docs/group.md). The primary writes its records into a ring in the
// memory of each backup. A record is committed when all members in sync have it. A register (etcd)
// names the epoch, the primary and the members in sync. Each process may stop and go on at any
// step, and may crash. Clients' writes are sent again to the next primary until they are answered.
//
// Time is left out; the lease model has it. Here the lease of a primary is one bit. It may end at
// any time, it comes back only when everybody whom the primary counts answers its beacons, and a
// member whom the primary counts takes over only when it is over.
//
// What is to hold: what clients were told survives and is read; no record is applied twice, or in
// another order by another member; and no lease is valid while somebody else is primary.
//
// The log of a member is its store and its ring in one: log[0..applied) is applied,
// log[applied..end) is its tail. A position is an LSN. A record is the number of a client's write.
//
// A process that crashed does nothing more. Its WRITEs may as well have landed before, and what its
// backups know of its commits, they may as well have applied before.
struct ReplicationRules {
  // Commits.
  bool commits_by_all = true;       // or as soon as one backup has the record
  bool commits_under_lease = true;  // by a clock that is read after the completions were polled
  bool applies_committed = true;    // a backup leaves the rest in its ring
  bool reads_under_lease = true;    // clients believe only what they polled before the lease ended
  // Leases.
  bool lease_from_all = true;     // or only from those who are connected
  bool fenced_are_silent = true;  // who fenced answers no beacon
  // Members in sync.
  bool counts_until_removed = true;  // or only until the transaction is sent
  bool counts_joiner_first = true;   // or only from when the transaction is known to have won
  bool adds_when_complete = true;    // the joiner has all that is committed
  bool settles_by_txn = true;        // or by reading that the register did not change
  bool compares_revision = true;     // or only the epoch
  bool names_incarnations = true;    // a process that starts again is another member
  // Takeovers.
  bool fences_before_reading = true;
  bool survivors_fence = true;    // before they connect to the next primary
  bool loser_reads_again = true;  // or executes itself again when its transaction lost
  bool new_rings = true;          // or the memory of the former stream's ring
  bool resends_tail = true;
  bool keeps_lsns = true;  // of the tail
  // How long a survivor keeps its tail of the former stream: until the next primary's stream has
  // reached the end of that primary's tail, or of its own tail, or not at all.
  enum class Rest : uint8_t { kToPrimarysEnd, kToOwnEnd, kNone } rest = Rest::kToPrimarysEnd;
  bool overlays = true;                  // what came of the next stream is laid over that rest
  bool opens_when_all_connected = true;  // takes clients once its lease was valid
  // Not one of the rules: the rest ends where the next stream has another record.
  bool drops_at_difference = false;
  // Hand-over.
  bool waits_out_lease = true;
  // A backup that is told to stop.
  bool leaves_by_txn = true;          // or it ends at once, in sync
  bool leaver_awaits_primary = true;  // or it ends as soon as it is out
  bool ready_joiner_waits = true;     // a joiner that may be added; or it ends at once
};

struct ReplicationScenario {
  uint8_t writes = 2;
  uint8_t in_sync = 0b111;  // at first; the others join
  uint8_t crashes = 2;
  uint8_t restarts = 0;   // of members that ended; then they join
  uint8_t abandoned = 1;  // transactions that a member does not wait for
  uint8_t hand_overs = 0;
  uint8_t leaves = 0;  // of backups and joiners that are told to stop
  uint8_t reads = 0;
  // Begins in the second epoch. Member 1 is primary and got nothing of the first stream. Member 2
  // got two records, and does not know of the second epoch yet. Member 0 has started again.
  bool second_epoch = false;
  // Only what users notice is held against the rules: what they were told is lost, done twice or
  // out of date. Otherwise, so is all by which a member could notice that a rule was broken.
  bool harm_only = false;
};

class ReplicationModel {
 public:
  static constexpr uint8_t kMembers = 3;
  static constexpr uint8_t kNobody = kMembers;
  static constexpr uint8_t kLogMax = 5;
  // kOut: it was told to stop, is not in sync any more, and still has its copy.
  enum class Role : uint8_t { kJoining, kBackup, kReading, kCandidate, kPrimary, kOut, kEnded };
  enum class Progress : uint8_t { kNone, kSent, kWon, kLost };

  struct Configuration {
    uint8_t epoch;
    uint8_t primary;
    uint8_t in_sync;       // a bit for each member
    uint8_t incarnations;  // of those members, a bit each
    bool operator==(const Configuration&) const = default;
  };
  struct Txn {
    Progress progress;
    Configuration wanted;
    uint8_t epoch;  // of the configuration that it was made from
  };
  struct Member {
    Role role;
    uint8_t incarnation;
    uint8_t threw_away;  // it executed itself again
    uint8_t stale;       // the register is not as `view` says
    uint8_t leaving;     // it was told to stop
    Configuration view;
    Txn txn;
    Txn abandoned;  // one that nobody waits for; it may still be executed
    // Store and ring.
    uint8_t applied;
    uint8_t end;
    std::array<uint8_t, kLogMax> log;
    uint8_t source;    // whose stream may be written into its ring
    uint8_t rest;      // the end of its tail is of a former stream
    uint8_t read_end;  // kReading: what it read
    uint8_t walked;    // kJoining: it has what its stream does not bring
    // Primary.
    uint8_t lease;
    uint8_t open;      // takes clients
    uint8_t stopped;   // for a hand-over
    uint8_t tail_end;  // of what it took over
    uint8_t counted;   // who must have a record, a bit each
    uint8_t joiner;
    uint8_t adding;                        // a transaction that adds the joiner is not settled
    std::array<uint8_t, kMembers> landed;  // the end of its stream in each ring
    // What it had posted to those who fenced. The completions of these WRITEs look alike.
    std::array<uint8_t, kMembers> late;
  };
  struct State {
    Configuration configuration;  // the register
    std::array<Member, kMembers> members;
    uint8_t sent;  // writes that clients sent
    uint8_t told;  // writes that clients know of, a bit each
    uint8_t crashes_left;
    uint8_t restarts_left;
    uint8_t abandoned_left;
    uint8_t hand_overs_left;
    uint8_t leaves_left;
    uint8_t reads_left;
    uint8_t reader;  // the member that a client READ from, until the completion is polled
    uint8_t sample;  // what it found there
    uint8_t sample_is_stale;
    uint8_t wrong;
  };

  ReplicationModel(const ReplicationRules& rules, const ReplicationScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  enum Wrong : uint8_t { kRight, kGap, kDifference, kStaleRead, kLastCopy };

  // replication_model.cc
  void BeginSecondEpoch(State* state) const;
  void ClientSteps(const State& state, uint8_t i, const Emit& emit) const;
  void LeaseSteps(const State& state, uint8_t i, const Emit& emit) const;
  void StreamSteps(const State& state, uint8_t i, const Emit& emit) const;
  void Land(const State& state, uint8_t from, uint8_t to, const Emit& emit) const;
  void LandLate(const State& state, uint8_t from, uint8_t to, const Emit& emit) const;
  void Publish(const State& state, uint8_t i, const Emit& emit) const;
  void Apply(const State& state, uint8_t i, const Emit& emit) const;
  void FinishRest(State* state, uint8_t i) const;
  const char* BrokenPrimary(const State& state) const;
  bool InOneOrder(const State& state) const;
  bool ThrownAway(const State& state) const;

  // replication_members.cc
  void TxnSteps(const State& state, uint8_t i, const Emit& emit) const;
  void PrimaryTxns(const State& state, uint8_t i, const Emit& emit) const;
  void AddJoiner(const State& state, uint8_t i, const Emit& emit) const;
  void JoinSteps(const State& state, uint8_t i, const Emit& emit) const;
  void TakeoverSteps(const State& state, uint8_t i, const Emit& emit) const;
  void Connect(const State& state, uint8_t i, const Emit& emit) const;
  void LeaveSteps(const State& state, uint8_t i, const Emit& emit) const;
  void CrashSteps(const State& state, uint8_t i, const Emit& emit) const;
  void Execute(State* state, uint8_t i, const Configuration& wanted) const;
  void Learn(State* state, uint8_t i, bool lost) const;
  void Won(State* state, uint8_t i) const;
  void BecomePrimary(State* state, uint8_t i, const Configuration& view) const;
  bool LeaseCovers(const State& state, uint8_t i) const;
  static void Fence(State* state, uint8_t i);
  static void End(State* state, uint8_t i, bool by_itself);
  // It is not in sync: ends, unless it was told to stop. Then it keeps its copy for a while.
  static void GoOut(State* state, uint8_t i);
  static bool IsIn(const Configuration& configuration, const State& state, uint8_t i) {
    return Has(configuration.in_sync, i) &&
           (configuration.incarnations >> i & 1) == state.members[i].incarnation;
  }

  // Of a set of members, a bit each.
  static uint8_t Bit(uint8_t i) { return static_cast<uint8_t>(1 << i); }
  static bool Has(unsigned bits, uint8_t i) { return (bits >> i & 1) != 0; }

  const ReplicationRules rules_;
  const ReplicationScenario scenario_;
};

}  // namespace gannet::model::replication

#endif  // GANNET_TESTS_MODEL_REPLICATION_MODEL_H_
