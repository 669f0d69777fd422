#ifndef GANNET_CLIENT_SESSION_ORDERED_WORK_H_
#define GANNET_CLIENT_SESSION_ORDERED_WORK_H_

#include <cstddef>
#include <cstdint>

#include "client/session/in_flight_work.h"
#include "client/session/memory_domains.h"

namespace gannet {

// A READ or compare-and-swap that must be posted in the order in which the owner sends it.
struct OrderedWork {
  uint32_t op;
  InFlightWork::Kind kind;
  bool of_locks;  // `offset` is in the region of the lock words
  uint32_t bytes;
  std::byte* local;
  const MemoryKeys* keys;  // as those of QueuedRead
  uint64_t offset;
  uint64_t expected;
  uint64_t desired;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_ORDERED_WORK_H_
