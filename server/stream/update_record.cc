#include "server/stream/update_record.h"

#include <cstring>

#include "server/stream/update_record_inline.h"

namespace gannet {

void EncodeUpdateBody(const Change& put, std::byte* body) {
  const UpdateBody head = {.session_token = put.session_token,
                           .item_checksum = put.item_checksum,
                           .sequence = put.sequence,
                           .version = put.version,
                           .value_bytes = static_cast<uint32_t>(put.value.size()),
                           .flags = put.flags,
                           .key_bytes = put.key.size()};
  // The padding, before what may lie over a part of it. There is a key behind the head.
  constexpr uint64_t kZeros = 0;
  std::memcpy(body + UpdateBodyBytes(put.key.size(), put.value.size()) - sizeof(kZeros), &kZeros,
              sizeof(kZeros));
  std::memcpy(body, &head, sizeof(head));
  std::byte* const value = body + sizeof(head);
  if (!put.value.empty()) std::memcpy(value, put.value.data(), put.value.size());
  std::memcpy(value + put.value.size(), put.key.data(), put.key.size());
}

void EncodeUpdate(const Change& put, const RingRecordPlace& place, uint64_t committed,
                  std::span<std::byte> out) {
  const uint64_t head = UpdateHeadWord(out.size());
  std::memcpy(out.data() + kUpdateHeadAt, &head, sizeof(head));
  EncodeUpdateBody(put, out.data() + kUpdateBodyAt);
  std::memcpy(out.data() + offsetof(UpdateHeader, committed), &committed, sizeof(committed));
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

}  // namespace gannet
