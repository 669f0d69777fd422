#ifndef GANNET_SERVER_LOG_STREAM_UPDATE_RECORD_INLINE_H_
#define GANNET_SERVER_LOG_STREAM_UPDATE_RECORD_INLINE_H_

#include <cstddef>
#include <cstdint>

#include "common/base/hash.h"
#include "common/base/xxh3_inline.h"
#include "server/log/changes/update_lane_inline.h"
#include "server/log/stream/update_record.h"

// The functions of update_record.h, for the few sources where every instruction counts.

namespace gannet {

inline constexpr size_t kUpdateHeadAt = sizeof(RingRecordStart::checksum);

// The word behind the checksum: the length, the kind, and zeros.
constexpr uint64_t UpdateHeadWord(size_t bytes) {
  return bytes | uint64_t{static_cast<uint8_t>(RingRecordKind::kUpdate)} << 32;
}
static_assert(offsetof(RingRecordStart, record_bytes) == 8 &&
              offsetof(RingRecordStart, kind) == 12);

// Covers what is before the item's content, that content by its checksum, and what is behind it.
[[gnu::always_inline]] inline uint64_t UpdateChecksum(const std::byte* record, size_t bytes,
                                                      size_t value_bytes, uint64_t item_checksum,
                                                      const RingRecordPlace& place) {
  const uint64_t seed = Mix64(place.stream_id ^ Mix64(place.lsn)) ^ item_checksum;
  const uint64_t head =
      Xxh3Inline(record + kUpdateHeadAt, kUpdateBodyAt + kUpdateContentAt - kUpdateHeadAt, seed);
  const size_t key_at = sizeof(UpdateHeader) + value_bytes;
  return Xxh3Inline(record + key_at, bytes - key_at, head);
}

// ProveUpdate. A checksum of the right value proves nothing about who made it, so all lengths are
// checked, and the bytes that are zero. REQUIRES: bytes >= sizeof(UpdateHeader).
[[gnu::always_inline]] inline bool ProveUpdateInline(const std::byte* record, size_t bytes,
                                                     const RingRecordPlace& place,
                                                     UpdateProof* proof) {
  const std::byte* const body = record + kUpdateBodyAt;
  const size_t value_bytes = UpdateValueBytes(body);
  if (UpdateField<uint64_t>(record, kUpdateHeadAt) != UpdateHeadWord(bytes) ||
      value_bytes > kPartBytes || !IsUpdateBody(body, bytes - kUpdateBodyAt)) {
    return false;
  }
  proof->committed = UpdateField<uint64_t>(record, offsetof(UpdateHeader, committed));
  proof->item_checksum = ItemChecksumOf(body, value_bytes);
  return UpdateField<uint64_t>(record, offsetof(UpdateHeader, start.checksum)) ==
         UpdateChecksum(record, bytes, value_bytes, proof->item_checksum, place);
}

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_UPDATE_RECORD_INLINE_H_
