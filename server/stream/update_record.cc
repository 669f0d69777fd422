#include "server/stream/update_record.h"

#include <cstring>

#include "server/stream/update_record_inline.h"

namespace gannet {

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
      UpdateChecksum(out.data(), out.size(), put.value.size(), put.item_checksum, place);
  std::memcpy(out.data(), &checksum, sizeof(checksum));
}

std::optional<UpdateProof> ProveUpdate(std::span<const std::byte> bytes,
                                       const RingRecordPlace& place) {
  UpdateProof proof;
  if (bytes.size() < sizeof(UpdateHeader) ||
      !ProveUpdateInline(bytes.data(), bytes.size(), place, &proof)) {
    return std::nullopt;
  }
  return proof;
}

void DecodeProvenUpdate(std::span<const std::byte> bytes, uint64_t item_checksum, Change* put) {
  DecodeUpdateInline(bytes.data(), item_checksum, put);
}

}  // namespace gannet
