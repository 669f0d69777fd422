#ifndef GANNET_PROXY_JOBS_LOOP_STATUS_H_
#define GANNET_PROXY_JOBS_LOOP_STATUS_H_

#include <gannet/types.h>

#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "proxy/jobs/counters.h"

namespace gannet::proxy {

// The state of a thread of the proxy. That thread writes it, and any thread reads it.
class LoopStatus {
 public:
  Count round_ms;    // when the thread last went around, by the monotonic clock
  Count in_flight;   // operations that the servers have not answered
  Count queued;      // operations that wait for those
  Count for_memory;  // operations that wait for memory of --buffers

  // Sets what the thread's client says of its servers.
  void SetServers(std::vector<ServerInfo> servers) {
    MutexLock lock(mutex_);
    servers_ = std::move(servers);
  }
  std::vector<ServerInfo> servers() const {
    MutexLock lock(mutex_);
    return servers_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<ServerInfo> servers_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_LOOP_STATUS_H_
