#ifndef GANNET_SERVER_LOG_STREAM_UPDATE_RECORD_H_
#define GANNET_SERVER_LOG_STREAM_UPDATE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "server/log/changes/change.h"
#include "server/log/changes/update_body.h"
#include "server/log/stream/ring_record.h"

namespace gannet {

// The record of one update: this header, the item's value and key, and zeros up to a multiple of
// eight. Behind the start it is as an UpdateBody, but that it has `committed` where a body has the
// item's checksum.
//
// The item's own checksum is a part of the record's. So a primary computes it once for both, before
// it knows the LSN, and a backup that has proven the record has the checksum of the item that it
// makes.
struct UpdateHeader {
  RingRecordStart start;
  uint64_t session_token;
  uint64_t committed;
  uint64_t sequence;
  uint64_t version;
  uint32_t value_bytes;
  uint32_t flags;
  uint64_t key_bytes;
};
static_assert(sizeof(UpdateHeader) == sizeof(RingRecordStart) + sizeof(UpdateBody) &&
              std::is_trivially_copyable_v<UpdateHeader>);
static_assert(offsetof(UpdateHeader, committed) == offsetof(PartHeader, committed));

// Where the record has its body.
inline constexpr size_t kUpdateBodyAt = sizeof(RingRecordStart);
static_assert(offsetof(UpdateHeader, committed) - kUpdateBodyAt ==
                  offsetof(UpdateBody, item_checksum) &&
              offsetof(UpdateHeader, version) - kUpdateBodyAt == offsetof(UpdateBody, version) &&
              offsetof(UpdateHeader, key_bytes) - kUpdateBodyAt == offsetof(UpdateBody, key_bytes));

constexpr size_t UpdateBytes(size_t key_bytes, size_t value_bytes) {
  return kUpdateBodyAt + UpdateBodyBytes(key_bytes, value_bytes);
}

// Writes the record of a put that IsUpdate. `out` has UpdateBytes bytes.
void EncodeUpdate(const Change& put, const RingRecordPlace& place, uint64_t committed,
                  std::span<std::byte> out);

// What is known of an update that was proven.
struct UpdateProof {
  uint64_t item_checksum;
  uint64_t committed;
};
// Returns nullopt if the bytes are not exactly one whole update for this place.
std::optional<UpdateProof> ProveUpdate(std::span<const std::byte> bytes,
                                       const RingRecordPlace& place);
// Makes a whole UpdateBody of what lies at kUpdateBodyAt of a copy that was proven. The record is
// none any more then.
inline void KeepItemChecksum(std::byte* record, uint64_t item_checksum) {
  std::memcpy(record + offsetof(UpdateHeader, committed), &item_checksum, sizeof(item_checksum));
}

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_UPDATE_RECORD_H_
