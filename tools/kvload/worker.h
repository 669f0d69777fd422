#ifndef GANNET_TOOLS_KVLOAD_WORKER_H_
#define GANNET_TOOLS_KVLOAD_WORKER_H_

#include <gannet/async_client.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/short_turns.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/metrics.h"
#include "tools/kvload/operation.h"
#include "tools/kvload/value.h"

namespace gannet::kvload {

// One thread of a load run: keeps up to `depth` operations of a source in flight on a backend,
// checks what comes back and measures it. It owns no thread: call Poll until it says false.
//
// Closed loop (interval 0): an operation starts as soon as another has ended, and latency counts
// from there. Open loop: operation i is due at start + i * interval; it is started when a slot is
// free, but its latency counts from when it was due, so a stall of the store is charged to every
// operation it held up.
//
// Not thread safe, except finished().
class Worker {
 public:
  struct Options {
    uint32_t depth = 1;
    uint32_t thread = 0;            // its number makes the sequences in its values unique
    uint32_t value_bytes_max = 0;   // of any value in this run
    bool verify = true;             // of every value that is read
    bool misses_are_wrong = false;  // every key is known to be there
    int64_t interval_ns = 0;        // 0 = closed loop
    bool waits_for_server = false;  // when it is lost; otherwise the worker stops
    bool shares_core = false;       // lets others have a turn now and then
  };
  using Clock = int64_t (*)();  // nanoseconds, monotonic

  // `backend`, `source` and `values` must outlive the worker.
  Worker(const Options& options, Backend& backend, OperationSource& source,
         const ValueMaker& values, Clock clock);

  // Open loop: when operation 0 is due. Call it before the first Poll.
  void Begin(int64_t first_due_ns) { next_due_ns_ = first_due_ns; }
  // Starts what is due, waits for an answer or for what is due next, at most for kPatienceNs, and
  // finishes what is done. Returns false if the source is empty and nothing
  // is in flight, if nothing but errors came back and it gave up, or if the server is lost.
  bool Poll();
  // Starts nothing more. What is in flight is still finished by Poll.
  void Stop() { source_empty_ = true; }
  // When the work was over: the last answer of a server that was lost, the clock's time otherwise.
  // Call it once, after Poll returned false.
  int64_t End();

  const Metrics& metrics() const { return metrics_; }
  // Operations ended so far, for a progress line. Any thread.
  // Relaxed: a figure to look at; the metrics are read after the thread was joined.
  uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }

  // After so many errors in a row, the store is taken for gone.
  static constexpr uint32_t kErrorsInARowMax = 1000;
  // So long a Poll takes at most: its caller may have other things to look at.
  static constexpr int64_t kPatienceNs = 100 * kNsPerMs;

 private:
  // What is in flight for a slot's operation.
  enum class Stage : uint8_t { kReading, kWriting };
  struct Slot {
    Operation operation;
    Stage stage = Stage::kReading;
    int64_t began_ns = 0;
    OpCost first_cost;  // rmw: of its GET
    std::vector<std::byte> buffer;
  };

  void StartDue();
  int64_t PatienceNs() const;
  void Start(uint32_t index);
  absl::Status StartRead(uint32_t index);
  absl::Status StartWrite(uint32_t index);
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

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> starting_;  // within StartDue
  std::vector<Completion> completions_;
  Turn turn_;
  bool source_empty_ = false;
  int64_t next_due_ns_ = 0;
  uint64_t sequence_;
  uint32_t errors_in_a_row_ = 0;
  int64_t last_answer_ns_ = 0;
  int64_t lost_since_ns_ = 0;  // 0: the server is there
  Metrics metrics_;
  std::atomic<uint64_t> finished_{0};
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_WORKER_H_
