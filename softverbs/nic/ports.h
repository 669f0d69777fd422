#ifndef SOFTVERBS_NIC_PORTS_H_
#define SOFTVERBS_NIC_PORTS_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "softverbs/base/mutex.h"

namespace softverbs {

class Nic;
struct Context;

// The ports of this process's devices, counted over all of them (base/devices.h), go down and come
// back, by a fault plan, by softverbs_set_port, or by SOFTVERBS_PORTS (port_folder.h). While a port
// is down:
//
// 1. Queue pairs whose path it is send no request, unless they migrate to their alternate path
//    (qp/path.h). What they have sent and what is posted fails with
//    RETRY_EXC_ERR after the queue pair's retries (retry_cnt + 1 times its timeout), if the port
//    does not come back before. A request that was sent may have been executed.
// 2. Requests that arrive are not executed: the peer's retries run out. What was executed before is
//    answered. So nothing is executed after its requester was told that it failed.
// 3. Datagrams and what is sent on unreliable connections are lost.
// 4. rdma_connect from it or to it ends UNREACHABLE. What the two ends of a connection of rdma_cm
//    tell each other waits for the port (cm/peer_socket.h).
//
// A device that died is one whose ports never come back. The accelerator is off as long as any port
// is down. Each open context of the device gets the event. Thread safe.
class Ports {
 public:
  explicit Ports(Nic* nic) : nic_(nic) {}

  // Contexts get the events of their device from Add to Remove.
  void Add(Context* context);
  void Remove(Context* context);

  // Ignores a port of a device that died.
  void Set(int port, bool up);
  // The device dies. Its contexts get IBV_EVENT_DEVICE_FATAL, and no event of the port.
  void Kill(int device);
  // Those of devices that died, too.
  void AllUp();
  // Runs `fn` on the loop thread once the port is up: soon, if it is up. Calls for one port run in
  // their order. Never runs it if the port stays down.
  void WhenUp(int port, std::function<void()> fn);
  // Does what the active fault plan says of a port, from now on. Forgets what an earlier one said.
  void FollowPlan();

 private:
  void Tell(int port, ibv_event_type type) SV_REQUIRES(mutex_);
  void Flip(int port, bool up) SV_REQUIRES(mutex_);
  void RunWaiting(int port) SV_REQUIRES(mutex_);
  void StopRequests();
  void DoAt(int64_t time_ns, std::function<void()> what);

  Nic* const nic_;
  std::atomic<uint32_t> plan_number_{0};
  Mutex mutex_;
  std::set<Context*> contexts_ SV_GUARDED_BY(mutex_);
  uint32_t dead_ SV_GUARDED_BY(mutex_) = 0;  // devices, a bit each
  std::vector<std::pair<int, std::function<void()>>> when_up_ SV_GUARDED_BY(mutex_);
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PORTS_H_
