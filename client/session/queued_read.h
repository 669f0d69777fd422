#ifndef GANNET_CLIENT_SESSION_QUEUED_READ_H_
#define GANNET_CLIENT_SESSION_QUEUED_READ_H_

#include <cstddef>
#include <cstdint>

#include "client/session/memory_domains.h"

namespace gannet {

// A READ of the server's region that is to be posted.
struct QueuedRead {
  std::byte* local;
  uint64_t offset;
  uint32_t op;
  uint32_t bytes;
  const MemoryKeys* keys;  // of other memory than the operation's own; nullptr: `local` is that
};

// Local memory for a part of what a READ brings.
struct LocalPiece {
  uint64_t address;
  uint32_t bytes;
  const MemoryKeys* keys;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_QUEUED_READ_H_
