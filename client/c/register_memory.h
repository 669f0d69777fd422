#ifndef GANNET_CLIENT_C_REGISTER_MEMORY_H_
#define GANNET_CLIENT_C_REGISTER_MEMORY_H_

#include <gannet/gannet.h>
#include <gannet/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/c/answer.h"
#include "client/c/report_status.h"

namespace gannet {

// Registered memory, for the synchronous and the asynchronous client alike.

// InvalidArgument: a flag that this library does not know.
inline absl::StatusOr<RegisterOptions> ReadRegisterFlags(uint32_t flags) {
  if ((flags & ~uint32_t{GANNET_NO_REMOTE_READ}) != 0) {
    return absl::InvalidArgumentError("a flag that this libgannet does not know: update it");
  }
  return RegisterOptions{.remote_read = (flags & GANNET_NO_REMOTE_READ) == 0};
}

template <class AnyClient>
gannet_status RegisterBuffer(AnyClient& client, void* memory, size_t size, uint32_t flags,
                             gannet_memory** registered) {
  *registered = nullptr;
  const absl::StatusOr<RegisterOptions> options = ReadRegisterFlags(flags);
  if (!options.ok()) return Report(options.status());
  const std::span<std::byte> bytes(static_cast<std::byte*>(memory), size);
  return WriteMemory(client.Register(bytes, *options), registered);
}

template <class AnyClient>
gannet_status RegisterDmabuf(AnyClient& client, int fd, uint64_t offset, uint64_t size,
                             uint32_t flags, gannet_memory** registered) {
  *registered = nullptr;
  const absl::StatusOr<RegisterOptions> options = ReadRegisterFlags(flags);
  if (!options.ok()) return Report(options.status());
  return WriteMemory(client.RegisterDmabuf(fd, offset, size, *options), registered);
}

}  // namespace gannet

#endif  // GANNET_CLIENT_C_REGISTER_MEMORY_H_
