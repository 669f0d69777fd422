#ifndef GANNET_SERVER_SESSIONS_LOCKS_LOCK_LEASES_H_
#define GANNET_SERVER_SESSIONS_LOCKS_LOCK_LEASES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/layout/lock_word_table.h"

namespace gannet {

// The leases of locks. If a client's application hangs, its heartbeats go on, and without a lease
// it would hold its locks for ever. Only locks that were given a lease are here.
//
// 1. A lease belongs to one value of one lock word, and so to one acquisition. When it is over,
//    exactly that acquisition is broken: by a compare-and-swap of that value, never by a store.
// 2. The worker that gave a lease breaks the lock when the lease is over (TakeDue, the swap, Drop).
//    While it does so, the lease cannot be renewed.
// 3. A lock may be released without the server knowing. So a lease may be of a value that its word
//    has no longer. It is dropped when it is over, or when its place is needed.
//
// Shared by all workers; thread safe.
class LockLeases {
 public:
  static constexpr size_t kLeasesMax = 16384;

  struct Lease {
    size_t index;   // of the lock word
    uint64_t word;  // its value
  };

  LockLeases(const LockWordTable& words, uint32_t workers) : words_(words), by_deadline_(workers) {}

  // Returns false if kLeasesMax leases of held locks exist. A lease that exists can always be
  // renewed.
  bool HasRoom(const Lease& lease, BootTime now);
  // Sets the lease: `worker` breaks the lock at `deadline`. BootTime::Never() removes the lease.
  // Returns false if the lock is being broken already.
  bool Set(uint32_t worker, const Lease& lease, BootTime deadline);
  // Drops the lease of a lock that was released or broken.
  void Drop(const Lease& lease);

  // Returns a lease of this worker that is over. It counts as being broken until Drop or PutBack.
  std::optional<Lease> TakeDue(uint32_t worker, BootTime now);
  // Puts back a lease whose lock could not be broken now.
  void PutBack(const Lease& lease);
  // When TakeDue will have a lease.
  BootTime Next(uint32_t worker) const;
  // Returns BootTime::Never() if the lock has no lease.
  BootTime Deadline(const Lease& lease) const;
  size_t size() const;
  // Returns when the last lease is over; BootTime(): there is none.
  BootTime Last() const;
  // Forgets all leases: their locks are lost.
  void Clear();

 private:
  // The least time between two sweeps. A sweep of a full table for leases of locks that are gone
  // costs some 100 us.
  static constexpr int64_t kSweepNs = 10 * kNsPerMs;

  struct Entry {
    uint64_t word;
    BootTime deadline;
    uint32_t worker;
    bool breaking;
  };
  using Entries = absl::flat_hash_map<size_t, Entry>;  // by index of the lock word

  void Erase(Entries::iterator it) GANNET_REQUIRES(mutex_);
  void Sweep() GANNET_REQUIRES(mutex_);

  const LockWordTable& words_;
  mutable Mutex mutex_;
  Entries entries_ GANNET_GUARDED_BY(mutex_);
  // For each worker: deadline and index of the leases that are not being broken.
  std::vector<std::set<std::pair<BootTime, size_t>>> by_deadline_ GANNET_GUARDED_BY(mutex_);
  BootTime next_sweep_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_LOCK_LEASES_H_
