#ifndef GANNET_SERVER_LOG_CHANGES_RECORD_H_
#define GANNET_SERVER_LOG_CHANGES_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "common/base/align.h"
#include "server/log/changes/change.h"

namespace gannet {

// The bytes of a record: this header, the key, the value, and zeros up to a multiple of eight. All
// integers are little-endian. docs/durability-formats.md has the same table.
struct RecordHeader {
  // XXH3-64 of all bytes of the record behind this field. Its seed mixes the journal's number and
  // the record's position, so a record proves that it belongs where it is.
  uint64_t checksum;
  uint32_t record_bytes;  // with header and padding
  uint8_t kind;           // Change::Kind
  uint8_t opcode;
  uint16_t key_bytes;
  uint64_t version;
  uint64_t expiry_ms;
  uint32_t flags;
  uint32_t value_bytes;
  uint64_t session_token;
  uint64_t sequence;
  uint64_t number;
  // When the record was made, everything below this position was on disk. So if a record below it
  // is bad, the disk lost something that it had confirmed.
  uint64_t synced;
};
static_assert(sizeof(RecordHeader) == 72 && std::is_trivially_copyable_v<RecordHeader>);
static_assert(offsetof(RecordHeader, version) == 16 && offsetof(RecordHeader, flags) == 32 &&
              offsetof(RecordHeader, session_token) == 40 && offsetof(RecordHeader, synced) == 64);

inline constexpr size_t kRecordAlignment = 8;

// Returns how many bytes the record of such a change has.
constexpr size_t RecordBytes(size_t key_bytes, size_t value_bytes) {
  return AlignUp(sizeof(RecordHeader) + key_bytes + value_bytes, kRecordAlignment);
}

// Writes the record of a change for `position` of the journal `journal_id`. `out` has RecordBytes
// bytes.
void EncodeRecord(const Change& change, uint64_t journal_id, uint64_t position, uint64_t synced,
                  std::span<std::byte> out);

// Returns the length that the record at the start of `bytes` says it has, or nullopt if no record
// can begin so. The record itself may be longer than `bytes`. REQUIRES: at least
// sizeof(RecordHeader) bytes.
std::optional<size_t> LengthOfRecord(std::span<const std::byte> bytes);

// A record that was read. The views point into the bytes that were given.
struct RecordView {
  Change change;
  uint64_t synced = 0;
};
// Returns the record, or nullopt if the bytes are not exactly one whole record for this place.
std::optional<RecordView> DecodeRecord(std::span<const std::byte> record, uint64_t journal_id,
                                       uint64_t position);

// Returns the record again, without its proof. REQUIRES: DecodeRecord returned it from the same
// bytes.
RecordView DecodeProvenRecord(std::span<const std::byte> record);

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_RECORD_H_
