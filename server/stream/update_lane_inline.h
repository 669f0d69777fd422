#ifndef GANNET_SERVER_STREAM_UPDATE_LANE_INLINE_H_
#define GANNET_SERVER_STREAM_UPDATE_LANE_INLINE_H_

#include "common/base/copy_bytes.h"
#include "server/stream/update_lane.h"
#include "server/stream/update_record_inline.h"

namespace gannet {

// The record is written once, where it is sent from, and both checksums are computed there.
[[gnu::always_inline]] inline const std::byte* UpdateLane::Append(const Update& update,
                                                                  uint64_t* item_checksum) {
  const size_t key_bytes = update.key.size();
  const size_t value_bytes = update.value.size();
  const size_t bytes = UpdateBytes(key_bytes, value_bytes);
  if (bytes > left_) [[unlikely]]
    return nullptr;
  std::byte* const record = at_;
  // The padding, before what may lie over a part of it.
  const uint64_t zeros = 0;
  std::memcpy(record + bytes - sizeof(zeros), &zeros, sizeof(zeros));
  const uint64_t words[] = {UpdateHeadWord(bytes),
                            update.session_token,
                            committed_,
                            update.sequence,
                            update.version,
                            value_bytes | uint64_t{update.flags} << 32,
                            key_bytes};
  static_assert(kUpdateHeadAt + sizeof(words) == sizeof(UpdateHeader));
  std::memcpy(record + kUpdateHeadAt, words, sizeof(words));
  CopyValueBytes(record + sizeof(UpdateHeader), update.value.data(), value_bytes);
  CopyKeyBytes(record + sizeof(UpdateHeader) + value_bytes, update.key.data(), key_bytes);
  *item_checksum = Xxh3UnseededInline(record + kUpdateContentAt,
                                      sizeof(UpdateHeader) - kUpdateContentAt + value_bytes);
  const uint64_t checksum =
      UpdateChecksum(record, bytes, value_bytes, *item_checksum, {stream_id_, lsn_});
  std::memcpy(record, &checksum, sizeof(checksum));
  at_ += bytes;
  left_ -= bytes;
  lsn_ += bytes;
  position_ += RecordBytes(key_bytes, value_bytes);
  return record;
}

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_UPDATE_LANE_INLINE_H_
