#ifndef GANNET_TESTS_SIMULATION_HISTORY_H_
#define GANNET_TESTS_SIMULATION_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/linearizability/linearizability.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

using linearizability::Operation;

// What all clients saw and did, key by key and lock by lock, and whether it fits together.
class History {
 public:
  // The first `checked` of the keys are checked for linearizability.
  History(Run* run, uint32_t checked, uint32_t keys) : run_(run), checked_(checked), keys_(keys) {}

  // --- values. Every write has an id of its own, from 1, which is in the item's flags.
  uint32_t NextWrite() { return ++writes_; }
  static constexpr uint32_t kValueBytesMax = 1 << 20;
  // The bytes that a write of this id puts.
  static std::string ValueOf(uint32_t id, uint32_t bytes);
  // `value` is what was read of an item with these flags, or its beginning.
  void CheckValue(uint32_t id, uint32_t bytes, std::string_view value);

  // --- operations. Of a key that is checked, only so many writes and operations may be under way
  // at once, or there are too many orders to try. Of the others, order and values are checked only.
  static constexpr uint32_t kWritesAtOnceMax = 5;
  static constexpr uint32_t kOperationsAtOnceMax = 40;
  // Writes of unknown outcome, and expiries, may happen at any time until the end.
  static constexpr uint32_t kUnknownMax = 16;
  // False: not now.
  bool Begin(uint32_t key, bool write);
  void End(uint32_t key, bool write);
  // When they are over.
  void Add(uint32_t key, const Operation& operation) {
    if (key >= checked_) return;
    keys_[key].operations.push_back(operation);
    keys_[key].unknown += operation.outcome == linearizability::Outcome::kUnknown;
  }
  // An item of this version has the value of this write.
  void AddVersion(uint64_t version, uint32_t id);
  // A write that was applied; `number`: the how manieth it was that its client began.
  void AddApplied(uint32_t client, uint32_t key, uint64_t number, uint64_t version, uint32_t id);
  // What was written by `id`, between the ticks, lives so long.
  void AddExpiry(uint32_t key, uint32_t id, int64_t not_before_tick);
  // It is surely past its time to live at this tick.
  void AddDeath(uint32_t id, int64_t tick) { death_of_id_[id] = tick; }
  // The write was read by an operation that began at this tick.
  void CheckAlive(uint32_t id, int64_t tick);
  // The server's memory was lost between the two ticks.
  void AddRestart(int64_t from_tick, int64_t to_tick);

  // --- locks
  // Returns the number of the acquisition. Its client hears of it at this tick; if the lock has a
  // lease, that may be over by then.
  size_t AddAcquired(uint32_t key, uint32_t client, uint64_t word, bool leased, int64_t tick);
  // The last that was acquired; key and lock word. Word 0: none was.
  std::pair<uint32_t, uint64_t> LastAcquired() const {
    if (acquisitions_.empty()) return {};
    return {acquisitions_.back().key, acquisitions_.back().word};
  }
  // It was surely held until then.
  void AddHeldUntil(size_t acquisition, int64_t tick);

  // Checks all of it.
  void Check();

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
    int64_t from;
    int64_t until;
    bool held;  // surely, in between
  };
  // The operations of a key as the search is given them.
  std::vector<Operation> Prepared(uint32_t key) const;
  void CheckOrder(uint32_t key);
  void CheckLocks();

  Run* const run_;
  const uint32_t checked_;
  uint32_t writes_ = 0;
  std::vector<Key> keys_;
  std::map<uint64_t, uint32_t> id_of_version_;
  std::map<uint32_t, uint64_t> version_of_id_;
  std::map<uint32_t, int64_t> death_of_id_;
  std::vector<int64_t> restarts_;  // ticks
  std::vector<Acquisition> acquisitions_;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_HISTORY_H_
