#ifndef SOFTVERBS_NIC_LATE_ACKS_H_
#define SOFTVERBS_NIC_LATE_ACKS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace softverbs {

// The queue pairs whose acknowledgements wait until a batch of a link's packets is executed. An
// acknowledgement covers all messages before it, so many messages of one batch get one. Otherwise
// each would cost a packet, which is as dear as a short message.
//
// Only a message with packets behind it is acknowledged late. So a message that comes alone is
// acknowledged before its completion is seen, as if there were no batch.
//
// Not thread safe: the engine's progress lock guards it.
class LateAcks {
 public:
  static constexpr size_t kMax = 64;  // packets of a batch

  // Says whether packets follow the one that is executed next.
  void SetMoreFollow(bool more_follow) { more_follow_ = more_follow; }
  // Takes a queue pair, once or several times. Returns false if its acknowledgement may not wait.
  bool Take(uint32_t qpn) {
    if (!more_follow_) return false;
    if (count_ > 0 && qpns_[count_ - 1] == qpn) return true;
    if (count_ == kMax) return false;
    qpns_[count_++] = qpn;
    return true;
  }
  bool empty() const { return count_ == 0; }
  // Ends the batch. Calls acknowledge(qpn) for those that it took.
  template <class F>
  void End(F acknowledge) {
    more_follow_ = false;
    for (size_t i = 0; i < count_; ++i) acknowledge(qpns_[i]);
    count_ = 0;
  }

 private:
  bool more_follow_ = false;
  size_t count_ = 0;
  std::array<uint32_t, kMax> qpns_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_LATE_ACKS_H_
