#ifndef GANNET_SERVER_LOCKS_LOCK_CAS_H_
#define GANNET_SERVER_LOCKS_LOCK_CAS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace gannet {

// Compare-and-swap of lock words on the server's behalf: for clients that lock by RPC, and to break
// the locks of the dead. Where clients' NICs change lock words, the server must change them through
// the NIC too (NIC and CPU atomics are not atomic with each other); where none can, the CPU does.
//
// 1. Every Start is answered by exactly one call of `done`, from Poll, never from Start;
// destruction
//    drops what is in flight.
// 2. At most depth() are in flight; a full queue refuses.
//
// Nothing wakes a sleeper: poll without sleeping while something is in flight, which is for
// microseconds. Thread safety: the owner's thread only.
class LockCas {
 public:
  // `old` is what the word was: the swap happened if it equals `expected`. `ok` false: the device
  // failed, and whether it happened is unknown.
  using Done = std::function<void(bool ok, uint64_t old)>;

  virtual ~LockCas() = default;
  // False: the queue is full, try later. REQUIRES: index < the number of lock words.
  virtual bool Start(size_t index, uint64_t expected, uint64_t desired, Done done) = 0;
  // Calls `done` of what has finished; true if there was any.
  virtual bool Poll() = 0;
  virtual size_t in_flight() const = 0;
  virtual size_t depth() const = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOCKS_LOCK_CAS_H_
