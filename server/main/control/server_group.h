#ifndef GANNET_SERVER_MAIN_CONTROL_SERVER_GROUP_H_
#define GANNET_SERVER_MAIN_CONTROL_SERVER_GROUP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clocks.h"
#include "common/base/server_time.h"
#include "common/base/wake_up.h"
#include "server/group/members/group_context.h"
#include "server/group/members/group_stream.h"
#include "server/group/members/member.h"
#include "server/group/members/member_server.h"
#include "server/group/move/move_tasks.h"
#include "server/group/replica/group_standing.h"
#include "server/log/changes/member_disk.h"
#include "server/main/control/core_demand.h"
#include "server/main/control/server_workers.h"
#include "server/rpc/now.h"

namespace gannet {

// A server's place in its group: what it may do there, the stream of changes to its backups, its
// Member, and the partitions that move to and from it.
class ServerGroup : private MemberServer {
 public:
  // A primary that does not take over takes no client for `former_leases_ns`.
  ServerGroup(const GroupOptions& options, const Clocks& clocks, int64_t former_leases_ns)
      : standing_(options.terms.history),
        context_{.group = options, .clocks = clocks, .former_leases_ns = former_leases_ns} {}
  ServerGroup(const ServerGroup&) = delete;
  ServerGroup& operator=(const ServerGroup&) = delete;

  // Makes the member of a server that listens at `address`. `wake` wakes the member's thread. A
  // null disk: it keeps nothing. All outlive it. The errors are those of Member::Create and
  // MoveTasks::Create.
  absl::Status CreateMember(const ServerWorkers* workers, const std::string& address,
                            MemberDisk* disk, uint64_t first_version, WakeUp* wake);

  const GroupStanding& standing() const { return standing_; }
  GroupStream& stream() { return stream_; }
  Member* member() const { return member_.get(); }
  // The clock by which items expire, which follows the primary's. Call it before the server serves.
  void UseClock(ServerClock* clock) { clock_ = clock; }

 private:
  void WakeMember() override { wake_->Ask(); }
  void Forget(uint64_t name) override;
  void Publish() override { server().writes.Publish(server().changes.safe()); }
  uint64_t published() const override { return server().writes.published_position(); }
  uint64_t workers_at() const override { return workers_->map_revision(); }
  uint64_t requests() const override { return workers_->requests(); }
  bool CoresAreScarce() override { return cores_ && cores_->Scarce(context_.clocks.boot.Now()); }
  void Adopt(std::vector<SessionCopy> sessions) override;
  void BeginEpoch(uint64_t epoch) override;
  ServerTime Time() const override { return clock_->Time(); }
  void FollowClock(ServerTime time) override { clock_->Follow(time); }
  void StartClock(ServerTime time) override { clock_->GoOnFrom(time); }

  ServerContext& server() const { return workers_->context(); }

  GroupStanding standing_;
  GroupStream stream_;
  const ServerWorkers* workers_ = nullptr;
  WakeUp* wake_ = nullptr;
  GroupContext context_;
  ServerClock* clock_ = nullptr;
  std::optional<CoreDemand> cores_;        // nullopt: nobody waits for a core
  std::unique_ptr<MoveTasks> move_tasks_;  // nullptr: no partition moves
  std::unique_ptr<Member> member_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_SERVER_GROUP_H_
