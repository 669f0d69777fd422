#ifndef GANNET_SERVER_MAIN_DISK_UNKEPT_CHANGES_H_
#define GANNET_SERVER_MAIN_DISK_UNKEPT_CHANGES_H_

#include <atomic>
#include <cstdint>

#include "server/log/changes/change_stream.h"

namespace gannet {

// What a member of a group does not keep, as it has given its disk up before there was a log
// (MemberLog counts the same later on).
//
// Thread safety: as every consumer's; count from any thread.
class UnkeptChanges final : public ChangeConsumer {
 public:
  bool Take(const Change& /*change*/, ChangePlace* /*place*/) override {
    count_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> count_{0};  // relaxed: a statistic
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_UNKEPT_CHANGES_H_
