#ifndef GANNET_TESTS_SIMULATION_HISTORY_H_
#define GANNET_TESTS_SIMULATION_HISTORY_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/linearizability/linearizability.h"
#include "tests/simulation/run.h"
#include "tests/simulation/tallies.h"

namespace gannet::simulation {

using linearizability::Operation;

// Records what all clients did and saw, for each key and each lock, and checks that it is
// consistent.
class History {
 public:
  // The first `checked` of the keys are checked for linearizability.
  History(Run* run, uint32_t checked, uint32_t keys)
      : run_(run), checked_(checked), keys_(keys), tallies_(run) {}

  // --- what would show that a write was done twice
  Tallies& tallies() { return tallies_; }

  // --- values. Every write has its own id, from 1. The item's flags carry it.
  uint32_t NextWrite() { return ++writes_; }
  static constexpr uint32_t kValueBytesMax = 1 << 20;
  // Returns the value that the write of this id puts.
  static std::string ValueOf(uint32_t id, uint32_t bytes);
  // Checks a value of `bytes` that was read from an item with these flags. `value` is all of it, or
  // its beginning.
  void CheckValue(uint32_t id, uint32_t bytes, std::string_view value);

  // --- operations. Only so many writes and operations of a checked key may be under way at once.
  // Otherwise there are too many orders to try. Other keys are checked only for order and values.
  static constexpr uint32_t kWritesAtOnceMax = 5;
  static constexpr uint32_t kOperationsAtOnceMax = 40;
  // The most writes of unknown outcome, and expiries, of a key. They may happen at any time until
  // the end.
  static constexpr uint32_t kUnknownMax = 16;
  // Returns false if the operation may not begin now.
  bool Begin(uint32_t key, bool write);
  void End(uint32_t key, bool write);
  // Adds an operation that ended.
  void Add(uint32_t key, const Operation& operation) {
    if (key >= checked_) return;
    keys_[key].operations.push_back(operation);
    keys_[key].unknown += operation.outcome == linearizability::Outcome::kUnknown;
  }
  // Two keys may have one version, as they are in groups of their own, or were.
  void SetSeveralGroups() { several_groups_ = true; }
  // Records that an item of this version has the value of this write.
  void AddVersion(uint32_t key, uint64_t version, uint32_t id);
  // Records a write that was applied. `number` counts the writes that its client began.
  void AddApplied(uint32_t client, uint32_t key, uint64_t number, uint64_t version, uint32_t id);
  // Records that the item of write `id` may expire, but not before this tick.
  void AddExpiry(uint32_t key, uint32_t id, int64_t not_before_tick);
  // Records that the server evicts the item of write `id` now. If the item `expires`, it may have
  // been gone before.
  void AddEviction(std::string_view key, uint32_t id, bool expires);
  // Records that the item of write `id` is past its time to live at this tick.
  void AddDeath(uint32_t id, int64_t tick) { death_of_id_[id] = tick; }
  // Checks an operation that began at this tick and read write `id`.
  void CheckAlive(uint32_t id, int64_t tick);
  // Records that the server lost its memory between the two ticks.
  void AddRestart(int64_t from_tick, int64_t to_tick);

  // --- locks
  // Records an acquisition and returns its number. Its client asked for the lock at `asked`, and
  // hears at `told` that it got it. It got it at some moment between, and may have lost it by
  // `told`: by its lease, or by a fail-over while the client was stopped.
  size_t AddAcquired(uint32_t key, uint32_t client, uint64_t word, int64_t asked, int64_t told);
  // Returns key and lock word of the last acquisition, or zeros if there was none.
  std::pair<uint32_t, uint64_t> LastAcquired() const {
    if (acquisitions_.empty()) return {};
    return {acquisitions_.back().key, acquisitions_.back().word};
  }
  // Records that the lock was certainly held from when the client heard of it until this tick.
  void AddHeldUntil(size_t acquisition, int64_t tick);

  // Checks everything.
  void Check();
  // Forgets what was checked, as far as nothing later can contradict it: a long history is checked
  // in pieces. Versions, and who holds which lock, are remembered. `ids`: by key, the write whose
  // item is there now; 0: none. REQUIRES: no operation is under way, and none of unknown outcome
  // can still happen.
  void BeginPiece(std::span<const uint32_t> ids);

 private:
  struct Applied {
    uint64_t number;
    uint64_t version;
  };
  struct Key {
    uint32_t writes = 0;  // under way
    uint32_t others = 0;
    uint32_t unknown = 0;
    std::vector<Operation> operations;
    std::map<uint32_t, std::vector<Applied>> applied;  // by client
  };
  struct Acquisition {
    uint32_t key;
    uint32_t client;
    uint64_t word;
    int64_t asked;  // the lock was acquired behind this
    int64_t from;   // and before this
    int64_t until;
    bool held;  // certainly from `from` until `until`
  };
  // Returns the operations of a key as the search needs them.
  std::vector<Operation> Prepared(uint32_t key) const;
  void CheckOrder(uint32_t key);
  void CheckLocks();

  Run* const run_;
  const uint32_t checked_;
  uint32_t writes_ = 0;
  std::vector<Key> keys_;
  bool several_groups_ = false;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> id_of_version_;  // by key, or 0, and version
  std::map<uint32_t, uint64_t> version_of_id_;
  std::map<uint32_t, int64_t> death_of_id_;
  std::vector<int64_t> restarts_;  // ticks
  Tallies tallies_;
  std::vector<Acquisition> acquisitions_;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_HISTORY_H_
