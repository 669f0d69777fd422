#include "server/main/control/lock_memory.h"

#include "common/base/status_macros.h"

namespace gannet {

absl::StatusOr<LockMemory> LockMemory::Create(size_t words) {
  GANNET_ASSIGN_OR_RETURN(SharedMemory memory,
                          SharedMemory::Create({.name = "gannet-locks",
                                                .bytes = words * sizeof(uint64_t),
                                                .huge_pages = HugePages::kOff,
                                                .remote_write = true}));
  return LockMemory(std::move(memory), words);
}

absl::Status LockMemory::Register(ibv_pd* pd, RemoteAccess access) {
  GANNET_ASSIGN_OR_RETURN(mr_, RegisterMemory(pd, memory_.bytes(), access));
  return absl::OkStatus();
}

}  // namespace gannet
