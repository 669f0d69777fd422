#ifndef GANNET_SERVER_MEMORY_TIER_TIER_ITEMS_H_
#define GANNET_SERVER_MEMORY_TIER_TIER_ITEMS_H_

#include <cstdint>
#include <optional>

#include "server/memory/tier/tier_circle.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {

// The items of which a tier gets values. Called by the thread that writes, which holds no lock.
class TierItems {
 public:
  virtual ~TierItems() = default;
  // Returns a value that will soon be evicted; nullopt: there is none now. The views hold until the
  // next call.
  virtual std::optional<TierRecord> NextToWrite() = 0;
  // The record of the key with this hash is on the disk. So its item may become a stub, if its
  // version is still place.version.
  virtual void Written(uint64_t hash, const TierPlace& place) = 0;
  // The record of this place is not there, as the disk did not take it.
  virtual void NotWritten(const TierPlace& place) = 0;
  // Deletes all stubs that lead to the segment, which will be written to. What must not go can be
  // read from the circle before.
  virtual void Forget(const TierCircle::Segment& segment, TierCircle* circle) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_TIER_TIER_ITEMS_H_
