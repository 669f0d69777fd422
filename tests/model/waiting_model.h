#ifndef GANNET_TESTS_MODEL_WAITING_MODEL_H_
#define GANNET_TESTS_MODEL_WAITING_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::waiting {

// Writes that wait for the disk (docs/durability.md, "Sync always"). Clients add, put, replace and
// delete one key. It may have an item that expires, and a put may make another one. Each write is
// decided, recorded in a log, and published to the memory that readers sample at any time. The
// power may be cut at any time, and then any beginning of the log survives that has what was
// synced. An evictor deletes the key on its own, at any time.
//
// What is to hold: what was answered or seen survives; each decision is right by the writes that
// were recorded before it; who looks after an answer sees what it told; the key can be read while
// writes wait; and the memory never goes back. And a write that counts on an item is published
// before that expires, or nobody has looked since.
//
// The model leaves out the content of writes: each is known by its position in the log. It does not
// ask what a power cut makes of a write that was undone and never answered.
struct WaitingRules {
  bool publishes_after_sync = true;   // a write is published when its record is safe
  bool out_of_place = true;           // the item does not change while its replacement waits
  bool decides_by_waiting = true;     // conditions are decided against the last waiting write
  bool answers_after_publish = true;  // not as soon as the record is safe
  bool refusals_wait = true;          // for the waiting write that they tell of
  bool evictions_wait = true;         // the key goes when the eviction's record is safe
  bool undoes_past_expiry = true;     // what counts on an item that has expired
  bool undoes_what_is_behind = true;  // and was decided by what is undone
};

class WaitingModel {
 public:
  static constexpr size_t kOperations = 3;
  static constexpr size_t kLogMax = kOperations + 2;  // an eviction, and an undoing
  // The item of kBrief expires when time is over, and so does that of position 0 if there is one.
  enum Record : uint8_t { kNone, kAdd, kPut, kBrief, kReplace, kDelete, kEvict, kUndo };
  enum class Phase : uint8_t { kIdle, kWaits, kOver };

  struct Operation {
    Phase phase;
    uint8_t position;  // of its record, or of the one that it tells of
  };
  struct State {
    std::array<Record, kLogMax + 1> log;  // from position 1 on
    uint8_t log_end;
    uint8_t synced;
    uint8_t published;  // all records up to this one
    uint8_t memory;     // the position whose content readers find
    uint8_t torn;       // readers find no item that is whole
    uint8_t answered;   // the highest position that somebody knows of by an answer
    uint8_t seen;       // or by a look, which may find that the key is gone
    std::array<Operation, kOperations> operations;
    uint8_t evictions_left;
    uint8_t expired;      // the time of what expires is over
    uint8_t looked_late;  // somebody has looked since
    uint8_t counts;       // a bit for each position: it counts on an item that expires
    uint8_t undone;       // a bit for each position
    uint8_t off;          // the power is cut
    uint8_t wrong;        // what went wrong first
  };

  explicit WaitingModel(const WaitingRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  enum Wrong : uint8_t {
    kRight,
    kLost,
    kUnseen,
    kDecision,
    kStale,
    kUnreadable,
    kBack,
    kRevived,
    kBehind
  };
  static bool Present(const State& state, uint8_t position);
  void Decide(const State& state, size_t operation, Record record, const Emit& emit) const;
  void Answer(const State& state, size_t operation, const Emit& emit) const;
  void DiskSteps(const State& state, const Emit& emit) const;
  void Publish(const State& state, const Emit& emit) const;
  void Undo(State next, const Emit& emit) const;
  void Evict(const State& state, const Emit& emit) const;
  static void Look(const State& state, const Emit& emit);

  const WaitingRules rules_;
};

}  // namespace gannet::model::waiting

#endif  // GANNET_TESTS_MODEL_WAITING_MODEL_H_
