// The bytes of a record, written and read. A record is believed by its checksum, whose seed is its
// position and its journal, so bytes of another place or run are none.

#include "server/log/changes/record.h"

#include <algorithm>
#include <cstring>

#include "common/base/align.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/layout/item.h"

namespace gannet {
namespace {

uint64_t Checksum(std::span<const std::byte> record, uint64_t journal_id, uint64_t position) {
  const auto covered = record.subspan(sizeof(RecordHeader::checksum));
  return Xxh3(covered.data(), covered.size(), Mix64(journal_id ^ Mix64(position)));
}

bool Plausible(const RecordHeader& header) {
  if (header.key_bytes == 0 || header.key_bytes > kKeyBytesMax) return false;
  if (header.value_bytes > kValueBytesMax) return false;
  if (header.kind == static_cast<uint8_t>(Change::Kind::kDelete)) {
    if (header.value_bytes != 0) return false;
  } else if (header.kind != static_cast<uint8_t>(Change::Kind::kPut)) {
    return false;
  }
  return header.record_bytes == RecordBytes(header.key_bytes, header.value_bytes);
}

RecordView ViewOf(const RecordHeader& header, std::span<const std::byte> record) {
  const char* const key = reinterpret_cast<const char*>(record.data()) + sizeof(header);
  RecordView view{.synced = header.synced};
  view.change = {.kind = static_cast<Change::Kind>(header.kind),
                 .version = header.version,
                 .expiry = Expiry::FromMs(header.expiry_ms),
                 .flags = header.flags,
                 .key = {key, header.key_bytes},
                 .value = {key + header.key_bytes, header.value_bytes},
                 .session_token = header.session_token,
                 .sequence = header.sequence,
                 .number = header.number,
                 .opcode = header.opcode};
  return view;
}

}  // namespace

void EncodeRecord(const Change& change, uint64_t journal_id, uint64_t position, uint64_t synced,
                  std::span<std::byte> out) {
  RecordHeader header{.checksum = 0,
                      .record_bytes = static_cast<uint32_t>(out.size()),
                      .kind = static_cast<uint8_t>(change.kind),
                      .opcode = change.opcode,
                      .key_bytes = static_cast<uint16_t>(change.key.size()),
                      .version = change.version,
                      .expiry_ms = change.expiry.ms(),
                      .flags = change.flags,
                      .value_bytes = static_cast<uint32_t>(change.value.size()),
                      .session_token = change.session_token,
                      .sequence = change.sequence,
                      .number = change.number,
                      .synced = synced};
  // Clears the last 8 bytes, which may be padding, before key and value are copied over a part of
  // them. They lie behind the header, since no key is empty.
  constexpr uint64_t kZeros = 0;
  std::memcpy(out.data() + out.size() - sizeof(kZeros), &kZeros, sizeof(kZeros));
  std::byte* at = out.data();
  std::memcpy(at, &header, sizeof(header));
  at += sizeof(header);
  std::memcpy(at, change.key.data(), change.key.size());
  at += change.key.size();
  if (!change.value.empty()) std::memcpy(at, change.value.data(), change.value.size());
  header.checksum = Checksum(out, journal_id, position);
  std::memcpy(out.data(), &header.checksum, sizeof(header.checksum));
}

std::optional<size_t> LengthOfRecord(std::span<const std::byte> bytes) {
  GANNET_CHECK(bytes.size() >= sizeof(RecordHeader), "no whole header");
  RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (!Plausible(header)) return std::nullopt;
  return header.record_bytes;
}

std::optional<RecordView> DecodeRecord(std::span<const std::byte> record, uint64_t journal_id,
                                       uint64_t position) {
  if (record.size() < sizeof(RecordHeader)) return std::nullopt;
  RecordHeader header;
  std::memcpy(&header, record.data(), sizeof(header));
  if (!Plausible(header) || header.record_bytes != record.size()) return std::nullopt;
  if (header.checksum != Checksum(record, journal_id, position)) return std::nullopt;
  // A checksum of the right value proves nothing about who made it, so the padding is checked too.
  const auto padding = record.subspan(sizeof(header) + header.key_bytes + header.value_bytes);
  if (std::ranges::any_of(padding, [](std::byte byte) { return byte != std::byte{0}; })) {
    return std::nullopt;
  }
  return ViewOf(header, record);
}

RecordView DecodeProvenRecord(std::span<const std::byte> record) {
  RecordHeader header;
  std::memcpy(&header, record.data(), sizeof(header));
  return ViewOf(header, record);
}

}  // namespace gannet
