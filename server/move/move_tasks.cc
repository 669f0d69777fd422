#include "server/move/move_tasks.h"

#include <utility>

#include "common/base/nonzero_random.h"
#include "common/base/status_macros.h"
#include "server/move/giver_source.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<MoveTasks>> MoveTasks::Create(const GroupContext& context,
                                                             Writes* writes,
                                                             std::function<bool()> cores_are_scarce,
                                                             std::function<uint64_t()> requests) {
  std::unique_ptr<MoveTasks> tasks(new MoveTasks(context, std::move(cores_are_scarce)));
  const GroupOptions& group = context.group;
  if (!group.auth_file.empty()) {
    GANNET_ASSIGN_OR_RETURN(tasks->keys_, AuthFile::Open(group.auth_file));
  }
  const auto publish = [server = context.server] { server->Publish(); };
  tasks->receiver_.emplace(PartitionReceiver::Options{
      .group = group.name,
      .directory = group.directory,
      .map_store = group.map_store,
      .writes = writes,
      .store = context.store,
      .publish = publish,
      .now_ms = context.now_ms,
      .make_source = [made = tasks.get()](const std::string& giver, const std::string& endpoint,
                                          int64_t now) {
        return made->MakeSource(giver, endpoint, now);
      }});
  tasks->cleaner_.emplace(PartitionCleaner::Options{
      .group = group.name,
      .directory = group.directory,
      .writes = writes,
      .publish = publish,
      .now_ms = context.now_ms,
      .clock = context.clock,
      .requests = std::move(requests),
      .taking = [receiver = &*tasks->receiver_] { return receiver->taking(); }});
  return tasks;
}

// The ring is as long as those of the giver's group.
std::unique_ptr<MoveSource> MoveTasks::MakeSource(const std::string& giver,
                                                  const std::string& endpoint, int64_t now) {
  const uint64_t token = NonzeroRandom(context_.random);
  const GroupDirectory& directory = *context_.group.directory;
  const GroupTerms terms = directory.terms();
  return std::make_unique<GiverSource>(
      GiverSource::Options{.context = &context_,
                           .keys = keys_ ? &*keys_ : nullptr,
                           .endpoint = endpoint,
                           .ring_bytes = directory.RingBytesOf(giver).value_or(terms.ring_bytes),
                           .token = token,
                           .lease_ns = int64_t{terms.lease_ms} * kNsPerMs,
                           .cores_are_scarce = cores_are_scarce_,
                           .intake = receiver_->intake()},
      now);
}

}  // namespace gannet
