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

// Loads a field of the header, which lies at `offset`. A copy of the whole header would go through
// the stack.
template <class T>
[[gnu::always_inline]] inline T UpdateField(const std::byte* record, size_t offset) {
  T value;
  std::memcpy(&value, record + offset, sizeof(value));
  return value;
}
inline uint64_t UpdateToken(const std::byte* record) {
  return UpdateField<uint64_t>(record, offsetof(UpdateHeader, session_token));
}
inline uint64_t UpdateSequence(const std::byte* record) {
  return UpdateField<uint64_t>(record, offsetof(UpdateHeader, sequence));
}
inline uint64_t UpdateVersion(const std::byte* record) {
  return UpdateField<uint64_t>(record, offsetof(UpdateHeader, version));
}
inline uint32_t UpdateFlags(const std::byte* record) {
  return UpdateField<uint32_t>(record, offsetof(UpdateHeader, flags));
}
inline uint32_t UpdateValueBytes(const std::byte* record) {
  return UpdateField<uint32_t>(record, offsetof(UpdateHeader, value_bytes));
}
inline uint64_t UpdateKeyBytes(const std::byte* record) {
  return UpdateField<uint64_t>(record, offsetof(UpdateHeader, key_bytes));
}

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
  const size_t value_bytes = UpdateValueBytes(record);
  const size_t key_bytes = UpdateKeyBytes(record);
  const size_t used = sizeof(UpdateHeader) + value_bytes + key_bytes;
  if (UpdateField<uint64_t>(record, kUpdateHeadAt) != UpdateHeadWord(bytes) ||
      key_bytes - 1 >= kKeyBytesMax || value_bytes > kPartBytes ||
      AlignUp(used, kRecordAlignment) != bytes) {
    return false;
  }
  if (used != bytes) {
    uint64_t last;
    std::memcpy(&last, record + bytes - sizeof(last), sizeof(last));
    if (last >> (64 - 8 * (bytes - used)) != 0) return false;
  }
  proof->committed = UpdateField<uint64_t>(record, offsetof(UpdateHeader, committed));
  proof->item_checksum = Xxh3UnseededInline(record + kUpdateContentAt,
                                            sizeof(UpdateHeader) - kUpdateContentAt + value_bytes);
  return UpdateField<uint64_t>(record, offsetof(UpdateHeader, start.checksum)) ==
         UpdateChecksum(record, bytes, value_bytes, proof->item_checksum, place);
}

// Both REQUIRE: the record is proven.
inline std::string_view UpdateValueOf(const std::byte* record) {
  return {reinterpret_cast<const char*>(record) + sizeof(UpdateHeader), UpdateValueBytes(record)};
}
inline std::string_view UpdateKeyOf(const std::byte* record) {
  return {reinterpret_cast<const char*>(record) + sizeof(UpdateHeader) + UpdateValueBytes(record),
          UpdateKeyBytes(record)};
}

// DecodeProvenUpdate.
inline void DecodeUpdateInline(const std::byte* record, uint64_t item_checksum, Change* put) {
  put->version = UpdateVersion(record);
  put->flags = UpdateFlags(record);
  put->key = UpdateKeyOf(record);
  put->value = UpdateValueOf(record);
  put->session_token = UpdateToken(record);
  put->sequence = UpdateSequence(record);
  put->opcode = static_cast<uint8_t>(Opcode::kPut);
  put->item_checksum = item_checksum;
}

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_UPDATE_RECORD_INLINE_H_
