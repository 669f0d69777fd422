#ifndef GANNET_SERVER_MOVE_MOVE_TASKS_H_
#define GANNET_SERVER_MOVE_MOVE_TASKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "server/group/group_context.h"
#include "server/group/member_task.h"
#include "server/move/partition_cleaner.h"
#include "server/move/partition_receiver.h"

namespace gannet {

// What a server does for partitions that move, while it is its group's primary.
//
// Thread safety: the member's thread, but for Create.
class MoveTasks {
 public:
  // `cores_are_scarce` is that of CopyPace, and `requests` says how many came of clients so far.
  // What is pointed to outlives the tasks. The errors are those of AuthFile::Open. REQUIRES: the
  // group has a directory and a map store.
  static absl::StatusOr<std::unique_ptr<MoveTasks>> Create(const GroupContext& context,
                                                           Writes* writes,
                                                           std::function<bool()> cores_are_scarce,
                                                           std::function<uint64_t()> requests);

  std::vector<MemberTask*> All() { return {&*receiver_, &*cleaner_}; }

 private:
  MoveTasks(const GroupContext& context, std::function<bool()> cores_are_scarce)
      : context_(context), cores_are_scarce_(std::move(cores_are_scarce)) {}
  std::unique_ptr<MoveSource> MakeSource(const std::string& giver, const std::string& endpoint,
                                         int64_t now);

  const GroupContext& context_;
  const std::function<bool()> cores_are_scarce_;
  std::optional<AuthFile> keys_;
  std::optional<PartitionReceiver> receiver_;
  std::optional<PartitionCleaner> cleaner_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MOVE_MOVE_TASKS_H_
