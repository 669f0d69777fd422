#ifndef GANNET_TESTS_MODEL_ITEM_LEASE_OWNER_MODEL_H_
#define GANNET_TESTS_MODEL_ITEM_LEASE_OWNER_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::item_lease_owner {

// Leases on popular items when another process, or another group, comes to own the items
// (docs/decisions/2026-11-29-item-leases.md, rules 6 to 8). One key, one client. What one server
// does by itself is in item_lease_model.h, so to end a lease is one step here.
//
// Processes die, and others begin with their items, alone or as the only ones of a group, or since
// an operator made them primary. They may lack the last write, and their clocks may be ahead. In a
// group, a member takes over when no lease of the primary is left, which lease_model.h shows. The
// former primary may live, and go on. The key's partition may move to another group, be written
// there, and come back.
//
// What is to hold: the client answers from no copy that differs from what somebody else may have
// been told by then.
struct OwnerRules {
  // 6. Who comes to own items takes no client before this time is over, so it neither writes nor
  // answers. The first draft let it answer, and put off writes only.
  uint8_t wait = 2;
  bool answers_wait = true;
  bool forced_waits = true;
  // 8. An answer needs the primary's lease, for the client's map. Header and words are dropped with
  // the session, and with each newer map, not only with one that names another owner.
  bool under_lease = true;
  bool lease_is_for_the_map = true;
  bool older_leases_are_waited_out = true;
  bool drops_with_session = true;
  bool drops_with_map = true;
  bool compares_changes = true;
  // What a giver has left of a partition goes without a wait. Its generation may grow with that, or
  // not: both are right.
  bool grows_with_moves = true;
};

struct OwnerScenario {
  bool in_group = false;
  bool begins = false;          // when a process has died, another one begins with its items
  bool takes_over = false;      // when the primary's lease is over
  bool moves = false;           // the partition does, away and back
  bool loses = false;           // who begins lacks the last write
  bool clock_ahead = false;     // who begins has a clock that is ahead, and the item expires
  uint8_t lease = 2;            // L
  uint8_t generations_max = 2;  // of each process
};

class ItemLeaseOwnerModel {
 public:
  // The revisions of the map: at the giver, closed, away, closed there, at the giver again.
  static constexpr uint8_t kClosed = 1, kAway = 2, kClosedAway = 3, kBack = 4;
  static constexpr uint8_t kExpiry = 3;  // of the item, by the first process's clock
  static constexpr uint8_t kAhead = 2;   // the clock of the one that begins
  static constexpr uint8_t kNoSession = 2;
  enum class Word : uint8_t { kNone, kRight, kStale };
  enum class Mark : uint8_t { kNone, kLeased, kEnded };

  struct Process {
    uint8_t up;
    uint8_t serves;  // takes clients, and writes
    uint8_t wait;    // left until it may
    uint8_t generation;
    uint8_t end;  // left
    Word word;    // of the key, in its array
    Mark mark;
    uint8_t until;
    uint8_t map;  // that it knows
  };
  struct Client {
    uint8_t session;  // with which process, or kNoSession: that is dead
    uint8_t lease;    // of the primary, for the client's map
    uint8_t map;
    uint8_t generation;  // of its header
    uint8_t end;         // left of it
    Word word;
    uint8_t word_generation;  // under which it counts
  };
  struct State {
    std::array<Process, 2> processes;
    Client client;
    uint8_t owner;   // the process that is primary, or alone
    uint8_t map;     // the register's
    uint8_t expiry;  // left, by the first process's clock; 0: the item does not expire, or has
  };

  ItemLeaseOwnerModel(const OwnerRules& rules, const OwnerScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void Time(const State& state, const Emit& emit) const;
  void ServerSteps(const State& state, int p, const Emit& emit) const;
  void SuccessionSteps(const State& state, const Emit& emit) const;
  void TakesClients(const State& state, const Emit& emit) const;
  void MoveSteps(const State& state, const Emit& emit) const;
  void LeaseSteps(const State& state, const Emit& emit) const;
  void ClientSteps(const State& state, const Emit& emit) const;
  void LearnMap(const State& state, const Emit& emit) const;
  // The key is another one from now on, for whoever asks.
  static State Changed(State state);
  // Whether a process may serve the key, by the map that it knows.
  bool HasKey(uint8_t map) const { return !scenario_.moves || map == 0 || map == kBack; }
  bool MayWrite(const State& state, int p) const;
  bool Answers(const State& state) const;

  const OwnerRules rules_;
  const OwnerScenario scenario_;
};

}  // namespace gannet::model::item_lease_owner

#endif  // GANNET_TESTS_MODEL_ITEM_LEASE_OWNER_MODEL_H_
