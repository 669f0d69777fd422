#ifndef GANNET_SERVER_MEMORY_TIER_TIER_READS_H_
#define GANNET_SERVER_MEMORY_TIER_TIER_READS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "server/memory/heap/run_allocator.h"
#include "server/memory/tier/tier_circle.h"

namespace gannet {

// A worker that a tier reads for.
class TierReadsDone {
 public:
  virtual ~TierReadsDone() = default;
  // Called when reads of it are done, under a lock: it only wakes the worker.
  virtual void OnTierReadsDone() = 0;
};

// Reads records of a tier for workers, by threads of its own, into memory of its own. Who asks for
// a record that is being read joins that read.
//
//   reads.Begin(place, key, {worker, tag});      // behind a look at the stub
//   for (Done& done : reads.TakeDone(worker)) {  // when it is woken
//     ... WRITE done.value, which takes as long as the NIC likes ...
//     reads.Give(done.read);
//   }
//
// Invariants:
//   1. Memory is used again when its read has completed and all who got the value gave it back,
//      also if none of them waits for it any more.
//   2. A segment is pinned while a read of it waits or is under way.
// Thread safety: all methods, from any thread.
class TierReads {
 public:
  struct Options {
    TierCircle* circle = nullptr;
    // Where values come to: whole blocks. NICs may WRITE out of it.
    std::span<std::byte> memory;
    // Reads under way at once: half of the credits of a session that asks for 128 values. Those
    // that have nothing to read sleep.
    uint32_t threads = 64;
    // A worker's number is its place here.
    std::vector<TierReadsDone*> workers;
  };
  // What the options name outlives this.
  explicit TierReads(const Options& options);
  // Returns when no read is under way. Those that wait never begin.
  ~TierReads();
  TierReads(const TierReads&) = delete;
  TierReads& operator=(const TierReads&) = delete;

  // Who asks, and what tells him of what.
  struct Waiter {
    uint32_t worker = 0;
    uint64_t tag = 0;
  };
  enum class Begun : uint8_t {
    kYes,
    kNoMemory,  // too much is being read, or was not given back: ask later
    kTaken,     // the record's segment was taken again: look at the stub again
  };
  Begun Begin(const TierPlace& place, std::string_view key, const Waiter& waiter);

  struct Done {
    uint64_t tag = 0;
    uint64_t read = 0;
    // In the memory, until Give. Errors are those of TierCircle::Read.
    absl::StatusOr<std::string_view> value;
  };
  std::vector<Done> TakeDone(uint32_t worker);
  // Gives a value, or an error, back. Call it once for each Done.
  void Give(uint64_t read);

  // For those who watch: reads that wait or are under way.
  size_t under_way() const;
  // Since the start.
  struct Counts {
    uint64_t reads = 0;
    uint64_t joined = 0;  // GETs that joined a read, and began none
    uint64_t failed = 0;  // of the reads
    int64_t took_ns = 0;  // the reads, all together
  };
  Counts counts() const;

 private:
  struct Read {
    TierPlace place;
    std::string key;
    uint64_t first_unit = 0;
    uint64_t units = 0;
    std::vector<Waiter> waiters;
    size_t holders = 0;  // that got it, and did not give it back
  };

  void Run() GANNET_UNCHECKED_LOCKS;
  absl::StatusOr<std::string_view> ReadInto(const Read& read) const;
  void Complete(uint64_t id, const absl::StatusOr<std::string_view>& value) GANNET_REQUIRES(mutex_);
  // Returns the number of a read of this record that has not completed.
  std::optional<uint64_t> Find(const TierPlace& place, std::string_view key) const
      GANNET_REQUIRES(mutex_);

  const Options options_;
  RunAllocator units_;  // of the memory: blocks

  mutable Mutex mutex_;
  std::condition_variable wanted_;
  uint64_t last_id_ GANNET_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, Read> reads_ GANNET_GUARDED_BY(mutex_);
  // Of reads that have not completed: those that no thread has taken, and all, by their position.
  std::deque<uint64_t> waiting_ GANNET_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, uint64_t> by_position_ GANNET_GUARDED_BY(mutex_);
  std::vector<std::vector<Done>> done_ GANNET_GUARDED_BY(mutex_);  // of each worker
  Counts counts_ GANNET_GUARDED_BY(mutex_);
  bool stopping_ GANNET_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_TIER_TIER_READS_H_
