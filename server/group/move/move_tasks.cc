#include "server/group/move/move_tasks.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "server/group/move/giver_source.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<MoveTasks>> MoveTasks::Create(const GroupContext& context,
                                                             Writes* writes) {
  std::unique_ptr<MoveTasks> tasks(new MoveTasks(context, writes));
  const std::string& auth_file = context.group.auth_file;
  if (!auth_file.empty()) {
    GANNET_ASSIGN_OR_RETURN(tasks->keys_, AuthFile::Open(auth_file));
  }
  return tasks;
}

void MoveTasks::Poll(int64_t now, const GroupRegister& own) {
  receiver_.Poll(now, own);
  cleaner_.Poll(now, receiver_.taking());
}

int64_t MoveTasks::next_ns() const { return std::min(receiver_.next_ns(), cleaner_.next_ns()); }

std::unique_ptr<MoveSource> MoveTasks::MakeSource(const std::string& giver,
                                                  const std::string& endpoint, int64_t now) {
  return std::make_unique<GiverSource>(context_, keys_ ? &*keys_ : nullptr, receiver_.intake(),
                                       giver, endpoint, now);
}

}  // namespace gannet
