#include "server/group/move/move_tasks.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "server/group/move/giver_source.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<MoveTasks>> MoveTasks::Create(const GroupContext& context,
                                                             Writes* writes) {
  GANNET_CHECK(context.group.directory != nullptr && context.group.map_store != nullptr,
               "the group is in no cluster");
  std::unique_ptr<MoveTasks> tasks(new MoveTasks(context, writes));
  const std::string& auth_file = context.group.auth_file;
  if (!auth_file.empty()) {
    GANNET_ASSIGN_OR_RETURN(tasks->keys_, AuthFile::Open(auth_file));
  }
  return tasks;
}

void MoveTasks::Poll(BootTime now, const GroupRegister& own) {
  receiver_.Poll(now, own);
  cleaner_.Poll(now, receiver_.taking());
}

BootTime MoveTasks::next_at() const { return std::min(receiver_.next_at(), cleaner_.next_at()); }

std::unique_ptr<MoveSource> MoveTasks::MakeSource(const std::string& giver,
                                                  const std::string& endpoint, BootTime now) {
  return std::make_unique<GiverSource>(context_, keys_ ? &*keys_ : nullptr, receiver_.intake(),
                                       giver, endpoint, now);
}

}  // namespace gannet
