#ifndef GANNET_TESTS_MODEL_COPIES_MODEL_H_
#define GANNET_TESTS_MODEL_COPIES_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model {

// What waits for what at a primary that wants two copies, and what it may call acknowledged
// (docs/group.md, "Which wait may wait for which"). A group of two: the primary, which lives, and a
// backup, which dies, or is silent while WRITEs still reach it, and is removed, or leaves by
// itself, and joins again. Writes are recorded, brought into a ring of one record, committed and
// published. Some count on an item that expires, and are then undone. The others are updates, which
// the primary's ring keeps until they are published. A disk is behind, a hand-over is tried and
// fails.
//
// What is to hold: whatever happened, the group may become whole again, and nothing waits then;
// what was answered OK was in two members in sync when it was committed; and a try that is refused
// records nothing.
struct CopiesRules {
  bool undoes_without_copies = true;  // an undo is recorded though copies are missing
  bool undoes_without_room = true;    // and though the ring is full
  bool answers_with_deletion = true;  // of an undo, all is recorded or nothing
  bool publishes_without_copies = true;
  bool disk_waits_for_nobody = true;  // it catches up whatever is published
  bool doubts = true;                 // what is committed without copies is not called made
  bool counts_what_may_win = true;    // a backup whose removal was sent is no copy any more
  bool leaves_without_lease = true;   // a backup leaves only once the primary's lease is over
};

class CopiesModel {
 public:
  static constexpr uint8_t kWrites = 3;
  static constexpr size_t kRecordsMax = 2 * kWrites;  // and as many undos
  enum class Record : uint8_t { kNone, kUpdate, kCounts, kUndo };
  enum class Backup : uint8_t { kInSync, kDead, kDown, kJoins, kCounted };
  // Won or left: the primary does not know it yet. A backup that leaves asks by itself.
  enum class Removal : uint8_t { kNone, kSent, kWon, kAsked, kLeft };

  struct State {
    std::array<Record, kRecordsMax> log;  // position p at p - 1
    // Positions: all up to these are ...
    uint8_t end;      // recorded
    uint8_t in_ring;  // in the primary's ring; the others are queued before it
    uint8_t copied;   // in the backup's ring
    uint8_t freed;    // applied by the backup, which freed them in its ring
    uint8_t committed;
    uint8_t published;
    uint8_t begin;  // before the joiner's stream
    // Bits by position:
    uint8_t undone;
    uint8_t lacking;  // fewer than two in sync had it when it was committed
    uint8_t doubted;  // the primary does not say OK
    Backup backup;
    Removal removal;
    uint8_t silent;   // the backup's beacons do not come, WRITEs reach it
    uint8_t stopped;  // for a hand-over
    uint8_t disk_behind;
    uint8_t expired;  // the item on which writes count
    uint8_t loose;    // answers of an undo that were recorded without its deletion
    uint8_t wrong;
    // What may still happen.
    uint8_t writes_left;
    uint8_t troubles_left;  // a death, a silence, a backup that leaves, a stop, a delay of the disk
  };

  explicit CopiesModel(const CopiesRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }
  // Nothing waits, and the group is whole.
  bool Settled(const State& state) const;

 private:
  enum Wrong : uint8_t { kRight, kFewCopies, kGrows };
  // Whether the primary takes it that two members are in sync.
  bool HasCopies(const State& state) const;
  void Writes(const State& state, const Emit& emit) const;
  void Stream(const State& state, const Emit& emit) const;
  void Commit(const State& state, const Emit& emit) const;
  void Publish(const State& state, const Emit& emit) const;
  void Undo(const State& state, const Emit& emit) const;
  void Members(const State& state, const Emit& emit) const;
  void Leaves(const State& state, const Emit& emit) const;
  void Joins(const State& state, const Emit& emit) const;
  void Others(const State& state, const Emit& emit) const;

  const CopiesRules rules_;
};

}  // namespace gannet::model

#endif  // GANNET_TESTS_MODEL_COPIES_MODEL_H_
