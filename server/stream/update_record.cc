#include "server/stream/update_record.h"

#include <cstring>

#include "common/base/hash.h"
#include "common/base/xxh3_inline.h"
#include "common/protocol/message.h"

namespace gannet {
namespace {

constexpr size_t kContentAt = offsetof(UpdateHeader, version);
constexpr size_t kHeadAt = sizeof(RingRecordStart::checksum);

// Covers what is before the item's content, that content by its checksum, and what is behind it.
[[gnu::always_inline]] inline uint64_t Checksum(const std::byte* record, size_t bytes,
                                                size_t value_bytes, uint64_t item_checksum,
                                                const RingRecordPlace& place) {
  const uint64_t seed = Mix64(place.stream_id ^ Mix64(place.lsn)) ^ item_checksum;
  const uint64_t head = Xxh3Inline(record + kHeadAt, kContentAt - kHeadAt, seed);
  const size_t key_at = sizeof(UpdateHeader) + value_bytes;
  return Xxh3Inline(record + key_at, bytes - key_at, head);
}

}  // namespace

void EncodeUpdate(const Change& put, const RingRecordPlace& place, uint64_t committed,
                  std::span<std::byte> out) {
  UpdateHeader header{.start = {.checksum = 0,
                                .record_bytes = static_cast<uint32_t>(out.size()),
                                .kind = static_cast<uint8_t>(RingRecordKind::kUpdate),
                                .zero = {}},
                      .session_token = put.session_token,
                      .committed = committed,
                      .sequence = put.sequence,
                      .version = put.version,
                      .value_bytes = static_cast<uint32_t>(put.value.size()),
                      .flags = put.flags,
                      .key_bytes = put.key.size()};
  // The padding, before what may lie over a part of it. A record has a key behind the header.
  constexpr uint64_t kZeros = 0;
  std::memcpy(out.data() + out.size() - sizeof(kZeros), &kZeros, sizeof(kZeros));
  std::memcpy(out.data(), &header, sizeof(header));
  std::byte* const value = out.data() + sizeof(header);
  if (!put.value.empty()) std::memcpy(value, put.value.data(), put.value.size());
  std::memcpy(value + put.value.size(), put.key.data(), put.key.size());
  const uint64_t checksum =
      Checksum(out.data(), out.size(), put.value.size(), put.item_checksum, place);
  std::memcpy(out.data(), &checksum, sizeof(checksum));
}

// A checksum of the right value proves nothing about who made it, so all lengths are checked, and
// the bytes that are zero.
std::optional<UpdateProof> ProveUpdate(std::span<const std::byte> bytes,
                                       const RingRecordPlace& place) {
  UpdateHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.key_bytes == 0 || header.key_bytes > kKeyBytesMax || header.value_bytes > kPartBytes ||
      bytes.size() != UpdateBytes(header.key_bytes, header.value_bytes) ||
      header.start.record_bytes != bytes.size()) {
    return std::nullopt;
  }
  const uint64_t item_checksum = Xxh3UnseededInline(
      bytes.data() + kContentAt, sizeof(header) - kContentAt + header.value_bytes);
  if (header.start.checksum !=
      Checksum(bytes.data(), bytes.size(), header.value_bytes, item_checksum, place)) {
    return std::nullopt;
  }
  uint64_t length_and_kind;
  std::memcpy(&length_and_kind, bytes.data() + kHeadAt, sizeof(length_and_kind));
  uint64_t last;
  std::memcpy(&last, bytes.data() + bytes.size() - sizeof(last), sizeof(last));
  const size_t padding = bytes.size() - sizeof(header) - header.value_bytes - header.key_bytes;
  const bool padded = padding == 0 || last >> (64 - 8 * padding) == 0;
  if (length_and_kind >> 32 != static_cast<uint64_t>(RingRecordKind::kUpdate) || !padded) {
    return std::nullopt;
  }
  return UpdateProof{.item_checksum = item_checksum, .committed = header.committed};
}

void DecodeProvenUpdate(std::span<const std::byte> bytes, uint64_t item_checksum, Change* put) {
  UpdateHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const char* const value = reinterpret_cast<const char*>(bytes.data()) + sizeof(header);
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
