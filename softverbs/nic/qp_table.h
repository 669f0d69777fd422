#ifndef SOFTVERBS_NIC_QP_TABLE_H_
#define SOFTVERBS_NIC_QP_TABLE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "softverbs/base/mutex.h"
#include "softverbs/nic/shared_tables.h"

namespace softverbs {

struct Qp;

// The process's queue pairs by number. Lookups take no lock. A pointer that is found stays valid
// while the caller holds the engine's progress lock, because destroy takes that lock after Remove.
class QpTable {
 public:
  explicit QpTable(uint32_t slot) : slot_(slot) {}

  // Adds a queue pair and returns its new number, or 0 if all are in use. Numbers are reused as
  // late as possible.
  uint32_t Add(Qp* qp);
  // Removes the queue pair. Its number stays taken until Free.
  void Remove(uint32_t qpn) { qps_[QpIndex(qpn)].store(nullptr, std::memory_order_release); }
  void Free(uint32_t qpn);

  Qp* Find(uint32_t qpn) const { return QpSlot(qpn) == slot_ ? At(QpIndex(qpn)) : nullptr; }
  // Acquire pairs with the release in Add: the queue pair is complete.
  Qp* At(uint32_t index) const { return qps_[index].load(std::memory_order_acquire); }

 private:
  const uint32_t slot_;
  std::array<std::atomic<Qp*>, kQpsPerProcess> qps_{};

  Mutex mutex_;
  std::array<bool, kQpsPerProcess> taken_ SV_GUARDED_BY(mutex_){};
  uint32_t next_ SV_GUARDED_BY(mutex_) = 1;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_QP_TABLE_H_
