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
#include "common/rdma/device.h"
#include "server/group/group_options.h"
#include "server/group/member_task.h"
#include "server/move/partition_cleaner.h"
#include "server/move/partition_receiver.h"

namespace gannet {

// What a server does for partitions that move, while it is its group's primary.
//
// Thread safety: the member's thread, but for Create.
class MoveTasks {
 public:
  struct Options {
    GroupOptions group;  // REQUIRES: a directory and a map store
    Device device;
    Store* store = nullptr;
    Writes* writes = nullptr;
    uint64_t incarnation = 0;
    // As those of Member::Options.
    std::function<uint64_t()> random;
    uint64_t (*machine_ms)() = nullptr;
    std::function<int64_t()> clock;
    std::function<uint64_t()> now_ms;
    std::function<void()> publish;
    std::function<void()> idle;
    std::function<bool()> cores_are_scarce;  // as that of CopyPace
    std::function<uint64_t()> requests;      // of clients, so far
  };
  // The errors are those of AuthFile::Open.
  static absl::StatusOr<std::unique_ptr<MoveTasks>> Create(Options options);

  std::vector<MemberTask*> All() { return {&*receiver_, &*cleaner_}; }

 private:
  explicit MoveTasks(Options options) : options_(std::move(options)) {}
  std::unique_ptr<MoveSource> MakeSource(const std::string& giver, const std::string& endpoint,
                                         int64_t now);

  const Options options_;
  std::optional<AuthFile> keys_;
  std::optional<PartitionReceiver> receiver_;
  std::optional<PartitionCleaner> cleaner_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MOVE_MOVE_TASKS_H_
