#ifndef GANNET_TESTS_SIMULATION_TALLIES_H_
#define GANNET_TESTS_SIMULATION_TALLIES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/run.h"

namespace gannet::simulation {

// Checks the writes that would show if they were done twice: increments of one counter, and appends
// to one value. Every client adds 1 to the counter, and its own number to the value.
//
//   - Numbers of the counter grow with versions, so no two increments got the same one. None is
//     larger than the increments that may have happened.
//   - The value has each number at most once. Every number whose append was answered before a read
//     began is in what it read, and each read is the beginning of the longer ones.
//
// A restarted server begins anew.
class Tallies {
 public:
  static constexpr std::string_view kCounterKey = "the counter";
  static constexpr std::string_view kValueKey = "the growing value";
  static constexpr uint32_t kAppendsMax = 400;  // so that all reads fit a client's buffer

  explicit Tallies(Run* run) : run_(run) {}

  // Returns the piece that the next append adds.
  std::string NextPiece();
  bool full() const { return pieces_ >= kAppendsMax; }

  // All ticks are those when the operation began and ended. An increment that may have happened:
  void AddUncertain() { ++uncertain_; }
  void AddCounted(int64_t number, uint64_t version, int64_t from_tick, int64_t to_tick) {
    counted_.push_back({number, version, from_tick, to_tick});
  }
  void AddAppended(std::string_view piece, int64_t from_tick, int64_t to_tick);
  // The value was read; empty if there was none.
  void AddRead(std::string_view value, int64_t from_tick, int64_t to_tick);
  void AddRestart(int64_t tick) { restarts_.push_back(tick); }
  // All that was checked is forgotten. REQUIRES: the counter and the value were deleted.
  void BeginAnew();

  void Check();

 private:
  struct Counted {
    int64_t number;
    uint64_t version;
    int64_t from_tick;
    int64_t to_tick;
  };
  struct Piece {
    uint32_t number;
    int64_t from_tick;
    int64_t to_tick;
  };
  struct Read {
    std::vector<uint32_t> numbers;
    int64_t from_tick;
    int64_t to_tick;
  };
  static std::vector<uint32_t> NumbersIn(std::string_view value);
  // Returns which run of the server a tick is in.
  size_t RunOf(int64_t tick) const;
  // Returns whether an operation began and ended in one run of the server.
  template <class Op>
  bool IsIn(const Op& op, size_t run) const {
    return RunOf(op.from_tick) == run && RunOf(op.to_tick) == run;
  }
  void CheckCounter(size_t run);
  void CheckValue(size_t run);

  Run* const run_;
  uint32_t pieces_ = 0;
  uint64_t uncertain_ = 0;
  std::vector<Counted> counted_;
  std::vector<Piece> appended_;
  std::vector<Read> reads_;
  std::vector<int64_t> restarts_;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_TALLIES_H_
