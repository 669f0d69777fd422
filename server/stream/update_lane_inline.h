#ifndef GANNET_SERVER_STREAM_UPDATE_LANE_INLINE_H_
#define GANNET_SERVER_STREAM_UPDATE_LANE_INLINE_H_

#include "common/base/copy_bytes.h"
#include "common/base/words.h"
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
  StoreWord(record + bytes - sizeof(uint64_t), 0);
  // Word by word: the compiler would put an array together elsewhere, and copy that.
  StoreWord(record + kUpdateHeadAt, UpdateHeadWord(bytes));
  StoreWord(record + offsetof(UpdateHeader, session_token), update.session_token);
  StoreWord(record + offsetof(UpdateHeader, committed), committed_);
  StoreWord(record + offsetof(UpdateHeader, sequence), update.sequence);
  StoreWord(record + offsetof(UpdateHeader, version), update.version);
  static_assert(offsetof(UpdateHeader, flags) == offsetof(UpdateHeader, value_bytes) + 4);
  StoreWord(record + offsetof(UpdateHeader, value_bytes),
            value_bytes | uint64_t{update.flags} << 32);
  StoreWord(record + offsetof(UpdateHeader, key_bytes), key_bytes);
  CopyValueBytes(record + sizeof(UpdateHeader), update.value.data(), value_bytes);
  CopyKeyBytes(record + sizeof(UpdateHeader) + value_bytes, update.key.data(), key_bytes);
  *item_checksum = Xxh3UnseededInline(record + kUpdateContentAt,
                                      sizeof(UpdateHeader) - kUpdateContentAt + value_bytes);
  const uint64_t checksum =
      UpdateChecksum(record, bytes, value_bytes, *item_checksum, {stream_id_, lsn_});
  StoreWord(record, checksum);
  at_ += bytes;
  left_ -= bytes;
  lsn_ += bytes;
  position_ += RecordBytes(key_bytes, value_bytes);
  return record;
}

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_UPDATE_LANE_INLINE_H_
