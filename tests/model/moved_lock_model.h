#ifndef GANNET_TESTS_MODEL_MOVED_LOCK_MODEL_H_
#define GANNET_TESTS_MODEL_MOVED_LOCK_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::moved_lock {

// What a client is told of a lock whose partition moves away and comes back (docs/partitions.md,
// "Locks"). It takes, extends and releases the lock by RPC. Where the partition is meanwhile,
// another client may take the same key's lock. The server that had the partition first keeps the
// lock's word, and hears nothing of that.
//
// What is to hold: who is told that its lock was extended, or that it was released while it was
// held, had it all the time since it was taken: nobody else had it before the giver's answer.
//
// The client's lease ends at any time. Its map is as old as can be. It has one request at a time.
struct MovedLockRules {
  bool extension_needs_lease = true;  // its answer counts only under a lease for the client's map
  bool client_compares = true;        // how often the partition had changed, with the lock's
  bool by_newest_map = true;          // not by the map when the request was sent
  bool unlock_compares = true;        // the server does, when it answers an unlock
  bool leases_are_waited_out = true;  // before the partition is given (rule 6)
};

class MovedLockModel {
 public:
  // The revisions of the map: at the giver, closed, at the receiver, closed, at the giver again.
  static constexpr uint8_t kClosed = 1, kAway = 2, kClosedAway = 3, kBack = 4;
  enum class Request : uint8_t { kNone, kTake, kExtend, kRelease };

  struct State {
    uint8_t map;         // the register's
    uint8_t giver_map;   // what the giver knows
    uint8_t client_map;  // what the client knows
    uint8_t lease;       // the client has one of the giver, for its map
    uint8_t word;        // at the giver: the client has the lock
    uint8_t word_map;    // the giver's map when it gave the lock
    uint8_t held;        // as far as the client knows
    uint8_t held_map;    // the client's map when it asked for the lock
    uint8_t others;      // somebody else had the lock since it was given
    Request request;     // of the client
    uint8_t answered;    // its answer is on its way
    uint8_t ok;          // which says so
    uint8_t sent_map;    // the client's map when it was sent
    uint8_t wrong;       // 1 told extended, 2 told released
  };

  explicit MovedLockModel(const MovedLockRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const { return {State{}}; }
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void Move(const State& state, const Emit& emit) const;
  static void Leases(const State& state, const Emit& emit);
  static void Ask(const State& state, const Emit& emit);
  void Serve(const State& state, const Emit& emit) const;
  void Hear(const State& state, const Emit& emit) const;
  // Whether the client takes the lock for one that it never lost.
  bool Counts(const State& state) const;

  const MovedLockRules rules_;
};

}  // namespace gannet::model::moved_lock

#endif  // GANNET_TESTS_MODEL_MOVED_LOCK_MODEL_H_
