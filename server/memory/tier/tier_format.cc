// Encoding and proving the bytes of a tier. A disk may give anything: whatever is read is copied,
// and believed only if its checksum and all that its reader knows of it are right.

#include "server/memory/tier/tier_format.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace gannet {
namespace {

constexpr uint64_t kListMagic = 0x5453494c54454e47;  // "GNETLIST"

uint64_t Checksum(const TierHeader& header) {
  return Xxh3(&header, offsetof(TierHeader, checksum), /*seed=*/0);
}

uint64_t Checksum(const TierListEnd& end, const std::byte* entries) {
  const uint64_t seed = Xxh3(&end, offsetof(TierListEnd, checksum), /*seed=*/0);
  return Xxh3(entries, end.entries * sizeof(TierListEntry), seed);
}

// Of the record that begins at `bytes`, which has so many with its value.
uint64_t RecordChecksum(const std::byte* bytes, uint64_t record_bytes, uint64_t tier) {
  constexpr size_t kBegin = sizeof(TierRecordHeader::checksum);
  return Xxh3(bytes + kBegin, record_bytes - kBegin, tier);
}

TierListEnd EndOf(std::span<const std::byte> list) {
  TierListEnd end;
  std::memcpy(&end, list.last(sizeof(end)).data(), sizeof(end));
  return end;
}

}  // namespace

void EncodeTierHeader(uint64_t tier, uint64_t segment_bytes, uint64_t segments,
                      std::span<std::byte, kTierBlockBytes> room) {
  TierHeader header{.magic = kTierMagic,
                    .layout = kTierLayout,
                    .header_bytes = sizeof(TierHeader),
                    .tier = tier,
                    .segment_bytes = segment_bytes,
                    .segments = segments,
                    .checksum = 0};
  header.checksum = Checksum(header);
  std::memset(room.data(), 0, room.size());
  std::memcpy(room.data(), &header, sizeof(header));
}

TierHeaderProof ProveTierHeader(std::span<const std::byte, kTierBlockBytes> bytes,
                                TierHeader* header) {
  if (std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; })) {
    return TierHeaderProof::kEmpty;
  }
  std::memcpy(header, bytes.data(), sizeof(*header));
  if (header->magic != kTierMagic) return TierHeaderProof::kNoTier;
  if (header->layout != kTierLayout) return TierHeaderProof::kOtherLayout;
  return header->checksum == Checksum(*header) ? TierHeaderProof::kOk : TierHeaderProof::kNoTier;
}

void EncodeTierRecord(uint64_t tier, const TierPlace& place, const TierRecord& record,
                      std::span<std::byte> room) {
  const uint64_t value_offset = TierValueOffset(record.key.size());
  const uint64_t end = value_offset + record.value.size();
  GANNET_CHECK(room.size() >= TierRecordBytes(record.key.size(), record.value.size()),
               "the record does not fit its room");
  TierRecordHeader header{.checksum = 0,
                          .position = place.position,
                          .version = place.version,
                          .lap = place.lap,
                          .value_bytes = place.value_bytes,
                          .flags = record.flags,
                          .key_bytes = static_cast<uint16_t>(record.key.size()),
                          .reserved = 0,
                          .expiry_ms = record.expiry.ms()};
  std::byte* const bytes = room.data();
  std::memset(bytes, 0, value_offset);
  std::memcpy(bytes, &header, sizeof(header));
  std::memcpy(bytes + sizeof(header), record.key.data(), record.key.size());
  std::memcpy(bytes + value_offset, record.value.data(), record.value.size());
  std::memset(bytes + end, 0, AlignUp(end, kTierRecordAlignment) - end);
  header.checksum = RecordChecksum(bytes, end, tier);
  std::memcpy(bytes, &header.checksum, sizeof(header.checksum));
}

std::optional<std::string_view> ProveTierRecord(std::span<const std::byte> bytes, uint64_t tier,
                                                const TierPlace& place, std::string_view key) {
  GANNET_CHECK(bytes.size() >= TierRecordBytes(key.size(), place.value_bytes),
               "a part of a record proves nothing");
  TierRecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.position != place.position || header.version != place.version ||
      header.lap != place.lap || header.value_bytes != place.value_bytes ||
      header.key_bytes != key.size()) {
    return std::nullopt;
  }
  const char* const chars = reinterpret_cast<const char*>(bytes.data());
  if (std::string_view(chars + sizeof(header), key.size()) != key) return std::nullopt;
  const uint64_t value_offset = TierValueOffset(key.size());
  const uint64_t end = value_offset + place.value_bytes;
  if (header.checksum != RecordChecksum(bytes.data(), end, tier)) return std::nullopt;
  return std::string_view(chars + value_offset, place.value_bytes);
}

void EncodeTierList(uint64_t tier, uint32_t lap, std::span<const TierListEntry> entries,
                    std::span<std::byte> room) {
  GANNET_CHECK(room.size() == TierListBytes(entries.size()), "the list does not fit its room");
  std::memset(room.data(), 0, room.size());
  if (!entries.empty()) std::memcpy(room.data(), entries.data(), entries.size_bytes());
  TierListEnd end{.magic = kListMagic,
                  .tier = tier,
                  .lap = lap,
                  .entries = static_cast<uint32_t>(entries.size()),
                  .checksum = 0};
  end.checksum = Checksum(end, room.data());
  std::memcpy(room.last(sizeof(end)).data(), &end, sizeof(end));
}

std::optional<uint32_t> TierListEntries(std::span<const std::byte, kTierBlockBytes> last_block,
                                        uint64_t tier, uint32_t lap, uint64_t list_bytes_max) {
  const TierListEnd end = EndOf(last_block);
  if (end.magic != kListMagic || end.tier != tier || end.lap != lap) return std::nullopt;
  if (TierListBytes(end.entries) > list_bytes_max) return std::nullopt;
  return end.entries;
}

std::optional<std::vector<TierListEntry>> DecodeTierList(std::span<const std::byte> bytes,
                                                         uint32_t entries) {
  GANNET_CHECK(bytes.size() == TierListBytes(entries), "a part of a list proves nothing");
  const TierListEnd end = EndOf(bytes);
  if (end.entries != entries || end.checksum != Checksum(end, bytes.data())) return std::nullopt;
  std::vector<TierListEntry> list(entries);
  if (entries > 0) std::memcpy(list.data(), bytes.data(), entries * sizeof(TierListEntry));
  return list;
}

}  // namespace gannet
