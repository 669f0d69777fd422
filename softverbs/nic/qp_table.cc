#include "softverbs/nic/qp_table.h"

#include "softverbs/base/mutex.h"
#include "softverbs/nic/packet.h"

namespace softverbs {

uint32_t QpTable::Add(Qp* qp) {
  const LockGuard guard(mutex_);
  for (uint32_t tried = 0; tried < kQpsPerProcess; ++tried) {
    const uint32_t index = next_++ % kQpsPerProcess;
    if (taken_[index] || QpNumber(slot_, index) == kMulticastQpn) continue;
    taken_[index] = true;
    qps_[index].store(qp, std::memory_order_release);
    return QpNumber(slot_, index);
  }
  return 0;
}

void QpTable::Free(uint32_t qpn) {
  const LockGuard guard(mutex_);
  taken_[QpIndex(qpn)] = false;
}

}  // namespace softverbs
