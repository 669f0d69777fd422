#ifndef GANNET_SERVER_CONTROL_SERVER_GROUP_H_
#define GANNET_SERVER_CONTROL_SERVER_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rdma/device.h"
#include "common/rdma/listener.h"
#include "server/changes/change_stream.h"
#include "server/changes/member_disk.h"
#include "server/control/server_workers.h"
#include "server/group/group_options.h"
#include "server/group/group_stream.h"
#include "server/group/member.h"
#include "server/move/move_tasks.h"
#include "server/replica/group_standing.h"
#include "server/rpc/now.h"
#include "server/store/store.h"
#include "server/writes/writes.h"

namespace gannet {

// A server's place in its group: what it may do there, the stream of changes to its backups, its
// Member, and the partitions that move to and from it.
class ServerGroup {
 public:
  explicit ServerGroup(const GroupOptions& options)
      : options_(options), standing_(options.terms.history) {}
  ServerGroup(const ServerGroup&) = delete;
  ServerGroup& operator=(const ServerGroup&) = delete;

  // What the member has of its server.
  struct Run {
    Device device;
    ibv_pd* pd = nullptr;
    Listener* listener = nullptr;
    std::string address;  // where the listener listens
    Store* store = nullptr;
    Writes* writes = nullptr;
    const ChangeStream* changes = nullptr;
    ServerWorkers* workers = nullptr;
    MemberDisk* disk = nullptr;  // null: it keeps nothing
    uint64_t first_version = 1;
    uint64_t (*wall_ms)() = nullptr;
    std::function<void()> wake;  // the member's thread
  };
  // Makes the member. The errors are those of Member::Create and MoveTasks::Create.
  absl::Status CreateMember(const Run& run);

  const GroupStanding& standing() const { return standing_; }
  GroupStream& stream() { return stream_; }
  Member* member() const { return member_.get(); }
  // The clock by which items expire, which follows the primary's. Call it before the server serves.
  void UseClock(ServerClock* clock) { clock_ = clock; }

 private:
  absl::Status CreateMoves(const Run& run, Member::Options* options);

  const GroupOptions options_;
  GroupStanding standing_;
  GroupStream stream_;
  ServerClock* clock_ = nullptr;
  std::unique_ptr<MoveTasks> move_tasks_;
  std::unique_ptr<Member> member_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CONTROL_SERVER_GROUP_H_
