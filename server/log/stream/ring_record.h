#ifndef GANNET_SERVER_LOG_STREAM_RING_RECORD_H_
#define GANNET_SERVER_LOG_STREAM_RING_RECORD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "common/base/align.h"
#include "common/layout/item.h"
#include "server/log/changes/change.h"
#include "server/log/changes/record.h"
#include "server/log/changes/session_record.h"

namespace gannet {

// The records in a ring, which a primary writes for its backups. A change is encoded as in a
// journal (server/log/changes/record.h): the seed of its checksum mixes the stream's id and the
// record's LSN, and `synced` is the committed LSN. A value that is longer than kPartBytes travels
// in parts, and the change that ends them names their transfer. So no record is long.
//
// A record's LSN is the number of bytes of all records before it. It does not depend on the ring,
// so a record has the same LSN in each stream.
//
// docs/protocol.md has the bytes of the kinds that are not in a journal.

inline constexpr size_t kPartBytes = 256 << 10;

// Kinds 1 and 2 are those of Change.
enum class RingRecordKind : uint8_t {
  kPut = 1,
  kDelete = 2,
  kPart = 3,     // of a long value
  kLongPut = 4,  // a put whose value is in parts
  kWrap = 5,     // the next record is at the ring's start
  // Kinds of SessionRecord.
  kSessionBegun = 6,
  kSessionEnded = 7,
  kAnswers = 8,
  kUpdate = 9,        // a put of a short kind (update_record.h)
  kUpdateBatch = 10,  // many of them (update_batch.h)
};
inline constexpr RingRecordKind kRingRecordKindMax = RingRecordKind::kUpdateBatch;

// All records begin like this.
struct RingRecordStart {
  uint64_t checksum;  // of all that follows
  uint32_t record_bytes;
  uint8_t kind;
  uint8_t zero[3];  // but in a long put
};
static_assert(sizeof(RingRecordStart) == 16 && std::is_trivially_copyable_v<RingRecordStart>);
static_assert(offsetof(RingRecordStart, record_bytes) == offsetof(RecordHeader, record_bytes) &&
              offsetof(RingRecordStart, kind) == offsetof(RecordHeader, kind));

// A part: this, its bytes, and zeros up to a multiple of eight. A wrap is a start alone.
struct PartHeader {
  RingRecordStart start;
  uint64_t transfer;
  uint64_t committed;
  uint32_t offset;  // in the value
  uint32_t bytes;
};
static_assert(sizeof(PartHeader) == 40 && std::is_trivially_copyable_v<PartHeader>);

// A long put: a RecordHeader with the length of the whole value, the key, the transfer in eight
// bytes, and zeros up to a multiple of eight.

// A session that began. The other records of sessions begin as this one does.
struct SessionBegunHeader {
  RingRecordStart start;
  uint64_t token;  // not 0
  uint64_t committed;
  uint32_t id;      // of the session; not 0
  uint32_t key_id;  // 0 = none
  uint16_t credits;
  uint8_t read_only;  // 1 if so; then there is a key
  uint8_t zero[5];
};
static_assert(sizeof(SessionBegunHeader) == 48 && std::is_trivially_copyable_v<SessionBegunHeader>);
static_assert(offsetof(SessionBegunHeader, id) == 32 &&
              offsetof(SessionBegunHeader, read_only) == 42);

// A session that ended.
struct SessionEndedHeader {
  RingRecordStart start;
  uint64_t token;
  uint64_t committed;
};
static_assert(sizeof(SessionEndedHeader) == 32 && std::is_trivially_copyable_v<SessionEndedHeader>);

// Answers of a session: this, and each answer in its bytes (SessionAnswer).
struct AnswersHeader {
  RingRecordStart start;
  uint64_t token;
  uint64_t committed;
  uint64_t undone_by;  // as in SessionRecord
  uint32_t count;
  uint32_t zero;
};
static_assert(sizeof(AnswersHeader) == 48 && std::is_trivially_copyable_v<AnswersHeader>);
static_assert(offsetof(AnswersHeader, committed) == offsetof(PartHeader, committed) &&
              offsetof(SessionBegunHeader, committed) == offsetof(PartHeader, committed) &&
              offsetof(SessionEndedHeader, committed) == offsetof(PartHeader, committed));

// A record to encode, or one that was decoded. Views point into the bytes that were given.
struct RingRecord {
  RingRecordKind kind = RingRecordKind::kPut;
  Change change;             // kPut, kUpdate, kDelete; kLongPut: without its value
  uint64_t transfer = 0;     // kPart, kLongPut
  uint32_t offset = 0;       // kPart
  std::string_view part;     // kPart; kUpdateBatch: the bodies of its updates
  uint32_t value_bytes = 0;  // kLongPut: of all parts
  SessionRecord session;     // kSessionBegun, kSessionEnded, kAnswers

  // REQUIRES: a value of at most kPartBytes.
  static RingRecord Of(const Change& change);
  static RingRecord Part(uint64_t transfer, uint32_t offset, std::string_view bytes);
  // REQUIRES: a put without a value; its value is longer than kPartBytes.
  static RingRecord LongPut(const Change& change, uint64_t transfer, uint32_t value_bytes);
  // REQUIRES: whole bodies of updates that follow each other (update_batch.h), at least one.
  static RingRecord UpdateBatch(std::string_view bodies);
  static RingRecord Wrap();
  // REQUIRES: as SessionRecord says.
  static RingRecord OfSession(const SessionRecord& session);

  // The version that it tells of; 0 = none, or those of a batch. A primary gives none that its
  // stream has told of.
  uint64_t version() const { return std::max(change.version, session.undone_by); }
  size_t bytes() const;
  friend bool operator==(const RingRecord&, const RingRecord&) = default;
};

inline constexpr size_t kRingRecordBytesMin = sizeof(RingRecordStart);
inline constexpr size_t kRingRecordBytesMax =
    AlignUp(sizeof(RecordHeader) + kKeyBytesMax + kPartBytes, kRecordAlignment);

// Where a record belongs.
struct RingRecordPlace {
  uint64_t stream_id;
  uint64_t lsn;
};

// The checksum of all kinds but kUpdate, over all bytes behind it.
uint64_t RingRecordChecksum(std::span<const std::byte> bytes, const RingRecordPlace& place);
// Writes the checksum of a record that is whole otherwise.
void SealRingRecord(std::span<std::byte> bytes, const RingRecordPlace& place);
// Writes the record. `out` has record.bytes() bytes. A wrap does not carry `committed`.
void EncodeRingRecord(const RingRecord& record, const RingRecordPlace& place, uint64_t committed,
                      std::span<std::byte> out);

// Returns the length that a record which begins so says it has, or nullopt if no record can.
inline std::optional<size_t> LengthOfRingRecord(const RingRecordStart& start) {
  if (start.kind < static_cast<uint8_t>(RingRecordKind::kPut) ||
      start.kind > static_cast<uint8_t>(kRingRecordKindMax) ||
      start.record_bytes < kRingRecordBytesMin || start.record_bytes > kRingRecordBytesMax ||
      start.record_bytes % kRecordAlignment != 0) {
    return std::nullopt;
  }
  return start.record_bytes;
}

struct RingRecordView {
  RingRecord record;
  uint64_t committed = 0;
};
// Returns the record, or nullopt if the bytes are not exactly one whole record for this place.
std::optional<RingRecordView> DecodeRingRecord(std::span<const std::byte> bytes,
                                               const RingRecordPlace& place);
// Returns the record again, without its proof. REQUIRES: DecodeRingRecord returned it from the same
// bytes; of an update, KeepItemChecksum was called then.
RingRecord DecodeProvenRingRecord(std::span<const std::byte> bytes);

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_RING_RECORD_H_
