#include "server/rpc/worker_context.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/protocol/heartbeats.h"
#include "server/sessions/locks/cpu_lock_cas.h"
#include "server/sessions/locks/loopback_lock_cas.h"

namespace gannet {
namespace {

// A send queue holds the replies to `credits` requests whose acknowledgements are still on their
// way, the replies to the next requests, heartbeats, READs of values, and the drain.
constexpr uint32_t kSendPlacesPerCredit = 3;
constexpr uint32_t kSendPlacesSpare = 16;
// No other value is as long and still passes through a buffer: large ones are READ straight into
// their items, and never overwritten or sent.
constexpr uint32_t kStagingBytes = SizeClassBytes(kSealedClassMax);

absl::StatusOr<std::unique_ptr<LockCas>> MakeCas(const ServerContext& server) {
  if (server.lock_mode() == LockMode::kRpcServer) {
    return std::make_unique<CpuLockCas>(server.first_lock_words);
  }
  const Rail& rail = server.lock_rail();
  // A single rail may have the address of all devices.
  std::optional<SocketAddress> address;
  if (server.rails.size() > 1) address = rail.address;
  return LoopbackLockCas::Create(rail.device, {.pd = rail.pd,
                                               .address = server.grant.lock_address,
                                               .rkey = server.grant.lock_rkey,
                                               .device_address = address,
                                               .idle = server.idle});
}

SessionTable::Options SessionOptions(const WorkerContext& context) {
  return {.credits = context.options.credits,
          .grace_ns = context.options.session_grace_ns,
          .worker = context.index,
          .workers = context.server.workers,
          .random = &context.server.random,
          .stream = context.session_stream};
}

}  // namespace

absl::StatusOr<RailQueues> RailQueues::Create(const Rail& rail, const WorkerOptions& options) {
  const DeviceCaps& caps = rail.device.caps;
  RailQueues made;
  made.send_places =
      std::min(options.credits * kSendPlacesPerCredit + kSendPlacesSpare, caps.max_qp_wr);
  const uint32_t receives = std::min(options.receives, caps.max_srq_wr);
  const uint64_t entries = std::min<uint64_t>(
      caps.max_cqe, receives + uint64_t{options.connections_max} * made.send_places);
  GANNET_ASSIGN_OR_RETURN(
      made.cq, CompletionQueue::Create(rail.device.verbs, static_cast<uint32_t>(entries), true));
  GANNET_RETURN_IF_ERROR(made.cq->Reserve(receives));
  GANNET_ASSIGN_OR_RETURN(made.receives, ReceiveBuffers::Create(rail.pd, receives));
  return made;
}

absl::StatusOr<WorkerQueues> WorkerQueues::Create(const ServerContext& server,
                                                  const WorkerOptions& options) {
  WorkerQueues made;
  GANNET_ASSIGN_OR_RETURN(made.inbox, Inbox::Create());
  std::vector<ibv_pd*> pds;
  for (const Rail& rail : server.rails) {
    pds.push_back(rail.pd);
    GANNET_ASSIGN_OR_RETURN(made.rails.emplace_back(), RailQueues::Create(rail, options));
  }
  GANNET_ASSIGN_OR_RETURN(made.reply_buffers,
                          BufferPool::Create(pds, options.reply_buffers, kMessageBytesMax));
  GANNET_ASSIGN_OR_RETURN(made.staging,
                          BufferPool::Create(pds, options.staging_buffers, kStagingBytes));
  GANNET_ASSIGN_OR_RETURN(made.replacing,
                          ReplacingBuffers::Create(pds, options.replacing_buffers, kStagingBytes));
  GANNET_ASSIGN_OR_RETURN(made.cas, MakeCas(server));
  made.lock_place = {
      .rail = 0, .address = server.grant.lock_address, .rkey = server.grant.lock_rkey};
  return made;
}

WorkerContext::WorkerContext(ServerContext& shared, const WorkerOptions& given, uint32_t number,
                             WorkerQueues made)
    : WorkerQueues(std::move(made)),
      server(shared),
      options(given),
      index(number),
      unanswered_max(given.credits + kHeartbeatsUnansweredMax),
      session_stream(shared.session_stream ? &*shared.session_stream : nullptr),
      slow_requests(shared, now),
      sessions(SessionOptions(*this)),
      connections(rails.size()) {}

}  // namespace gannet
