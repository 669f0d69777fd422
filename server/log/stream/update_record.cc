#include "server/log/stream/update_record.h"

#include <cstring>

#include "server/log/stream/update_record_inline.h"

namespace gannet {

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
