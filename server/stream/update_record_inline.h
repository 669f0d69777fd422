#ifndef GANNET_SERVER_STREAM_UPDATE_RECORD_INLINE_H_
#define GANNET_SERVER_STREAM_UPDATE_RECORD_INLINE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/base/hash.h"
#include "common/base/xxh3_inline.h"
#include "common/protocol/message.h"
#include "server/stream/update_record.h"

// The functions of update_record.h, for the few sources where every instruction counts.

namespace gannet {

inline constexpr size_t kUpdateContentAt = offsetof(UpdateHeader, version);
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
  const uint64_t head = Xxh3Inline(record + kUpdateHeadAt, kUpdateContentAt - kUpdateHeadAt, seed);
  const size_t key_at = sizeof(UpdateHeader) + value_bytes;
  return Xxh3Inline(record + key_at, bytes - key_at, head);
}

// ProveUpdate. A checksum of the right value proves nothing about who made it, so all lengths are
// checked, and the bytes that are zero. REQUIRES: bytes >= sizeof(UpdateHeader).
[[gnu::always_inline]] inline bool ProveUpdateInline(const std::byte* record, size_t bytes,
                                                     const RingRecordPlace& place,
                                                     UpdateProof* proof) {
  UpdateHeader header;
  std::memcpy(&header, record, sizeof(header));
  uint64_t head_word;
  std::memcpy(&head_word, record + kUpdateHeadAt, sizeof(head_word));
  const size_t used = sizeof(header) + header.value_bytes + header.key_bytes;
  if (head_word != UpdateHeadWord(bytes) || header.key_bytes - 1 >= kKeyBytesMax ||
      header.value_bytes > kPartBytes || AlignUp(used, kRecordAlignment) != bytes) {
    return false;
  }
  if (used != bytes) {
    uint64_t last;
    std::memcpy(&last, record + bytes - sizeof(last), sizeof(last));
    if (last >> (64 - 8 * (bytes - used)) != 0) return false;
  }
  proof->committed = header.committed;
  proof->item_checksum = Xxh3UnseededInline(record + kUpdateContentAt,
                                            sizeof(header) - kUpdateContentAt + header.value_bytes);
  return header.start.checksum ==
         UpdateChecksum(record, bytes, header.value_bytes, proof->item_checksum, place);
}

// REQUIRES: the record is proven.
[[gnu::always_inline]] inline std::string_view UpdateKeyOf(const std::byte* record) {
  UpdateHeader header;
  std::memcpy(&header, record, sizeof(header));
  return {reinterpret_cast<const char*>(record) + sizeof(header) + header.value_bytes,
          header.key_bytes};
}

// DecodeProvenUpdate.
[[gnu::always_inline]] inline void DecodeUpdateInline(const std::byte* record,
                                                      uint64_t item_checksum, Change* put) {
  UpdateHeader header;
  std::memcpy(&header, record, sizeof(header));
  const char* const value = reinterpret_cast<const char*>(record) + sizeof(header);
  put->version = header.version;
  put->flags = header.flags;
  put->key = {value + header.value_bytes, header.key_bytes};
  put->value = {value, header.value_bytes};
  put->session_token = header.session_token;
  put->sequence = header.sequence;
  put->opcode = static_cast<uint8_t>(Opcode::kPut);
  put->item_checksum = item_checksum;
}

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_UPDATE_RECORD_INLINE_H_
