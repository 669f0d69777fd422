#ifndef GANNET_SERVER_LOG_CHANGES_UPDATE_LANE_INLINE_H_
#define GANNET_SERVER_LOG_CHANGES_UPDATE_LANE_INLINE_H_

#include "common/base/copy_bytes.h"
#include "common/base/words.h"
#include "common/base/xxh3_inline.h"
#include "server/log/changes/update_lane.h"

namespace gannet {

// The checksum of the item that an update makes.
[[gnu::always_inline]] inline uint64_t ItemChecksumOf(const std::byte* body, size_t value_bytes) {
  return Xxh3UnseededInline(body + kUpdateContentAt,
                            sizeof(UpdateBody) - kUpdateContentAt + value_bytes);
}

// The body is written once, where it is sent from. The checksums come later, of all bodies in one
// loop: in between the compiler would keep nothing else in registers.
[[gnu::always_inline]] inline const std::byte* UpdateLane::Append(const Update& update) {
  const size_t key_bytes = update.key.size();
  const size_t value_bytes = update.value.size();
  const size_t bytes = UpdateBodyBytes(key_bytes, value_bytes);
  std::byte* const body = at_;
  if (bytes > static_cast<size_t>(end_ - body)) [[unlikely]]
    return nullptr;
  // The padding, before what may lie over a part of it.
  StoreWord(body + bytes - sizeof(uint64_t), 0);
  // Word by word: the compiler would put an array together elsewhere, and copy that.
  StoreWord(body + offsetof(UpdateBody, session_token), update.session_token);
  StoreWord(body + offsetof(UpdateBody, sequence), update.sequence);
  StoreWord(body + offsetof(UpdateBody, version), update.version);
  static_assert(offsetof(UpdateBody, flags) == offsetof(UpdateBody, value_bytes) + 4);
  StoreWord(body + offsetof(UpdateBody, value_bytes), value_bytes | uint64_t{update.flags} << 32);
  StoreWord(body + offsetof(UpdateBody, key_bytes), key_bytes);
  CopyValueBytes(body + sizeof(UpdateBody), update.value.data(), value_bytes);
  CopyKeyBytes(body + sizeof(UpdateBody) + value_bytes, update.key.data(), key_bytes);
  at_ = body + bytes;
  position_ += bytes + kRecordBytesOverBody;
  return body;
}

template <class Use>
inline void UpdateLane::SealEach(Use&& use) {
  sealed_ = true;
  for (const PlacedUpdate& update : updates()) {
    std::byte* const body = bodies_ + (update.body - bodies_);
    StoreWord(body + offsetof(UpdateBody, item_checksum),
              ItemChecksumOf(body, UpdateValueBytes(body)));
    use(update.body);
  }
}

inline void UpdateLane::Seal() {
  if (!sealed_) SealEach([](const std::byte*) {});
}

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_UPDATE_LANE_INLINE_H_
