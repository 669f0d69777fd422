#ifndef GANNET_CLIENT_SESSION_SESSION_MEMORY_H_
#define GANNET_CLIENT_SESSION_SESSION_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "client/session/liveness.h"
#include "client/session/registered_pool.h"
#include "client/session/request_window.h"
#include "common/layout/bucket.h"
#include "common/protocol/limits.h"
#include "common/protocol/message.h"
#include "common/rdma/completion.h"
#include "common/rdma/device.h"
#include "common/rdma/memory.h"

namespace gannet {

// The memory of one operation that READs and compare-and-swaps go to.
struct OpBuffers {
  static constexpr uint32_t kSmallItemBytes = 1280;  // longer items take a lent buffer

  alignas(64) std::byte window[2][kWindowBytes];
  uint64_t cas_result;
  alignas(64) std::byte item[kSmallItemBytes];
};
static_assert(sizeof(OpBuffers) == 2 * kWindowBytes + 64 + OpBuffers::kSmallItemBytes);

// Everything of a session that is bound to a device and outlives its connections: protection
// domain, completion queue, registered memory. Peers have no right to any of it but to what a
// request names: `values` (the server may read) and `replies` (the server may write).
//
// Members are in the order of dependency. One owner thread.
struct SessionMemory {
  static constexpr uint32_t kHeartbeatReceives = Liveness::kHeartbeatsMax;
  static constexpr uint32_t kQueuePairsMax = 8;
  // Of the first queue pair; the others have heartbeats only.
  static constexpr uint32_t kFirstReceives = RequestWindow::kCreditsMax + kHeartbeatReceives;
  static constexpr uint32_t kReceives = kFirstReceives + (kQueuePairsMax - 1) * kHeartbeatReceives;

  // `completions`: entries of the completion queue. ResourceExhausted: memory or memlock.
  static absl::StatusOr<std::unique_ptr<SessionMemory>> Create(const Device& device, uint32_t ops,
                                                               uint32_t completions);

  OpBuffers* op(uint32_t i) const { return reinterpret_cast<OpBuffers*>(op_buffers.data()) + i; }
  std::byte* request(uint32_t i) const { return requests.data() + uint64_t{i} * kMessageBytesMax; }
  std::byte* receive(uint32_t i) const { return receives.data() + uint64_t{i} * kMessageBytesMax; }
  // A heartbeat's bytes, behind the requests.
  std::byte* heartbeat() const { return request(RequestWindow::kCreditsMax); }
  // Of the heartbeats from now on.
  void SetServerSet(uint64_t hash) const {
    std::memcpy(heartbeat() + offsetof(RequestHeader, server_set), &hash, sizeof(hash));
  }

  Device device;
  Handle<ibv_pd> pd;
  std::unique_ptr<CompletionQueue> completions;
  RegisteredBuffer op_buffers;
  RegisteredBuffer requests;
  RegisteredBuffer receives;
  RegisteredPool items{nullptr, RemoteAccess::kNone};         // long items are READ into these
  RegisteredPool values{nullptr, RemoteAccess::kRead};        // of long PUTs
  RegisteredPool replies{nullptr, RemoteAccess::kReadWrite};  // of GETs by RPC
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_MEMORY_H_
