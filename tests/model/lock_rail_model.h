#ifndef GANNET_TESTS_MODEL_LOCK_RAIL_MODEL_H_
#define GANNET_TESTS_MODEL_LOCK_RAIL_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::lock_rail {

// A lock's word when the lock rail changes (docs/decisions/2026-11-29-rails.md). A is a client of
// the lock rail: it compares and swaps the word itself. B asks the server. The lock rail dies, and
// another one serves. A swap that A posted on the dead rail may be executed later, and A may still
// get its completion. The dead device need not obey: the server cannot be sure to reap its queue
// pairs, or to deregister.
//
// What is to hold: never do two clients have the lock; no write of a lock takes effect after one of
// a later lock; a late swap changes no word of the new rail, and no memory of another use.
struct LockRailRules {
  bool one_device = true;        // the server swaps through the lock rail, too
  bool new_memory = true;        // the new rail's words lie elsewhere
  bool keeps_old_memory = true;  // until the device obeyed
  bool waits_for_leases = true;  // of locks, before the new rail serves
  bool lease_from_post = true;   // a lock's lease begins when the swap is posted
  bool fences_grow = true;       // over the change: an epoch is their upper part
};

class LockRailModel {
 public:
  static constexpr uint8_t kNobody = 0, kA = 1, kB = 2;
  enum Rail : uint8_t { kServes, kDead, kOther };
  enum Swap : uint8_t { kNoSwap, kPosted, kTaken, kMissed };

  struct Word {
    uint8_t owner;
    uint8_t count;  // of locks that were given
  };
  struct State {
    Rail rail;
    uint8_t obeyed;             // the dead device: nothing is executed there any more
    uint8_t reused;             // the old memory
    std::array<Word, 2> words;  // in the old memory and in the new one
    Swap swap;                  // of A
    uint8_t swap_fence;         // what it was given
    uint8_t swap_order;
    uint8_t b_read;  // B's request read the word, where that is not atomic
    uint8_t b_count;
    std::array<uint8_t, 3> holds;
    std::array<uint8_t, 3> fences;  // of the locks that they know of
    std::array<uint8_t, 3> order;   // in which they were given
    uint8_t given;
    uint8_t leases_over;  // those of the dead rail
    uint8_t written;      // the newest fence that the store has seen
    uint8_t written_order;
    uint8_t wrong;
  };

  explicit LockRailModel(const LockRailRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const { return {State{}}; }
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void Change(const State& state, const Emit& emit) const;
  void A(const State& state, const Emit& emit) const;
  void B(const State& state, const Emit& emit) const;
  static void Holders(const State& state, const Emit& emit);
  uint8_t Serving(const State& state) const;
  uint8_t FenceOf(const State& state, uint8_t memory) const;
  void GiveToB(State* state) const;

  const LockRailRules rules_;
};

}  // namespace gannet::model::lock_rail

#endif  // GANNET_TESTS_MODEL_LOCK_RAIL_MODEL_H_
