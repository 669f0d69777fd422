#include "client/session/session_memory.h"

#include <cstring>
#include <utility>

#include "common/base/status_macros.h"

namespace gannet {
namespace {

absl::StatusOr<SessionBuffers> MakeBuffers(MemoryDomains& domains, uint64_t bytes) {
  SessionBuffers made;
  GANNET_ASSIGN_OR_RETURN(made.range, domains.AllocateBuffers(bytes, RemoteAccess::kNone));
  made.data = made.range->data();
  return made;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionMemory>> SessionMemory::Create(
    std::shared_ptr<MemoryDomains> domains, uint32_t ops) {
  auto memory = std::make_unique<SessionMemory>();
  memory->domains = std::move(domains);
  MemoryDomains& all = *memory->domains;
  GANNET_ASSIGN_OR_RETURN(memory->op_buffers, MakeBuffers(all, uint64_t{ops} * sizeof(OpBuffers)));
  constexpr uint64_t kRequestBytes = uint64_t{RequestWindow::kCreditsMax + 2} * kMessageBytesMax;
  GANNET_ASSIGN_OR_RETURN(memory->requests, MakeBuffers(all, kRequestBytes));
  constexpr uint64_t kReceiveBytes = uint64_t{kReceives} * kMessageBytesMax;
  GANNET_ASSIGN_OR_RETURN(memory->receives, MakeBuffers(all, kReceiveBytes));
  memory->items = RegisteredPool(&all, RemoteAccess::kNone);
  memory->values = RegisteredPool(&all, RemoteAccess::kRead);
  memory->replies = RegisteredPool(&all, RemoteAccess::kReadWrite);
  RequestHeader heartbeat{};
  heartbeat.opcode = static_cast<uint8_t>(Opcode::kHeartbeat);
  std::memcpy(memory->heartbeat(), &heartbeat, sizeof(heartbeat));
  return memory;
}

absl::StatusOr<const SessionBuffers*> SessionMemory::RailReceives(uint32_t connection) {
  SessionBuffers& buffers = rail_receives[connection];
  if (buffers.data == nullptr) {
    constexpr uint64_t kBytes = uint64_t{kFirstReceives} * kMessageBytesMax;
    GANNET_ASSIGN_OR_RETURN(buffers, MakeBuffers(*domains, kBytes));
  }
  return &buffers;
}

SessionDevice* SessionMemory::Find(const ibv_context* verbs, bool joins_by_rails) const {
  for (const std::unique_ptr<SessionDevice>& it : devices) {
    if (it->device.verbs == verbs && it->joins_by_rails == joins_by_rails && !it->lost)
      return it.get();
  }
  return nullptr;
}

absl::StatusOr<SessionDevice*> SessionMemory::Open(const Device& device, bool joins_by_rails,
                                                   uint32_t completions) {
  auto made = std::make_unique<SessionDevice>();
  made->device = device;
  made->joins_by_rails = joins_by_rails;
  GANNET_ASSIGN_OR_RETURN(made->domain, domains->Open(device.verbs));
  GANNET_ASSIGN_OR_RETURN(made->completions,
                          CompletionQueue::Create(device.verbs, completions, true));
  const DeviceCaps& caps = device.caps;
  pieces = std::max(1u, std::min({caps.max_sge_rd, caps.max_sge, pieces}));
  devices.push_back(std::move(made));
  return devices.back().get();
}

}  // namespace gannet
