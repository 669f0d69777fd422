#include "server/log/stream/update_batch.h"

#include <cstring>

namespace gannet {

std::optional<uint32_t> CountUpdates(std::span<const std::byte> bodies) {
  uint32_t count = 0;
  const std::byte* at = bodies.data();
  for (size_t left = bodies.size(); left != 0; ++count) {
    if (left < sizeof(UpdateBody)) return std::nullopt;
    // The length of the key is looked at by IsUpdateBody. It may be so large that this overflows,
    // and comes to less than a body.
    const size_t bytes = UpdateBodyBytesOf(at);
    const bool fits = bytes - sizeof(UpdateBody) <= left - sizeof(UpdateBody);
    if (!fits || UpdateValueBytes(at) > kPartBytes || !IsUpdateBody(at, bytes)) {
      return std::nullopt;
    }
    at += bytes;
    left -= bytes;
  }
  return count;
}

void EncodeUpdateBatchHeader(uint32_t count, uint64_t committed, std::span<std::byte> batch) {
  const UpdateBatchHeader header = {
      .start = {.checksum = 0,
                .record_bytes = static_cast<uint32_t>(batch.size()),
                .kind = static_cast<uint8_t>(RingRecordKind::kUpdateBatch),
                .zero = {}},
      .count = count,
      .zero = 0,
      .committed = committed};
  std::memcpy(batch.data(), &header, sizeof(header));
}

size_t SealUpdateBatch(std::span<std::byte> bodies, uint32_t count, const RingRecordPlace& place,
                       uint64_t committed) {
  const std::span<std::byte> record(bodies.data() - sizeof(UpdateBatchHeader),
                                    sizeof(UpdateBatchHeader) + bodies.size());
  EncodeUpdateBatchHeader(count, committed, record);
  SealRingRecord(record, place);
  return record.size();
}

std::optional<RingRecordView> DecodeUpdateBatch(std::span<const std::byte> batch) {
  UpdateBatchHeader header;
  if (batch.size() <= sizeof(header)) return std::nullopt;
  std::memcpy(&header, batch.data(), sizeof(header));
  const std::span<const std::byte> bodies = BodiesOf(batch);
  if (header.zero != 0 || CountUpdates(bodies) != header.count) return std::nullopt;
  return RingRecordView{.record = RingRecord::UpdateBatch(
                            {reinterpret_cast<const char*>(bodies.data()), bodies.size()}),
                        .committed = header.committed};
}

}  // namespace gannet
