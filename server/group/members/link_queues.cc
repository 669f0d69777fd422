#include "server/group/members/link_queues.h"

#include <utility>

#include "common/base/status_macros.h"

namespace gannet {
namespace {

constexpr uint32_t kMessageCompletions = 8192;
constexpr uint32_t kStreamCompletions = 8192;

}  // namespace

absl::StatusOr<LinkQueues> LinkQueues::Create(const GroupContext& context, uint64_t ring_bytes) {
  LinkQueues made;
  GANNET_ASSIGN_OR_RETURN(made.ring_, PrivateMemory::Create(ring_bytes));
  for (const LinkRail& rail : context.rails) {
    ibv_context* const verbs = rail.device.verbs;
    GANNET_ASSIGN_OR_RETURN(made.registered_.emplace_back(),
                            RegisterMemory(rail.pd, made.ring(), RemoteAccess::kNone));
    GANNET_ASSIGN_OR_RETURN(made.messages_.all.emplace_back(),
                            CompletionQueue::Create(verbs, kMessageCompletions, true));
    GANNET_ASSIGN_OR_RETURN(made.stream_.all.emplace_back(),
                            CompletionQueue::Create(verbs, kStreamCompletions, true));
    made.environments_.push_back({.device = &rail.device,
                                  .pd = rail.pd,
                                  .listener = context.listener,
                                  .messages_cq = made.messages_.all.back().get(),
                                  .stream_cq = made.stream_.all.back().get(),
                                  .ring = made.ring(),
                                  .ring_lkey = made.registered_.back()->lkey});
  }
  GANNET_RETURN_IF_ERROR(Unite(&made.messages_));
  GANNET_RETURN_IF_ERROR(Unite(&made.stream_));
  return made;
}

absl::Status LinkQueues::Unite(Queues* queues) {
  if (queues->all.size() == 1) return absl::OkStatus();
  std::vector<int> fds;
  for (const auto& queue : queues->all) fds.push_back(queue->fd());
  GANNET_ASSIGN_OR_RETURN(queues->several, AnyFd::Of(fds));
  return absl::OkStatus();
}

absl::Status LinkQueues::Arm(const Queues& queues) {
  if (queues.all.size() == 1) return queues.all.front()->Arm();
  for (const auto& queue : queues.all) {
    if (!queue->broken()) queue->Arm().IgnoreError();  // a queue that is lost fails its links
  }
  return absl::OkStatus();
}

void LinkQueues::Take(const Queues& queues) {
  for (const auto& queue : queues.all) queue->TakeEvent();
}

}  // namespace gannet
