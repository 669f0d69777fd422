#ifndef GANNET_TESTS_MODEL_JOIN_MODEL_H_
#define GANNET_TESTS_MODEL_JOIN_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::join {

// A member joins a group by READs (docs/group.md, "Joining"). From record S on, the primary streams
// what it records. Meanwhile the joiner walks through the primary's index: it READs a window of
// buckets, then the item of each slot, and then the window again. Key K is written, deleted, moved
// to another block, or expires, and key X of the same home is put, perhaps into the block that K
// left. A write is decided and recorded first, and published later, in order. A long value has two
// records: a part, and the end, by which it is installed.
//
// What is to hold: once the joiner is in sync, it has what the primary has.
//
// The model leaves out moves between buckets and into the stash: those are the walk's own
// (client/walk/index_walk.h). An item is READ whole.
struct JoinRules {
  bool keeps_newer = true;          // a key that the joiner has is not overwritten by the walk
  bool keeps_deletions = true;      // nor is a key inserted that a record since S deleted
  bool keeps_sweeps = true;         // or that expired at the joiner
  bool opens_first = true;          // the stream is opened before the walk begins
  bool walks_after_publish = true;  // the walk begins when all before S is published
  bool sends_parts = true;          // the stream begins with the parts of long values under way
  bool reads_window_again = true;
  bool ends_walk = true;      // before it is in sync
  bool has_committed = true;  // all that is committed has reached it before it is in sync
};

class JoinModel {
 public:
  static constexpr int kRecordsMax = 4;
  static constexpr int kBlocks = 3;
  static constexpr uint8_t kNowhere = 0xff;
  // What a block has, or a key is: no item, K's first value, one of K's later values (kLater plus
  // its record's position), or X.
  static constexpr uint8_t kNothing = 0;
  static constexpr uint8_t kFirst = 1;
  static constexpr uint8_t kX = 2;
  static constexpr uint8_t kLater = 3;
  enum Record : uint8_t { kNone, kPut, kPutExpiring, kDelete, kPart, kPartsEnd, kPutX };
  enum class Walk : uint8_t { kNotBegun, kWindow, kItemK, kItemX, kChecked, kOver };

  struct State {
    std::array<Record, kRecordsMax> log;
    uint8_t decided;
    uint8_t published;
    uint8_t begin;  // S, once the stream is open; kNowhere before
    uint8_t received;
    uint8_t moves_left;
    uint8_t expired;  // the clock has passed the expiry of what kPutExpiring puts
    // The primary's memory: the blocks of K and X, and what is in each block.
    uint8_t slot_k;
    uint8_t slot_x;
    uint8_t window_version;  // its checksum: another one after each change
    std::array<uint8_t, kBlocks> blocks;
    // The joiner.
    uint8_t applied;
    uint8_t k;
    uint8_t x;
    uint8_t k_is_gone;  // K was deleted or swept since S
    uint8_t has_part;
    Walk walk;
    uint8_t walk_k;  // the window that it READ
    uint8_t walk_x;
    uint8_t walk_version;
    uint8_t found_k;  // the values that it READ
    uint8_t found_x;
    uint8_t in_sync;
    uint8_t wrong;
  };

  JoinModel(const JoinRules& rules, bool k_present, uint8_t records)
      : rules_(rules), k_present_(k_present), records_(records) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void PrimarySteps(const State& state, const Emit& emit) const;
  void Decide(const State& state, const Emit& emit) const;
  void StreamSteps(const State& state, const Emit& emit) const;
  void WalkSteps(const State& state, const Emit& emit) const;
  void Insert(State* state) const;
  void Sweep(State* state) const;
  void ApplyNext(State* state) const;
  bool Expires(const State& state, uint8_t value) const;
  bool HasAll(State state) const;

  const JoinRules rules_;
  const bool k_present_;
  const uint8_t records_;
};

}  // namespace gannet::model::join

#endif  // GANNET_TESTS_MODEL_JOIN_MODEL_H_
