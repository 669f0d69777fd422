#ifndef GANNET_SERVER_GROUP_MEMBERS_LINK_QUEUES_H_
#define GANNET_SERVER_GROUP_MEMBERS_LINK_QUEUES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/any_fd.h"
#include "common/rdma/completion.h"
#include "common/rdma/memory.h"
#include "server/group/members/group_context.h"
#include "server/group/members/primary_link.h"

namespace gannet {

// What a primary's links of each rail have in common: the ring, as the rail's device has it, and
// the two queues in which their work completes. The memory of the ring is the same for all.
//
// Whoever polls: any thread that may use the links. To sleep: the member's thread, and workers.
class LinkQueues {
 public:
  // ResourceExhausted: no memory for the ring, or a device has no room.
  static absl::StatusOr<LinkQueues> Create(const GroupContext& context, uint64_t ring_bytes);

  std::span<std::byte> ring() const { return ring_.bytes(); }
  // One for each rail, in their order. They stay where they are while this one is moved.
  std::span<const PrimaryLink::Environment> environments() const { return environments_; }

  // To sleep: Arm; poll all; wait until the descriptor is readable; Take. A queue that a device has
  // lost is left out, unless there is no other.
  absl::Status ArmMessages() const { return Arm(messages_); }
  absl::Status ArmStream() const { return Arm(stream_); }
  void TakeMessageEvents() const { Take(messages_); }
  void TakeStreamEvents() const { Take(stream_); }
  int messages_fd() const { return messages_.fd(); }
  int stream_fd() const { return stream_.fd(); }

 private:
  // The queues of all rails, and a descriptor that is readable if any of theirs is.
  struct Queues {
    std::vector<std::unique_ptr<CompletionQueue>> all;
    std::unique_ptr<AnyFd> several;  // nullptr: there is one rail
    int fd() const { return several == nullptr ? all.front()->fd() : several->fd(); }
  };

  static absl::Status Unite(Queues* queues);
  static absl::Status Arm(const Queues& queues);
  static void Take(const Queues& queues);

  PrivateMemory ring_;
  std::vector<Handle<ibv_mr>> registered_;
  Queues messages_;
  Queues stream_;
  std::vector<PrimaryLink::Environment> environments_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_LINK_QUEUES_H_
