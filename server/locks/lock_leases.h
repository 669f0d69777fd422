#ifndef GANNET_SERVER_LOCKS_LOCK_LEASES_H_
#define GANNET_SERVER_LOCKS_LOCK_LEASES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace gannet {

// Which locks end at which time: a client whose application hangs goes on sending heartbeats, and
// would hold its locks for ever. Only locks that were given a lease are here.
//
// 1. A lease is of one lock word and one value of it, which names one acquisition. A lease that is
//    over breaks exactly that acquisition: by a compare-and-swap of that value, never by a store.
// 2. The worker that gave a lease breaks the lock when it is over (TakeDue, the swap, Drop). While
//    it does so, the lease is not renewed any more.
// 3. A lock may be released without the server's knowledge, so a lease may be of a value that its
//    word has no longer. It is dropped when it is over, or when its place is needed.
//
// Shared by all workers; thread safe.
class LockLeases {
 public:
  static constexpr size_t kLeasesMax = 16384;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Lease {
    size_t index;   // of the lock word
    uint64_t word;  // its value
  };

  LockLeases(std::span<const uint64_t> words, uint32_t workers)
      : words_(words), by_deadline_(workers) {}

  // False: there are kLeasesMax of locks that are held. A lease that is there already can always be
  // renewed.
  bool HasRoom(const Lease& lease, int64_t now_ns);
  // The lock is broken at `deadline_ns` by `worker`; never: it has no lease any more. False: it is
  // being broken already.
  bool Set(uint32_t worker, const Lease& lease, int64_t deadline_ns);
  // The lock was released, or broken.
  void Drop(const Lease& lease);

  // A lease of this worker that is over, which is being broken from here on, until Drop or PutBack.
  std::optional<Lease> TakeDue(uint32_t worker, int64_t now_ns);
  // It could not be broken now.
  void PutBack(const Lease& lease);
  // When TakeDue has one.
  int64_t NextNs(uint32_t worker) const;
  // kNever: it has no lease.
  int64_t DeadlineNs(const Lease& lease) const;
  size_t size() const;

 private:
  // Looking for leases of locks that are gone, in a full table, costs some 100 us.
  static constexpr int64_t kSweepNs = 10 * kNsPerMs;

  struct Entry {
    uint64_t word;
    int64_t deadline_ns;
    uint32_t worker;
    bool breaking;
  };
  using Entries = absl::flat_hash_map<size_t, Entry>;  // by index of the lock word

  void Erase(Entries::iterator it) GANNET_REQUIRES(mutex_);
  void Sweep() GANNET_REQUIRES(mutex_);

  const std::span<const uint64_t> words_;
  mutable Mutex mutex_;
  Entries entries_ GANNET_GUARDED_BY(mutex_);
  // Of each worker: deadline and index of the leases that are not being broken.
  std::vector<std::set<std::pair<int64_t, size_t>>> by_deadline_ GANNET_GUARDED_BY(mutex_);
  int64_t next_sweep_ns_ GANNET_GUARDED_BY(mutex_) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOCKS_LOCK_LEASES_H_
