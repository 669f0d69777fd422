#ifndef GANNET_COMMON_PROTOCOL_VERSIONS_H_
#define GANNET_COMMON_PROTOCOL_VERSIONS_H_

#include <algorithm>
#include <cstdint>
#include <optional>

namespace gannet {

// The versions of something that a program speaks, from min to max.
struct VersionRange {
  uint16_t min;
  uint16_t max;
  constexpr bool Has(uint16_t version) const { return min <= version && version <= max; }
};

// Returns the highest version that both speak, or nullopt if there is none.
constexpr std::optional<uint16_t> CommonVersion(VersionRange a, VersionRange b) {
  const uint16_t highest = std::min(a.max, b.max);
  if (a.Has(highest) && b.Has(highest)) return highest;
  return std::nullopt;
}

// Between clients and servers.
inline constexpr VersionRange kProtocolVersions = {4, 5};
// The first whose clients know ReplyStatus::kOutcomeUnknown.
inline constexpr uint16_t kProtocolVersionOfOutcomeUnknown = 5;
// The versions of what a primary tells its backups: records, beacons, and answers
// (docs/versions.md).
inline constexpr VersionRange kStreamVersions = {0, 3};
inline constexpr uint16_t kStreamVersionOfUpdates = 1;  // the first that has records of updates
inline constexpr uint16_t kStreamVersionOfBatches = 2;  // the first that has many in one record
// The first that has last beacons, and whose backups wait for as long as the welcome's lease says.
inline constexpr uint16_t kStreamVersionOfLastBeacons = 3;

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_VERSIONS_H_
