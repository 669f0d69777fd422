#ifndef GANNET_SERVER_STREAM_UPDATE_RECORD_H_
#define GANNET_SERVER_STREAM_UPDATE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "common/base/align.h"
#include "server/changes/change.h"
#include "server/stream/ring_record.h"

namespace gannet {

// The record of an update, which most changes are: a put over an item without expiry, by a value of
// the same length. Behind this header are the item's value and key as they lie in a block, and
// zeros up to a multiple of eight.
//
// The item's own checksum is a part of the record's. So a primary computes it once for both, before
// it knows the LSN, and a backup that has proven the record has the checksum of the item that it
// makes.
struct UpdateHeader {
  RingRecordStart start;
  uint64_t session_token;
  uint64_t committed;
  uint64_t sequence;
  // From here on, what the item's checksum covers: the item's header and value (ItemHeader).
  uint64_t version;
  uint32_t value_bytes;
  uint32_t flags;
  uint64_t key_bytes;  // the item's word of expiry and key, without an expiry
};
static_assert(sizeof(UpdateHeader) == 64 && std::is_trivially_copyable_v<UpdateHeader>);
static_assert(offsetof(UpdateHeader, committed) == offsetof(PartHeader, committed));
static_assert(sizeof(UpdateHeader) - offsetof(UpdateHeader, version) ==
              sizeof(ItemHeader) - offsetof(ItemHeader, version));

constexpr size_t UpdateBytes(size_t key_bytes, size_t value_bytes) {
  return AlignUp(sizeof(UpdateHeader) + value_bytes + key_bytes, kRecordAlignment);
}

// Calls `use` with the header of each update of whole records that follow each other.
template <class Use>
void ForEachUpdate(std::span<const std::byte> records, Use&& use) {
  while (!records.empty()) {
    UpdateHeader header;
    std::memcpy(&header, records.data(), sizeof(header));
    use(header);
    records = records.subspan(header.start.record_bytes);
  }
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
// Fills in the change that an update tells of. REQUIRES: ProveUpdate found this checksum in these
// bytes; `put` was filled in by this function, or is as Change{}.
void DecodeProvenUpdate(std::span<const std::byte> bytes, uint64_t item_checksum, Change* put);

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_UPDATE_RECORD_H_
