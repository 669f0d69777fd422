#ifndef GANNET_TOOLS_KVCLI_TIER_FIGURES_H_
#define GANNET_TOOLS_KVCLI_TIER_FIGURES_H_

#include <gannet/types.h>

#include <cstdint>
#include <string_view>

#include "tools/kvcli/text.h"

namespace gannet::kvcli {

// What a server's statistics say of the disk behind its memory (kvserver --tier).

inline bool HasTier(const ServerStats& stats) { return stats.tier_disk != 0; }

// What the disk did, since the server started or between two looks.
struct TierCounts {
  uint64_t hits = 0;  // GETs answered from there
  uint64_t reads = 0;
  uint64_t read_us = 0;  // all together
  uint64_t written = 0;
  uint64_t evicted = 0;    // from there
  uint64_t unwritten = 0;  // evicted from memory, and never there

  static TierCounts Of(const ServerStats& stats);
  // Returns what was counted since `before`.
  TierCounts Since(const TierCounts& before) const;
  double ReadUs() const { return reads > 0 ? static_cast<double>(read_us) / reads : 0; }
};

// "works", "slow", "full" or "failed". A newer server may have a state that this program does not
// know: "?".
std::string_view TierState(const ServerStats& stats);
// What is there now.
Json TierJson(const ServerStats& stats);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_TIER_FIGURES_H_
