#ifndef GANNET_SERVER_LOG_STREAM_UPDATE_BATCH_H_
#define GANNET_SERVER_LOG_STREAM_UPDATE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "server/log/changes/update_body.h"
#include "server/log/stream/ring_record.h"

namespace gannet {

// One record of many updates: this header, and their bodies (update_body.h) one behind the other.
// Its checksum is that of any record, over all its bytes. So a backup proves many updates at once,
// and has the checksums of the items that they make.
struct UpdateBatchHeader {
  RingRecordStart start;
  uint32_t count;  // of updates; not 0
  uint32_t zero;
  uint64_t committed;
};
static_assert(sizeof(UpdateBatchHeader) == 32 && std::is_trivially_copyable_v<UpdateBatchHeader>);
static_assert(offsetof(UpdateBatchHeader, committed) == offsetof(PartHeader, committed));

inline constexpr size_t kUpdateBatchBytesMax = kRingRecordBytesMax;

// Returns the bodies of a batch that is whole.
inline std::span<const std::byte> BodiesOf(std::span<const std::byte> batch) {
  return batch.subspan(sizeof(UpdateBatchHeader));
}
// Returns how many updates these are, or nullopt if the bytes are not whole bodies that follow each
// other. Whoever sends them may have written anything there.
std::optional<uint32_t> CountUpdates(std::span<const std::byte> bodies);

// Writes the header of `count` updates whose bodies are behind it already. The checksum is to come.
void EncodeUpdateBatchHeader(uint32_t count, uint64_t committed, std::span<std::byte> batch);
// Makes a record of `count` updates where their bodies are, by writing the header into the
// sizeof(UpdateBatchHeader) bytes before them. Returns the record's length.
size_t SealUpdateBatch(std::span<std::byte> bodies, uint32_t count, const RingRecordPlace& place,
                       uint64_t committed);
// Returns the record, or nullopt if nobody encodes these bytes. REQUIRES: the checksum is right.
std::optional<RingRecordView> DecodeUpdateBatch(std::span<const std::byte> batch);

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_UPDATE_BATCH_H_
