// Bytes of the records that are no short update: changes, parts of long values, sessions and their
// answers, wraps. A long put is encoded as a put of the transfer, and then gets its own kind and
// length.

#include "server/log/stream/ring_record.h"

#include <algorithm>
#include <cstring>

#include "common/base/align.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "server/log/stream/session_bytes.h"
#include "server/log/stream/update_batch.h"
#include "server/log/stream/update_record.h"

namespace gannet {
namespace {

using Kind = RingRecordKind;

RingRecordStart StartOf(Kind kind, size_t bytes) {
  return {.checksum = 0,
          .record_bytes = static_cast<uint32_t>(bytes),
          .kind = static_cast<uint8_t>(kind),
          .zero = {}};
}

void EncodePart(const RingRecord& record, uint64_t committed, std::span<std::byte> out) {
  const PartHeader header = {.start = StartOf(Kind::kPart, out.size()),
                             .transfer = record.transfer,
                             .committed = committed,
                             .offset = record.offset,
                             .bytes = static_cast<uint32_t>(record.part.size())};
  std::memcpy(out.data(), &header, sizeof(header));
  std::byte* const end = std::copy_n(reinterpret_cast<const std::byte*>(record.part.data()),
                                     record.part.size(), out.data() + sizeof(header));
  std::fill(end, out.data() + out.size(), std::byte{0});
}

void EncodeBatch(const RingRecord& record, uint64_t committed, std::span<std::byte> out) {
  const std::span<const std::byte> bodies = std::as_bytes(std::span(record.part));
  std::ranges::copy(bodies, out.begin() + sizeof(UpdateBatchHeader));
  const std::optional<uint32_t> count = CountUpdates(bodies);
  GANNET_CHECK(count.has_value(), "bodies of updates");
  EncodeUpdateBatchHeader(*count, committed, out);
}

// A long put is encoded as a put of the transfer, and then gets its own kind and length.
void EncodeLongPut(const RingRecord& record, const RingRecordPlace& place, uint64_t committed,
                   std::span<std::byte> out) {
  Change change = record.change;
  change.value = {reinterpret_cast<const char*>(&record.transfer), sizeof(record.transfer)};
  EncodeRecord(change, place.stream_id, place.lsn, committed, out);
  RecordHeader header;
  std::memcpy(&header, out.data(), sizeof(header));
  header.kind = static_cast<uint8_t>(Kind::kLongPut);
  header.value_bytes = record.value_bytes;
  std::memcpy(out.data(), &header, sizeof(header));
}

// The opposite of EncodeLongPut. REQUIRES: the checksum is right.
std::optional<RingRecordView> DecodeLongPut(std::span<const std::byte> bytes) {
  RecordHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const uint32_t value_bytes = header.value_bytes;
  if (value_bytes <= kPartBytes || value_bytes > kValueBytesMax || header.key_bytes == 0 ||
      header.key_bytes > kKeyBytesMax ||
      bytes.size() != RecordBytes(header.key_bytes, sizeof(uint64_t))) {
    return std::nullopt;
  }
  RingRecordView view{.committed = header.synced};
  const char* const key = reinterpret_cast<const char*>(bytes.data()) + sizeof(header);
  const Change change = {.kind = Change::Kind::kPut,
                         .version = header.version,
                         .expiry = Expiry::FromMs(header.expiry_ms),
                         .flags = header.flags,
                         .key = {key, header.key_bytes},
                         .session_token = header.session_token,
                         .sequence = header.sequence,
                         .number = header.number,
                         .opcode = header.opcode};
  uint64_t transfer;
  std::memcpy(&transfer, key + header.key_bytes, sizeof(transfer));
  view.record = RingRecord::LongPut(change, transfer, value_bytes);
  return view;
}

bool EndsInZeros(std::span<const std::byte> bytes, size_t used) {
  const auto padding = bytes.subspan(used);
  return std::ranges::all_of(padding, [](std::byte byte) { return byte == std::byte{0}; });
}

// REQUIRES: the checksum is right.
std::optional<RingRecordView> DecodePart(std::span<const std::byte> bytes) {
  PartHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.bytes == 0 || header.bytes > kPartBytes ||
      header.offset > kValueBytesMax - header.bytes) {
    return std::nullopt;
  }
  const std::string_view part(reinterpret_cast<const char*>(bytes.data()) + sizeof(header),
                              header.bytes);
  return RingRecordView{.record = RingRecord::Part(header.transfer, header.offset, part),
                        .committed = header.committed};
}

// A record that has no change, or not all of one. REQUIRES: the checksum is right.
std::optional<RingRecordView> DecodeOther(std::span<const std::byte> bytes,
                                          const RingRecordStart& start) {
  const auto kind = static_cast<Kind>(start.kind);
  std::optional<RingRecordView> view;
  size_t used = sizeof(start);
  if (kind == Kind::kWrap) {
    view = RingRecordView{.record = RingRecord::Wrap()};
  } else if (kind == Kind::kPart) {
    view = DecodePart(bytes);
    if (view) used = sizeof(PartHeader) + view->record.part.size();
  } else if (kind == Kind::kLongPut) {
    view = DecodeLongPut(bytes);
    if (view) used = sizeof(RecordHeader) + view->record.change.key.size() + sizeof(uint64_t);
  } else if (kind == Kind::kUpdateBatch) {
    view = DecodeUpdateBatch(bytes);
    used = bytes.size();
  } else {
    uint64_t committed = 0;
    const auto session = DecodeSession(bytes, kind, &committed);
    if (session) view = {.record = RingRecord::OfSession(*session), .committed = committed};
    used = bytes.size();
  }
  // A checksum of the right value proves nothing about who made it, so all other bytes are checked.
  if (!view || view->record.bytes() != bytes.size() || !EndsInZeros(bytes, used)) {
    return std::nullopt;
  }
  const bool changes = kind == Kind::kLongPut;
  if (!changes && std::ranges::any_of(start.zero, [](uint8_t byte) { return byte != 0; })) {
    return std::nullopt;
  }
  return view;
}

}  // namespace

// The seed is that of a change's record.
uint64_t RingRecordChecksum(std::span<const std::byte> bytes, const RingRecordPlace& place) {
  const auto covered = bytes.subspan(sizeof(uint64_t));
  return Xxh3(covered.data(), covered.size(), Mix64(place.stream_id ^ Mix64(place.lsn)));
}

void SealRingRecord(std::span<std::byte> bytes, const RingRecordPlace& place) {
  const uint64_t checksum = RingRecordChecksum(bytes, place);
  std::memcpy(bytes.data(), &checksum, sizeof(checksum));
}

RingRecord RingRecord::Of(const Change& change) {
  GANNET_CHECK(change.value.size() <= kPartBytes, "a longer value travels in parts");
  const Kind kind = change.IsUpdate() ? Kind::kUpdate : static_cast<Kind>(change.kind);
  return {.kind = kind, .change = change, .part = {}};
}

RingRecord RingRecord::Part(uint64_t transfer, uint32_t offset, std::string_view bytes) {
  GANNET_CHECK(!bytes.empty() && bytes.size() <= kPartBytes, "not a part");
  return {.kind = Kind::kPart, .change = {}, .transfer = transfer, .offset = offset, .part = bytes};
}

RingRecord RingRecord::LongPut(const Change& change, uint64_t transfer, uint32_t value_bytes) {
  GANNET_CHECK(change.kind == Change::Kind::kPut && change.value.empty(), "its parts have it");
  return {.kind = Kind::kLongPut,
          .change = change,
          .transfer = transfer,
          .part = {},
          .value_bytes = value_bytes};
}

RingRecord RingRecord::UpdateBatch(std::string_view bodies) {
  return {.kind = Kind::kUpdateBatch, .change = {}, .part = bodies};
}

RingRecord RingRecord::Wrap() { return {.kind = Kind::kWrap, .change = {}, .part = {}}; }

RingRecord RingRecord::OfSession(const SessionRecord& session) {
  return {.kind = RingKindOf(session.kind), .change = {}, .part = {}, .session = session};
}

size_t RingRecord::bytes() const {
  switch (kind) {
    case Kind::kPut:
    case Kind::kDelete:
      return RecordBytes(change.key.size(), change.value.size());
    case Kind::kUpdate:
      return UpdateBytes(change.key.size(), change.value.size());
    case Kind::kUpdateBatch:
      return sizeof(UpdateBatchHeader) + part.size();
    case Kind::kPart:
      return AlignUp(sizeof(PartHeader) + part.size(), kRecordAlignment);
    case Kind::kLongPut:
      return RecordBytes(change.key.size(), sizeof(transfer));
    case Kind::kSessionBegun:
    case Kind::kSessionEnded:
    case Kind::kAnswers:
      return SessionBytes(session);
    case Kind::kWrap:
      break;
  }
  return sizeof(RingRecordStart);
}

void EncodeRingRecord(const RingRecord& record, const RingRecordPlace& place, uint64_t committed,
                      std::span<std::byte> out) {
  GANNET_CHECK(out.size() == record.bytes(), "room for one record");
  switch (record.kind) {
    case Kind::kPut:
    case Kind::kDelete:
      return EncodeRecord(record.change, place.stream_id, place.lsn, committed, out);
    case Kind::kUpdate:
      return EncodeUpdate(record.change, place, committed, out);
    case Kind::kUpdateBatch:
      EncodeBatch(record, committed, out);
      break;
    case Kind::kPart:
      EncodePart(record, committed, out);
      break;
    case Kind::kLongPut:
      EncodeLongPut(record, place, committed, out);
      break;
    case Kind::kSessionBegun:
    case Kind::kSessionEnded:
    case Kind::kAnswers:
      EncodeSession(record.session, StartOf(record.kind, out.size()), committed, out);
      break;
    case Kind::kWrap: {
      const RingRecordStart start = StartOf(Kind::kWrap, out.size());
      std::memcpy(out.data(), &start, sizeof(start));
    }
  }
  SealRingRecord(out, place);
}

std::optional<RingRecordView> DecodeRingRecord(std::span<const std::byte> bytes,
                                               const RingRecordPlace& place) {
  RingRecordStart start;
  if (bytes.size() < sizeof(start)) return std::nullopt;
  std::memcpy(&start, bytes.data(), sizeof(start));
  if (LengthOfRingRecord(start) != bytes.size()) return std::nullopt;
  const auto kind = static_cast<Kind>(start.kind);
  if (kind == Kind::kPut || kind == Kind::kDelete) {
    const auto view = DecodeRecord(bytes, place.stream_id, place.lsn);
    if (!view || view->change.value.size() > kPartBytes) return std::nullopt;
    return RingRecordView{.record = RingRecord::Of(view->change), .committed = view->synced};
  }
  if (kind == Kind::kUpdate) {
    const auto proof = ProveUpdate(bytes, place);
    if (!proof) return std::nullopt;
    RingRecordView view{.committed = proof->committed};
    view.record.kind = kind;
    DecodeUpdateBody(bytes.data() + kUpdateBodyAt, &view.record.change);
    view.record.change.item_checksum = proof->item_checksum;
    return view;
  }
  if (start.checksum != RingRecordChecksum(bytes, place)) return std::nullopt;
  return DecodeOther(bytes, start);
}

RingRecord DecodeProvenRingRecord(std::span<const std::byte> bytes) {
  RingRecordStart start;
  std::memcpy(&start, bytes.data(), sizeof(start));
  const auto kind = static_cast<Kind>(start.kind);
  if (kind == Kind::kPut || kind == Kind::kDelete) {
    return RingRecord::Of(DecodeProvenRecord(bytes).change);
  }
  if (kind == Kind::kUpdate) {
    RingRecord record;
    record.kind = kind;
    DecodeUpdateBody(bytes.data() + kUpdateBodyAt, &record.change);
    return record;
  }
  return DecodeOther(bytes, start)->record;
}

}  // namespace gannet
