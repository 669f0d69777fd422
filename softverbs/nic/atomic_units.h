#ifndef SOFTVERBS_NIC_ATOMIC_UNITS_H_
#define SOFTVERBS_NIC_ATOMIC_UNITS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "softverbs/base/devices.h"
#include "softverbs/base/mutex.h"
#include "softverbs/nic/memory_table.h"
#include "softverbs/nic/window_table.h"

namespace softverbs {

// What executes atomics if there are several devices. As on hardware with IBV_ATOMIC_HCA, each
// device has a unit of its own, and the units know nothing of each other. A unit reads the word,
// and writes it kNs later. So an atomic of another device, or a store of the CPU, in between is
// lost. A unit executes one atomic at a time: atomics of one device lose nothing.
//
// Thread safe. Its mutex is taken behind a queue pair's lock, and no other behind it but a
// window's.
class AtomicUnits {
 public:
  static constexpr int64_t kNs = 20'000;

  struct Operation {
    uint32_t rkey;
    uint64_t addr;
    uint32_t qpn;
    uint32_t pd;
    bool is_swap;      // compare and swap, or fetch and add
    uint64_t operand;  // what is compared, or added
    uint64_t swap;
    uint64_t original = 0;  // set by Begin
    // Release in Finish, acquire in IsDone: who sees it sees the word written.
    std::atomic<bool> done{false};

    bool IsDone() const { return done.load(std::memory_order_acquire); }
  };

  AtomicUnits(const MemoryTable* memory, WindowTable* windows)
      : memory_(memory), windows_(windows) {}

  // Finishes what the device's unit does, and reads the word. Returns false if the key does not
  // allow that. Finish must follow.
  bool Begin(int device, const std::shared_ptr<Operation>& operation);
  // Writes the word, unless that was done, or the key was taken back meanwhile.
  void Finish(Operation& operation);

 private:
  void FinishLocked(Operation& operation) SV_REQUIRES(mutex_);
  uint64_t* FindWord(const Operation& operation, WindowTable::Hold* hold) const;

  const MemoryTable* const memory_;
  WindowTable* const windows_;
  Mutex mutex_;
  std::array<std::shared_ptr<Operation>, kMaxDevices> busy_ SV_GUARDED_BY(mutex_);
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_ATOMIC_UNITS_H_
