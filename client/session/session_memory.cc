#include "client/session/session_memory.h"

#include <cstring>
#include <utility>

#include "common/base/status_macros.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<SessionMemory>> SessionMemory::Create(
    const Device& device, std::shared_ptr<MemoryDomains> domains, uint32_t ops,
    uint32_t completions) {
  auto memory = std::make_unique<SessionMemory>();
  memory->device = device;
  GANNET_ASSIGN_OR_RETURN(memory->domain, domains->Open(device.verbs));
  ibv_pd* pd = domains->pd(memory->domain);
  memory->domains = std::move(domains);
  GANNET_ASSIGN_OR_RETURN(memory->completions,
                          CompletionQueue::Create(device.verbs, completions, true));
  GANNET_ASSIGN_OR_RETURN(memory->op_buffers,
                          RegisteredBuffer::Create(pd, uint64_t{ops} * sizeof(OpBuffers)));
  constexpr uint64_t kRequestBytes = uint64_t{RequestWindow::kCreditsMax + 1} * kMessageBytesMax;
  GANNET_ASSIGN_OR_RETURN(memory->requests, RegisteredBuffer::Create(pd, kRequestBytes));
  constexpr uint64_t kReceiveBytes = uint64_t{kReceives} * kMessageBytesMax;
  GANNET_ASSIGN_OR_RETURN(memory->receives, RegisteredBuffer::Create(pd, kReceiveBytes));
  memory->items = RegisteredPool(pd, RemoteAccess::kNone);
  memory->values = RegisteredPool(pd, RemoteAccess::kRead);
  memory->replies = RegisteredPool(pd, RemoteAccess::kReadWrite);
  RequestHeader heartbeat{};
  heartbeat.opcode = static_cast<uint8_t>(Opcode::kHeartbeat);
  std::memcpy(memory->heartbeat(), &heartbeat, sizeof(heartbeat));
  return memory;
}

}  // namespace gannet
