#ifndef GANNET_COMMON_LAYOUT_VERSION_H_
#define GANNET_COMMON_LAYOUT_VERSION_H_

#include <cstdint>
#include <optional>

namespace gannet {

// The version of an item. A server has one counter for all versions, which begins where the clock
// was at the start.
//
//   63        44 43                 0
//   [ epoch : 20 ][  counter : 44    ]      first version = (wall ns since 2026-01-01) << 5
//
// No two runs of a server give the same version. So a version that a client remembers from an
// earlier run never matches an item of this run. All threads take versions from one counter, so a
// run that began at time T gives fewer than 32 versions per nanosecond. At time U it has given
// fewer than 32 * (U - T), and all of them are below U << 5, which is where a run that starts at U
// begins.
//
// The epoch is what the upper 20 bits count: units of 2^39 ns (9 minutes). 64 bits last until 2044.
//
// The clock may even be set back between two runs. The later run then begins below the last version
// of the earlier one. It reaches those versions only when it has given 32 versions for every
// nanosecond that the clock went back: one second back equals an hour of 9 million writes per
// second.
inline constexpr int64_t kVersionClockStartNs = 1'767'225'600'000'000'000;  // 2026-01-01T00:00Z
inline constexpr uint32_t kVersionsPerNsBits = 5;

// Returns the first version of a run that starts when the wall clock says `wall_ns` since the Unix
// epoch. Returns nullopt if the clock is not set: it is before 2026 or after 2044.
constexpr std::optional<uint64_t> FirstVersionAt(int64_t wall_ns) {
  const int64_t since_ns = wall_ns - kVersionClockStartNs;
  if (since_ns <= 0 || since_ns >> (64 - kVersionsPerNsBits) != 0) return std::nullopt;
  return static_cast<uint64_t>(since_ns) << kVersionsPerNsBits;
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_VERSION_H_
