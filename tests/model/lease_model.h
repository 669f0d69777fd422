#ifndef GANNET_TESTS_MODEL_LEASE_MODEL_H_
#define GANNET_TESTS_MODEL_LEASE_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::lease {

// The leases of a group (docs/group.md, "Leases"), with clocks that run at different rates. The
// primary sends beacons, and backups answer them. The primary's lease lasts L from when it sent the
// newest beacon that all members in sync answered. A backup that heard nothing for G fences the
// primary, and takes over. A client asks the primary how much of its lease is left, and believes
// what it polls meanwhile. Messages may be late or lost, and everybody may stop at any time. For a
// hand-over, the primary grants short leases for L, stops granting them, waits until they are over,
// and names a backup its successor. That one fences it at once.
//
// Each clock advances by kSlow or by kFast while kReal units of real time pass: the bound on rates
// is a quarter, far more than that of a real clock, so that few steps show what goes wrong.
//
// What is to hold: after a takeover, the former primary commits nothing, and clients believe
// nothing of it. Expiries are judged by a clock that beacons tell. A new primary's clock is the
// newest that it was told, plus L: not behind any by which the former one has served.
struct LeaseRules {
  bool from_send = true;     // the primary counts from when it sent the beacon; or from its answer
  bool counts_all = true;    // all members in sync must have answered; or one of them
  bool joiner_first = true;  // the primary counts a joiner before it is in sync; or afterwards
  bool adds_under_lease = true;  // it adds a joiner only while its lease with it is valid
  bool looks_after_poll = true;  // at its clock, before it counts a completion; or before it polls
  bool client_from_ask = true;   // a client counts from when it asked; or from the answer
  bool client_deducts = true;    // as its clock may be slow, and the primary's may be fast
  bool grants_short = true;      // for L, by its own clock, before it stops
  bool waits_for_long = true;    // or it stops at once
  bool waits_to_hand_over = true;     // for a short lease, when it has stopped
  bool commits_before_naming = true;  // and nothing once it has sent the transaction
  bool replies_under_lease = true;    // or a client believes replies at any time
  uint8_t grace = 20;                 // G
};

struct LeaseScenario {
  bool second_backup = false;  // in sync
  bool joiner = false;         // the second backup joins
  bool client = true;
  bool hand_over = false;
  bool clock = false;  // only the clock for expiries matters, and the joiner is the only backup
};

class LeaseModel {
 public:
  static constexpr uint8_t kSlow = 3;
  static constexpr uint8_t kFast = 5;
  static constexpr uint8_t kReal = 4;
  static constexpr uint8_t kLease = 12;      // L
  static constexpr uint8_t kShortLease = 5;  // those before a hand-over
  // The shortest G that is right: L on a slow clock, measured by a fast one.
  static constexpr uint8_t kGraceMin = kLease * kFast / kSlow;
  static constexpr uint8_t kClockAgeMax = 3 * kLease;
  static constexpr int kBackups = 2;
  enum class Message : uint8_t { kNone, kRequest, kReply };
  enum class Commit : uint8_t { kNone, kPolled, kPolledTooLate, kLooked };
  enum class HandOver : uint8_t { kNone, kShort, kWaits, kNamed };
  enum class Reply : uint8_t { kNone, kRight, kOutOfDate };

  struct Backup {
    uint8_t rate;
    uint8_t in_sync;
    uint8_t silence;  // since it heard the primary, by its clock
    uint8_t fenced;
    Message beacon;
    uint8_t beacon_age;  // since the primary sent it, by the primary's clock
    uint8_t answered;    // age of the newest beacon that it answered, by the primary's clock
    uint8_t counted;     // by the primary
    uint8_t added;       // the transaction that adds it was sent
    uint8_t clock_age;   // since the newest clock it was told, by the primary's clock
  };
  struct State {
    uint8_t rate;  // of the primary's clock
    uint8_t client_rate;
    std::array<Backup, kBackups> backups;
    uint8_t deposed;     // somebody took over
    uint8_t served_age;  // since the primary last judged an expiry, by its clock
    Commit commit;
    Message ask;
    uint8_t ask_age;  // since the client asked, by its clock
    uint8_t ask_left;
    uint8_t client_lease;  // what is left, by the client's clock
    Reply reply;
    HandOver hand_over;
    uint8_t waited;  // in this step of the hand-over, by the primary's clock
    uint8_t wrong;
  };

  LeaseModel(const LeaseRules& rules, const LeaseScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  enum Wrong : uint8_t { kNothing, kCommitted, kBelieved, kClockBehind };
  void BackupSteps(const State& state, int i, const Emit& emit) const;
  void JoinSteps(const State& state, const Emit& emit) const;
  void ServeSteps(const State& state, const Emit& emit) const;
  void HandOverSteps(const State& state, const Emit& emit) const;
  void CommitSteps(const State& state, const Emit& emit) const;
  void ClientSteps(const State& state, const Emit& emit) const;
  bool Exists(int backup) const;
  // What is left of the primary's lease; 0: it is over.
  uint8_t Left(const State& state) const;
  // What clients are told of it.
  uint8_t Told(const State& state) const;

  const LeaseRules rules_;
  const LeaseScenario scenario_;
};

}  // namespace gannet::model::lease

#endif  // GANNET_TESTS_MODEL_LEASE_MODEL_H_
