#ifndef GANNET_SERVER_SESSIONS_LOCKS_LOCK_SERVICE_H_
#define GANNET_SERVER_SESSIONS_LOCKS_LOCK_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "server/sessions/locks/lock_cas.h"

namespace gannet {

// Where the device of the lock rail finds the lock words.
struct LockPlace {
  uint32_t rail = 0;
  uint64_t address = 0;  // of word 0
  uint32_t rkey = 0;
};

// What a worker is told when the lock rail changes: first that it is dead, later that another one
// serves, or the same one anew.
struct LockService {
  uint64_t number = 0;             // of this message; each has the next one
  std::optional<LockPlace> place;  // nullopt: no rail serves locks
  std::unique_ptr<LockCas> cas;    // for this worker alone; null if no rail serves locks
  // The words of the dead rail. Their holders' connections are to be closed.
  std::span<const uint64_t> lost{};
};

// How far a worker is with these messages, for the thread that sends them. Each method returns the
// number of one.
class LockRailProgress {
 public:
  // The last one that the worker obeys. Acquire: whoever sees it sees what the worker did before,
  // the leases that it gave. The worker loads no word of before any more: it took the message,
  // through the inbox's mutex, behind LockWordTable::MoveTo.
  uint64_t known() const { return known_.load(std::memory_order_acquire); }
  // The last one behind which the connections that were to be closed are gone: flushed, or
  // destroyed because that took too long. Acquire: their ids are retired then.
  uint64_t gone() const { return gone_.load(std::memory_order_acquire); }
  // The same, and the dead devices have flushed the worker's own swaps, too. They may never.
  uint64_t obeyed() const { return obeyed_.load(std::memory_order_acquire); }
  // The last one behind which the worker's swaps fail; UINT64_MAX: they do not. Relaxed: it says
  // nothing else.
  uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  friend class LockRailChanges;

  std::atomic<uint64_t> known_{0};
  std::atomic<uint64_t> gone_{0};
  std::atomic<uint64_t> obeyed_{0};
  std::atomic<uint64_t> failed_{UINT64_MAX};
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_LOCK_SERVICE_H_
