#ifndef GANNET_SERVER_GROUP_MOVE_MOVE_TASKS_H_
#define GANNET_SERVER_GROUP_MOVE_MOVE_TASKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "server/group/members/group_context.h"
#include "server/group/members/member_task.h"
#include "server/group/move/move_source.h"
#include "server/group/move/partition_cleaner.h"
#include "server/group/move/partition_receiver.h"

namespace gannet {

// What a server does for partitions that move, while it is its group's primary: it receives those
// that come, and deletes what it has of those that others own.
//
// Thread safety: the member's thread, but for Create.
class MoveTasks final : public MemberTask, private MoveSourceMaker {
 public:
  // What is pointed to outlives the tasks. The errors are those of AuthFile::Open. REQUIRES: the
  // group has a directory and a map store.
  static absl::StatusOr<std::unique_ptr<MoveTasks>> Create(const GroupContext& context,
                                                           Writes* writes);

  void Poll(BootTime now, const GroupRegister& own) override;
  void Arm(BootTime now) override { receiver_.Arm(now); }
  void Woken() override { receiver_.Woken(); }
  void AddFds(std::vector<int>* fds) const override { receiver_.AddFds(fds); }
  BootTime next_at() const override;
  void Tell(MoveProgress* progress) const override { receiver_.Tell(progress); }

 private:
  MoveTasks(const GroupContext& context, Writes* writes)
      : context_(context), receiver_(context, writes, this), cleaner_(context, writes) {}
  std::unique_ptr<MoveSource> MakeSource(const std::string& giver, const std::string& endpoint,
                                         BootTime now) override;

  const GroupContext& context_;
  std::optional<AuthFile> keys_;
  PartitionReceiver receiver_;
  PartitionCleaner cleaner_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_MOVE_TASKS_H_
