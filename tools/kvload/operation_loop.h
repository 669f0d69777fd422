#ifndef GANNET_TOOLS_KVLOAD_OPERATION_LOOP_H_
#define GANNET_TOOLS_KVLOAD_OPERATION_LOOP_H_

#include <gannet/async_client.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/short_turns.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/counter_check.h"
#include "tools/kvload/live_count.h"
#include "tools/kvload/metrics.h"
#include "tools/kvload/operation.h"
#include "tools/kvload/rate.h"
#include "tools/kvload/value.h"

namespace gannet::kvload {

// Runs one thread's operations of a load run. Keeps up to `depth` operations of a source in flight
// on a backend, and checks and measures the answers. It owns no thread: the caller calls Poll until
// that returns false.
//
// Closed loop: an operation starts as soon as another has ended, and its latency counts from there.
// Open loop: operations are due at the times that the rate gives, and start when a slot is free.
// Its latency counts from the time it was due. So a stall of the store is charged to every
// operation that it delays.
//
// Not thread safe, except finished().
class OperationLoop {
 public:
  struct Options {
    uint32_t depth = 1;
    uint32_t thread = 0;               // makes the sequence numbers in the thread's values unique
    uint32_t value_bytes_max = 0;      // size of the largest value in this run
    bool verify = true;                // check every value that is read
    bool misses_are_wrong = false;     // count a miss as wrong, because every key was loaded
    bool counters_may_vanish = false;  // because they expire, or are evicted
    const Rate* rate = nullptr;        // of all threads; null: closed loop
    uint32_t threads = 1;              // that share the rate
    bool waits_for_server = false;     // wait for a lost server; otherwise the loop stops
    bool shares_core = false;          // yield the core to other threads now and then
    std::chrono::milliseconds ttl{0};  // of what is written, unless the operation says another
  };
  using Clock = int64_t (*)();  // nanoseconds, monotonic

  // `backend`, `source` and `values` must outlive the loop.
  OperationLoop(const Options& options, Backend& backend, OperationSource& source,
                const ValueMaker& values, Clock clock);

  // Sets when operation 0 is due, in an open loop. Call it before the first Poll.
  void Begin(int64_t first_due_ns) { begin_ns_ = next_due_ns_ = first_due_ns; }
  // Starts the operations that are due, waits for an answer or the next due time, at most for
  // kPatienceNs, and finishes the operations that were answered. Returns false if the work is over:
  // the source is empty and nothing is in flight, the loop gave up after too many errors, or the
  // server is lost.
  bool Poll();
  // Starts no more operations. Poll still finishes those in flight.
  void Stop() { source_empty_ = true; }
  // Returns when the work was over: the time of the last answer if the server is lost, otherwise
  // the current time. Call it once, after Poll returned false.
  int64_t End();

  const Metrics& metrics() const { return metrics_; }
  // Returns how many operations have ended, for a progress line. Any thread may call it.
  uint64_t finished() const { return finished_; }

  // After so many errors in a row, the loop gives up.
  static constexpr uint32_t kErrorsInARowMax = 1000;
  // The longest time that a Poll waits, so that its caller can look at other things.
  static constexpr int64_t kPatienceNs = 100 * kNsPerMs;

 private:
  // The step of a slot's operation that is in flight.
  enum class Stage : uint8_t { kReading, kWriting };
  struct Slot {
    LoadOperation operation;
    Stage stage = Stage::kReading;
    int64_t began_ns = 0;
    OpCost first_cost;     // the cost of an rmw's or cas' GET
    uint64_t version = 0;  // that a cas' GET read
    std::span<std::byte> buffer;
  };

  void NoteAnswer(int64_t now);
  void StartDue();
  int64_t PatienceNs() const;
  void Start(uint32_t index);
  absl::Status StartRead(uint32_t index);
  absl::Status StartWrite(uint32_t index);
  std::string_view MakeValue(Slot& slot);
  void CheckNumber(const Slot& slot, const Completion& completion);
  void Finish(const Completion& completion, int64_t now);
  void FinishRead(uint32_t index, const Completion& completion, int64_t now);
  bool CheckRead(const Slot& slot, const Completion& completion);
  void CountGet(const Completion& completion);
  void Record(uint32_t index, const OpCost& cost, bool found, int64_t now);
  void Fail(uint32_t index, absl::StatusCode code);
  bool GoesOnWithoutServer();
  void Release(uint32_t index);

  const Options options_;
  Backend& backend_;
  OperationSource& source_;
  const ValueMaker& values_;
  const Clock clock_;

  std::vector<std::byte> memory_;  // of the slots' buffers, if the backend has none
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> starting_;  // used only within StartDue
  std::vector<Completion> completions_;
  Turn turn_;
  bool source_empty_ = false;
  int64_t begin_ns_ = 0;
  int64_t next_due_ns_ = 0;
  uint64_t sequence_;
  CounterCheck counters_;
  uint32_t errors_in_a_row_ = 0;
  int64_t last_answer_ns_ = 0;
  int64_t lost_since_ns_ = 0;  // 0: the server is not lost
  Metrics metrics_;
  LiveCount finished_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_OPERATION_LOOP_H_
