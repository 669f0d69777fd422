#ifndef GANNET_SERVER_MEMORY_TIER_TIER_FORMAT_H_
#define GANNET_SERVER_MEMORY_TIER_TIER_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/align.h"
#include "common/base/server_time.h"
#include "common/layout/item.h"

namespace gannet {

// The bytes of a tier on the disk (docs/decisions/2026-11-29-tier.md). All I/O is in whole blocks,
// so that it works with O_DIRECT.
//
//   | header, one block | segment 0 | segment 1 | ...
//   segment: | batch | batch | ... | unused | list, its end in the last bytes |
//   batch:   | record | record | ... | zeros up to a block |

inline constexpr uint64_t kTierBlockBytes = 4096;
inline constexpr uint64_t kTierSegmentBytes = 64 << 20;
inline constexpr uint32_t kTierSegmentsMin = 16;
inline constexpr uint64_t kTierRecordAlignment = 64;
inline constexpr size_t kTierValueBytesMin = 4 << 10;
inline constexpr size_t kTierValueBytesMax = 4 << 20;
inline constexpr uint64_t kTierMagic = 0x5245495454454e47;  // "GNETTIER"
inline constexpr uint32_t kTierLayout = 1;

struct TierHeader {
  uint64_t magic;
  uint32_t layout;
  uint32_t header_bytes;
  uint64_t tier;  // random; never 0
  uint64_t segment_bytes;
  uint64_t segments;
  uint64_t checksum;  // XXH3-64 of the fields before, seed 0
};
static_assert(sizeof(TierHeader) == 48 && std::is_trivially_copyable_v<TierHeader>);

struct TierRecordHeader {
  uint64_t checksum;  // XXH3-64 of what follows, up to the end of the value; the seed is the tier
  uint64_t position;  // of the record in the file
  uint64_t version;
  uint32_t lap;
  uint32_t value_bytes;
  uint32_t flags;
  uint16_t key_bytes;
  uint16_t reserved;
  uint64_t expiry_ms;  // since the Unix epoch; 0: never
};
static_assert(sizeof(TierRecordHeader) == 48 && std::is_trivially_copyable_v<TierRecordHeader>);

// What the list of a segment says of a record.
struct TierListEntry {
  uint64_t hash;  // of the key
  uint64_t version;
  uint64_t position;
};
static_assert(sizeof(TierListEntry) == 24 && std::is_trivially_copyable_v<TierListEntry>);

// The last bytes of a segment. The list begins at a block, and all of it fits before this.
struct TierListEnd {
  uint64_t magic;
  uint64_t tier;
  uint32_t lap;
  uint32_t entries;
  uint64_t checksum;  // XXH3-64 of the entries, seeded with that of the fields before
};
static_assert(sizeof(TierListEnd) == 32 && std::is_trivially_copyable_v<TierListEnd>);

// An item as it is written. The views are the caller's.
struct TierRecord {
  std::string_view key;
  std::string_view value;
  uint64_t hash = 0;  // of the key
  uint64_t version = 0;
  uint32_t flags = 0;
  Expiry expiry;
};

// Where a record is, and what tells it from all others. A stub says this.
struct TierPlace {
  uint64_t position = 0;
  uint32_t lap = 0;  // how often the circle has come to the record's segment
  uint32_t value_bytes = 0;
  uint64_t version = 0;  // of the record; a touch changes that of the stub only
  friend bool operator==(const TierPlace&, const TierPlace&) = default;
};

constexpr uint64_t TierValueOffset(size_t key_bytes) {
  return AlignUp(sizeof(TierRecordHeader) + key_bytes, kTierRecordAlignment);
}
constexpr uint64_t TierRecordBytes(size_t key_bytes, size_t value_bytes) {
  return AlignUp(TierValueOffset(key_bytes) + value_bytes, kTierRecordAlignment);
}
inline constexpr uint64_t kTierRecordBytesMax = TierRecordBytes(kKeyBytesMax, kTierValueBytesMax);

// The blocks that a record lies in.
struct TierBlocks {
  uint64_t begin;
  uint64_t bytes;
};
constexpr TierBlocks BlocksOf(uint64_t position, uint64_t bytes) {
  const uint64_t begin = position & ~(kTierBlockBytes - 1);
  return {begin, AlignUp(position + bytes, kTierBlockBytes) - begin};
}
// The most bytes of blocks that a record may lie in.
inline constexpr uint64_t kTierReadBytesMax =
    AlignUp(kTierRecordBytesMax, kTierBlockBytes) + kTierBlockBytes;

constexpr uint64_t TierListBytes(uint64_t entries) {
  return AlignUp(entries * sizeof(TierListEntry) + sizeof(TierListEnd), kTierBlockBytes);
}

void EncodeTierHeader(uint64_t tier, uint64_t segment_bytes, uint64_t segments,
                      std::span<std::byte, kTierBlockBytes> room);
enum class TierHeaderProof : uint8_t {
  kOk,
  kEmpty,        // zeros: no header was ever written
  kOtherLayout,  // a tier's, of another version of this format
  kNoTier,       // something else
};
TierHeaderProof ProveTierHeader(std::span<const std::byte, kTierBlockBytes> bytes,
                                TierHeader* header);

// Writes a record to the begin of `room`, with zeros up to its end. REQUIRES: there are
// TierRecordBytes; place.value_bytes is that of the value.
void EncodeTierRecord(uint64_t tier, const TierPlace& place, const TierRecord& record,
                      std::span<std::byte> room);
// Returns the value, in `bytes`, or nullopt if it is not this record, whole. REQUIRES: there are
// TierRecordBytes.
std::optional<std::string_view> ProveTierRecord(std::span<const std::byte> bytes, uint64_t tier,
                                                const TierPlace& place, std::string_view key);

// REQUIRES: the room has TierListBytes.
void EncodeTierList(uint64_t tier, uint32_t lap, std::span<const TierListEntry> entries,
                    std::span<std::byte> room);
// Returns how many entries the list has whose last block this is, or nullopt if it is no list of
// this lap, or one of more than `list_bytes_max` bytes.
std::optional<uint32_t> TierListEntries(std::span<const std::byte, kTierBlockBytes> last_block,
                                        uint64_t tier, uint32_t lap, uint64_t list_bytes_max);
// Returns the entries of a whole list, or nullopt if it is damaged. REQUIRES: TierListEntries gave
// their number, and `bytes` has TierListBytes.
std::optional<std::vector<TierListEntry>> DecodeTierList(std::span<const std::byte> bytes,
                                                         uint32_t entries);

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_TIER_TIER_FORMAT_H_
