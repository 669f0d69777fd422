#ifndef GANNET_SERVER_MAIN_CONTROL_ADMISSION_CONTROL_H_
#define GANNET_SERVER_MAIN_CONTROL_ADMISSION_CONTROL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/protocol/connect.h"
#include "common/rdma/device.h"
#include "common/rdma/listener.h"
#include "server/group/members/member.h"
#include "server/group/replica/group_standing.h"
#include "server/main/control/authenticator.h"
#include "server/main/control/rail_watch.h"
#include "server/main/control/server_workers.h"
#include "server/rpc/now.h"

namespace gannet {

// Takes the listener's events. Decides who may connect, and gives each request to a worker, or to
// the member if another server of the group asks. Otherwise it rejects the request, with the
// reason.
//
// Thread safety: one owner thread. RequestReload and refused from any.
class AdmissionControl {
 public:
  // While clients wait for a primary, Poll looks for one so often.
  static constexpr int64_t kLookForPrimaryNs = 2 * kNsPerMs;
  static constexpr size_t kWaitForPrimaryMax = 1024;

  // A request waits for a primary for `wait_ns` at most. No client is taken for
  // `former_leases_ns` after the first Poll (docs/item-leases.md): its request waits. `wall` is the
  // clock by which requests must be fresh. A null member: the server is in no group. All outlive
  // it.
  AdmissionControl(const ServerWorkers& workers, RailWatch& rails, Member* member,
                   Authenticator authenticator, int64_t wait_ns, int64_t former_leases_ns,
                   WallClock wall)
      : workers_(workers),
        rails_(rails),
        server_(workers.context()),
        member_(member),
        authenticator_(std::move(authenticator)),
        wait_ns_(wait_ns),
        former_leases_ns_(former_leases_ns),
        wall_(wall) {}

  // Takes events and answers requests. Returns true if there was an event.
  bool Poll(const Now& now);
  // When Poll must be called at the latest.
  BootTime due() const {
    return waiting_.empty() ? BootTime::Never() : now_.boot + kLookForPrimaryNs;
  }
  // Reads the auth file again if it changed, or RequestReload was called.
  void LookAtAuthFile();
  void RequestReload() { reload_asked_.store(true, std::memory_order_relaxed); }
  // Rejects all requests from now on.
  void BeginStop() { stopping_ = true; }

  bool serves() const { return server_.standing == nullptr || server_.standing->serves(); }
  // How many requests wait for a primary.
  size_t waiting() const { return waiting_.size(); }
  // How many it refused. The workers count theirs.
  uint64_t refused() const { return refused_.value(); }

 private:
  struct Waiting {
    ConnectRequest decoded;
    IncomingRequest request;
    std::shared_ptr<const SessionKey> key;
    BootTime until;
  };

  void Notify(uint64_t connection, Notice::Type type);
  void OnRequest(IncomingRequest request);
  void OnReplicaRequest(const ConnectRequest& decoded, IncomingRequest request,
                        std::shared_ptr<const SessionKey> key);
  void TellStanding(IncomingRequest request);
  // `may_wait`: whether it may wait for a primary.
  void Admit(const ConnectRequest& decoded, IncomingRequest request,
             std::shared_ptr<const SessionKey> key, bool may_wait);
  // Whether clients of a former process may still answer from copies of its items.
  bool AwaitsFormerLeases() const { return now_.boot - begun_at_ < former_leases_ns_; }
  // Whether there is no primary, but will be one soon.
  bool AwaitsPrimary() const;
  // Answers those who wait, if there is a primary now, and no former lease, or their time is over.
  void AnswerWaiting();
  // Gives the request a connection id and a name, and returns the name. Otherwise rejects it.
  std::optional<uint64_t> Name(IncomingRequest* request);
  void Reject(IncomingRequest request, RejectCode code, std::string_view reason);

  const ServerWorkers& workers_;
  RailWatch& rails_;
  ServerContext& server_;
  Member* const member_;
  Authenticator authenticator_;
  const int64_t wait_ns_;
  const int64_t former_leases_ns_;
  const WallClock wall_;
  // Relaxed: it tells nothing but itself. A signal handler may set it.
  std::atomic<bool> reload_asked_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  bool stopping_ = false;
  Now now_;                      // of this Poll
  BootTime begun_at_;            // when it was first called
  uint32_t requests_ = 0;        // so far
  std::deque<Waiting> waiting_;  // in the order of their times
  Counter refused_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_ADMISSION_CONTROL_H_
