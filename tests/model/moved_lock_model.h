#ifndef GANNET_TESTS_MODEL_MOVED_LOCK_MODEL_H_
#define GANNET_TESTS_MODEL_MOVED_LOCK_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::moved_lock {

// What a client is told of a lock whose partition moves away and comes back, and which writes under
// it are made (docs/partitions.md, "Locks"). It takes and releases the lock by RPC, or by its NIC's
// compare-and-swap, of which the server hears nothing. Where the partition is meanwhile, another
// client may take the same key's lock. The server that had the partition first keeps the lock's
// word, and hears nothing of that either.
//
// What is to hold: nobody is given the lock while another client has it. Who is told that its lock
// was extended, or that it was released while it was held, had it all the time since it was taken:
// nobody else had it before the giver's answer. The same for whose write under the lock is made.
// (Its version would not tell: who had the lock meanwhile may have written nothing.)
//
// The client's lease ends at any time. Its map is as old as can be. It has one request at a time.
struct MovedLockRules {
  bool extension_needs_lease = true;  // its answer counts only under a lease for the client's map
  bool client_compares = true;        // how often the partition had changed, with the lock's
  bool by_newest_map = true;          // not by the map when the request was sent
  bool unlock_compares = true;        // the server does, when it answers an unlock
  bool write_compares = true;         // and before it makes a write under a lock
  bool by_noted_map = true;           // not by the newest map, of a lock that nobody noted yet
  bool refuses_if_closed = true;      // a lock by RPC that it got when it served no more
  bool swap_needs_lease = true;       // a compare-and-swap counts only under one
  bool leases_are_waited_out = true;  // before the partition is given (rule 6)
};

class MovedLockModel {
 public:
  // The revisions of the map: at the giver, closed, at the receiver, closed, at the giver again.
  static constexpr uint8_t kClosed = 1, kAway = 2, kClosedAway = 3, kBack = 4;
  enum class Request : uint8_t { kNone, kTake, kExtend, kRelease, kWrite };
  enum class Takes : uint8_t { kByRpc, kBySwap };

  struct State {
    uint8_t map;         // the register's
    uint8_t giver_map;   // what the giver knows
    uint8_t client_map;  // what the client knows
    uint8_t lease;       // the client has one of the giver, for its map
    uint8_t noted_map;   // by which the giver's worker noted the locks that are held last
    uint8_t word;        // at the giver: the client has the lock
    uint8_t noted;       // the worker has noted that
    uint8_t word_map;    // then: the map by which it noted before. The lock was taken since
    uint8_t held;        // as far as the client knows
    uint8_t held_map;    // the client's map when it asked for the lock
    uint8_t others;      // somebody else had the lock since it was given
    Request request;     // of the client
    uint8_t swapped;     // the word was compared and swapped for it
    uint8_t answered;    // its answer is on its way
    uint8_t ok;          // which says so
    uint8_t sent_map;    // the client's map when it was sent
    uint8_t wrong;       // 1 told extended, 2 told released, 3 a write is made, 4 given
  };

  explicit MovedLockModel(const MovedLockRules& rules, Takes takes = Takes::kByRpc)
      : rules_(rules), takes_(takes) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const { return {State{}}; }
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void Move(const State& state, const Emit& emit) const;
  static void Leases(const State& state, const Emit& emit);
  void Ask(const State& state, const Emit& emit) const;
  void Serve(const State& state, const Emit& emit) const;
  // Whether the lock was taken by the map that the giver knows, for all it can tell.
  bool Stayed(const State& state) const;
  void Hear(const State& state, const Emit& emit) const;
  // Whether the client takes the lock for one that it never lost.
  bool Counts(const State& state) const;

  const MovedLockRules rules_;
  const Takes takes_;
};

}  // namespace gannet::model::moved_lock

#endif  // GANNET_TESTS_MODEL_MOVED_LOCK_MODEL_H_
