#ifndef GANNET_TESTS_SERVER_MEMORY_TIER_SOME_TIER_H_
#define GANNET_TESTS_SERVER_MEMORY_TIER_SOME_TIER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/memory/tier/tier_buffer.h"
#include "server/memory/tier/tier_circle.h"
#include "tests/server/memory/tier/bad_disk.h"

namespace gannet {

inline constexpr uint64_t kSomeTier = 77;
inline constexpr uint64_t kSomeSegmentBytes = 64 << 10;
inline constexpr uint64_t kSomeSegments = 4;
inline constexpr uint64_t kSomeTierBytes = kTierBlockBytes + kSomeSegments * kSomeSegmentBytes;

inline TierCircle::Options SomeOptions(BadDisk* disk, std::vector<uint32_t> laps = {}) {
  return {.file = disk,
          .tier = kSomeTier,
          .segment_bytes = kSomeSegmentBytes,
          .segments = kSomeSegments,
          .laps = std::move(laps)};
}

// Four of these fill a segment of kSomeSegmentBytes.
inline std::string SomeValue(uint64_t version) {
  return std::string(14 << 10, static_cast<char>('a' + version % 26)) + std::to_string(version);
}

inline std::string SomeKey(uint64_t i) { return "key" + std::to_string(i); }

// Pins the place, and reads it.
inline absl::StatusOr<std::string> ReadFrom(TierCircle* circle, const TierPlace& place,
                                            std::string_view key) {
  if (!circle->Pin(place)) return absl::NotFoundError("the segment was taken again");
  const TierBuffer buffer(kTierReadBytesMax);
  const absl::StatusOr<std::string_view> value = circle->Read(place, key, buffer.bytes());
  circle->Unpin(place);
  if (!value.ok()) return value.status();
  return std::string(*value);
}

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_TIER_SOME_TIER_H_
