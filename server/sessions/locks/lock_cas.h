#ifndef GANNET_SERVER_SESSIONS_LOCKS_LOCK_CAS_H_
#define GANNET_SERVER_SESSIONS_LOCKS_LOCK_CAS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace gannet {

// Compare-and-swap of lock words on the server's behalf: for clients that lock by RPC, and to break
// the locks of dead connections. If clients' NICs change lock words, the server must change them
// through the NIC too, because NIC and CPU atomics are not atomic with each other. If no NIC can,
// the CPU does it.
//
// 1. Every Start is answered by exactly one call of `done`, from Poll or BeginDrain, never from
//    Start. Destruction drops what is in flight.
// 2. At most depth() are in flight. A full queue refuses.
//
// Nothing wakes a sleeper. While something is in flight, which takes microseconds, poll without
// sleeping. Thread safety: the owner's thread only.
class LockCas {
 public:
  // `old` is the word's previous value: the swap happened if it equals `expected`. If `ok` is
  // false, the device failed, and whether the swap happened is unknown.
  using Done = std::function<void(bool ok, uint64_t old)>;

  virtual ~LockCas() = default;
  // Returns false if the queue is full; try later. REQUIRES: index < the number of lock words.
  virtual bool Start(size_t index, uint64_t expected, uint64_t desired, Done done) = 0;
  // Calls `done` for everything that has finished. Returns true if there was any.
  virtual bool Poll() = 0;
  virtual size_t in_flight() const = 0;
  virtual size_t depth() const = 0;
  // Returns true if swaps fail, and will.
  virtual bool broken() const = 0;
  // Looks whether its connection has moved to its alternate path, if it has one.
  virtual void LookAtPaths() {}
  // Begins to end: reports all that is in flight, as failed unless it is known to be done.
  // REQUIRES: it is the last call but for LookDrained.
  virtual void BeginDrain() = 0;
  // Returns whether the device has nothing of it in flight any more. A device that is dead may
  // never say so. REQUIRES: BeginDrain.
  virtual bool LookDrained() = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_LOCK_CAS_H_
