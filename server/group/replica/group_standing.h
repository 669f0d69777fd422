#ifndef GANNET_SERVER_GROUP_REPLICA_GROUP_STANDING_H_
#define GANNET_SERVER_GROUP_REPLICA_GROUP_STANDING_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/group/replica/served_partitions.h"

namespace gannet {

// What those who answer clients need to know of this process's place in its group. The member's own
// thread sets it.
//
// Thread safe.
class GroupStanding {
 public:
  explicit GroupStanding(uint64_t history) : history_(history) {}

  // Names the group's items: members with the same history have the same ones.
  uint64_t history() const { return history_.load(std::memory_order_relaxed); }

  // Whether clients are taken: this process is primary, and its tail is committed. Relaxed: what a
  // client then does counts only under the lease.
  bool serves() const { return serves_.load(std::memory_order_relaxed); }
  // Returns what is left of the primary's lease, in ms, rounded down; 0: nothing.
  // Relaxed: a lease that is over stays over, whenever this is seen.
  // Acquire: whoever sees an end sees the longest lease that was set before it.
  uint16_t LeaseLeftMs(BootTime now) const {
    const int64_t left = lease_end_.load(std::memory_order_acquire) - now;
    const int64_t left_ms = std::min(left, lease_max_.load(std::memory_order_relaxed)) / kNsPerMs;
    return static_cast<uint16_t>(std::clamp<int64_t>(left_ms, 0, UINT16_MAX));
  }
  // Whether there will probably be another primary soon, maybe this process: who looks for one had
  // better wait here than ask again. Relaxed: a guess.
  bool AwaitsPrimary(BootTime now) const {
    return now >= awaits_from_.load(std::memory_order_relaxed);
  }
  // Where clients are to go instead: "primary=HOST:PORT epoch=N". Empty if nobody is known.
  std::string elsewhere() const {
    MutexLock lock(mutex_);
    return elsewhere_;
  }
  // Returns the cluster's map, as clients are told it (partition_map.h). Null: not known yet.
  std::shared_ptr<const std::string> map() const {
    MutexLock lock(mutex_);
    return map_;
  }

  // Which keys clients may ask for here.
  const ServedPartitions& partitions() const { return partitions_; }

  // An operator may have forced another history. Call it before clients are taken.
  void SetHistory(uint64_t history) { history_.store(history, std::memory_order_relaxed); }
  void SetServes(bool serves) { serves_.store(serves, std::memory_order_relaxed); }
  // `end`: when the lease is over.
  void SetLeaseEnd(BootTime end) { lease_end_.store(end, std::memory_order_release); }
  // Clients are told of no longer lease than that, in ns, from the next SetLeaseEnd on.
  void SetLeaseMax(int64_t max) { lease_max_.store(max, std::memory_order_relaxed); }
  // `from`: when the primary counts as gone, if it stays silent.
  void SetAwaitsFrom(BootTime from) { awaits_from_.store(from, std::memory_order_relaxed); }
  void SetElsewhere(std::string elsewhere) {
    MutexLock lock(mutex_);
    elsewhere_ = std::move(elsewhere);
  }
  void SetPartitions(const GroupPartitions& partitions) { partitions_.Set(partitions); }
  void SetMap(std::shared_ptr<const std::string> map) {
    MutexLock lock(mutex_);
    map_ = std::move(map);
  }

 private:
  std::atomic<uint64_t>
      history_;  // relaxed: set before serves_, which a client's connection follows
  std::atomic<bool> serves_{false};
  std::atomic<BootTime> lease_end_{BootTime()};
  std::atomic<int64_t> lease_max_{INT64_MAX};
  std::atomic<BootTime> awaits_from_{BootTime::Never()};
  ServedPartitions partitions_;
  mutable Mutex mutex_;
  std::string elsewhere_ GANNET_GUARDED_BY(mutex_);
  std::shared_ptr<const std::string> map_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_GROUP_STANDING_H_
