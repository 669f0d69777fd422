#include "server/move/move_tasks.h"

#include <utility>

#include "common/base/nonzero_random.h"
#include "common/base/status_macros.h"
#include "server/move/giver_source.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<MoveTasks>> MoveTasks::Create(Options options) {
  std::unique_ptr<MoveTasks> tasks(new MoveTasks(std::move(options)));
  const Options& given = tasks->options_;
  if (!given.group.auth_file.empty()) {
    GANNET_ASSIGN_OR_RETURN(tasks->keys_, AuthFile::Open(given.group.auth_file));
  }
  tasks->receiver_.emplace(PartitionReceiver::Options{
      .group = given.group.name,
      .directory = given.group.directory,
      .map_store = given.group.map_store,
      .writes = given.writes,
      .store = given.store,
      .publish = given.publish,
      .now_ms = given.now_ms,
      .make_source = [made = tasks.get()](const std::string& giver, const std::string& endpoint,
                                          int64_t now) {
        return made->MakeSource(giver, endpoint, now);
      }});
  tasks->cleaner_.emplace(PartitionCleaner::Options{
      .group = given.group.name,
      .directory = given.group.directory,
      .writes = given.writes,
      .publish = given.publish,
      .now_ms = given.now_ms,
      .clock = given.clock,
      .requests = given.requests,
      .taking = [receiver = &*tasks->receiver_] { return receiver->taking(); }});
  return tasks;
}

// The ring is as long as those of the giver's group.
std::unique_ptr<MoveSource> MoveTasks::MakeSource(const std::string& giver,
                                                  const std::string& endpoint, int64_t now) {
  const uint64_t token = NonzeroRandom(options_.random);
  const GroupDirectory& directory = *options_.group.directory;
  const GroupTerms terms = directory.terms();
  return std::make_unique<GiverSource>(
      GiverSource::Options{
          .device = options_.device,
          .endpoint = endpoint,
          .self = {.node = options_.group.node, .incarnation = options_.incarnation},
          .keys = keys_ ? &*keys_ : nullptr,
          .ring_bytes = directory.RingBytesOf(giver).value_or(terms.ring_bytes),
          .token = token,
          .lease_ns = int64_t{terms.lease_ms} * kNsPerMs,
          .machine_ms = options_.machine_ms,
          .now_ms = options_.now_ms,
          .clock = options_.clock,
          .idle = options_.idle,
          .cores_are_scarce = options_.cores_are_scarce,
          .intake = receiver_->intake()},
      now);
}

}  // namespace gannet
