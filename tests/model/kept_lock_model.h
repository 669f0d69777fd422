#ifndef GANNET_TESTS_MODEL_KEPT_LOCK_MODEL_H_
#define GANNET_TESTS_MODEL_KEPT_LOCK_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::kept_lock {

// Locks that outlive their session's first connection (docs/rails.md#locks). Client A takes and
// gives back a lock by requests, or by swaps of its own NIC; client B wants the same one. A's
// connection breaks at any moment, and the server notices sooner or later. A word names its holder
// by an id. A session that keeps its locks gives the id on to its next connection, if that comes
// within a silence; otherwise the id is dead, and a janitor frees the words of the dead. What A had
// asked and was not answered it asks again under the same number. A may have given the call up.
//
// What is to hold: whoever is told that it holds the lock has it as long as it is connected and
// does not give it back, and every lock is free in the end.
struct KeptLockRules {
  bool by_nic = false;              // A swaps itself
  bool keeps_of_swappers = false;   // its locks are kept all the same
  bool same_id_only = true;         // A goes on with its locks if the grant names the same id
  bool gives_back = true;           // what A gave up while it was away is released later
  bool expires = true;              // who stays away loses its locks
  bool unlock_compares = true;      // or stores
  bool lost_with_lock_rail = true;  // the lock rail's death ends the locks of those away, too
};

struct KeptLockScenario {
  uint8_t attempts = 2;  // of A
  uint8_t breaks = 2;
  uint8_t lock_rails_die = 0;
  bool dies = true;  // A, perhaps
};

class KeptLockModel {
 public:
  static constexpr uint8_t kB = 0xff;  // the word while B has the lock
  static constexpr int kSwapsMax = 4;
  enum class Phase : uint8_t { kIdle, kLocking, kHolds, kUnlocking, kGone };

  struct Swap {
    uint8_t word;
    uint8_t locks;   // or unlocks
    uint8_t serves;  // the connection that waits for its answer; 0: nobody does
  };
  struct State {
    uint8_t word;        // 0: free; otherwise id * 16 + count, or kB
    uint8_t connection;  // of A at the server; 0: none
    uint8_t holder;      // of that connection
    uint8_t kept;        // the id that waits for a connection; 0: none
    uint8_t dead;        // ids, a bit each
    uint8_t ids;         // that were given
    uint8_t connections;
    uint8_t received;  // A's request waits at the server
    std::array<Swap, kSwapsMax> swaps;
    uint8_t size;      // of swaps
    uint8_t answered;  // the present request: 1 done, 2 refused
    uint8_t told_by;   // the connection that carries the answer
    // A.
    Phase phase;
    uint8_t connected;  // the connection that it has; 0: none
    uint8_t id;
    uint8_t count;
    uint8_t own;       // its word
    uint8_t given_up;  // its call is over
    uint8_t sent;      // over the present connection
    uint8_t attempts;
    uint8_t breaks;
    uint8_t b_holds;
    uint8_t b_attempts;
    uint8_t deaths;
  };

  KeptLockModel(const KeptLockRules& rules, const KeptLockScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  void Client(const State& state, const Emit& emit) const;
  void Connection(const State& state, const Emit& emit) const;
  void Server(const State& state, const Emit& emit) const;
  void Other(const State& state, const Emit& emit) const;
  State Close(State state, bool keeps) const;
  State Connect(State state, bool hears) const;
  State Answer(State state) const;
  State DoSwap(State state) const;
  void Push(State* state, const Swap& swap) const;

  const KeptLockRules rules_;
  const KeptLockScenario scenario_;
};

}  // namespace gannet::model::kept_lock

#endif  // GANNET_TESTS_MODEL_KEPT_LOCK_MODEL_H_
