#ifndef GANNET_COMMON_LAYOUT_ITEM_H_
#define GANNET_COMMON_LAYOUT_ITEM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "common/base/align.h"
#include "common/base/server_time.h"
#include "common/layout/size_class.h"

namespace gannet {

inline constexpr size_t kKeyBytesMax = 250;          // as memcached
inline constexpr size_t kValueBytesMax = 64u << 20;  // 64 MiB
inline constexpr uint64_t kCommitLive = 1ull << 63;

// The 32 bytes before an item's value and key. A store to `commit` is the linearization point of a
// change. If its top bit is set, the item is live, and the other 63 bits prove header, value, key
// and place (item_proof.h). If the top bit is clear, the item is dead or not yet born, whatever the
// other bits are. State and checksum are one word on purpose: a separate state could be sampled
// from another life of the same address.
//
// The value comes first, so that header and value are one run of bytes to checksum. The key needs
// no checksum: its hash is part of the commit word, and both sides have that hash already.
struct ItemHeader {
  uint64_t commit;
  uint64_t version;  // version.h; never 0 and never reused, not even by a later run
  uint32_t value_bytes;
  uint32_t flags;           // the user's, opaque
  uint64_t expiry_and_key;  // expiry, ms since the Unix epoch (0 = never) << 16 | key bytes

  Expiry expiry() const { return Expiry::FromMs(expiry_and_key >> 16); }
  uint32_t key_bytes() const { return expiry_and_key & 0xffff; }
  void SetExpiryAndKeyBytes(Expiry expiry, size_t key_bytes) {
    expiry_and_key = expiry.ms() << 16 | key_bytes;
  }
};
static_assert(sizeof(ItemHeader) == 32 && std::is_trivially_copyable_v<ItemHeader>);
static_assert(offsetof(ItemHeader, version) == 8 && offsetof(ItemHeader, value_bytes) == 16);
static_assert(offsetof(ItemHeader, flags) == 20 && offsetof(ItemHeader, expiry_and_key) == 24);

inline constexpr uint64_t kExpiryMsMax = (1ull << 48) - 1;
// Returns the expiry that an item gets which should have this one.
constexpr Expiry AsStored(Expiry expiry) {
  return Expiry::FromMs(std::min(expiry.ms(), kExpiryMsMax));
}

// Returns the bytes of an item that is sealed whole: header, value, key. Only such items are as
// short as a block of kSealedClassMax.
constexpr uint64_t SealedItemBytes(size_t key_bytes, size_t value_bytes) {
  return sizeof(ItemHeader) + value_bytes + key_bytes;
}

// The header of a large item, which no block of kSealedClassMax could hold. Its key follows at
// once, and its value at the next multiple of 64. The commit word covers this header and the key's
// hash, but not the value: to checksum a long value takes longer than to transfer it. How readers
// prove the value instead: docs/consistency.md.
struct LargeItemHeader {
  ItemHeader item;
  // A number that no other large item had in this run, nor this one before a move. So if a commit
  // word was live at two moments, it was live all the time between them.
  uint64_t placing;
};
static_assert(sizeof(LargeItemHeader) == 40 && offsetof(LargeItemHeader, placing) == 32);

constexpr bool IsLarge(size_t key_bytes, size_t value_bytes) {
  return SealedItemBytes(key_bytes, value_bytes) > SizeClassBytes(kSealedClassMax);
}
constexpr uint64_t LargeValueOffset(size_t key_bytes) {
  return AlignUp(sizeof(LargeItemHeader) + key_bytes, 64);
}

// Where the parts of an item of either kind are, and how many bytes it has.
constexpr uint64_t ValueOffset(size_t key_bytes, size_t value_bytes) {
  return IsLarge(key_bytes, value_bytes) ? LargeValueOffset(key_bytes) : sizeof(ItemHeader);
}
constexpr uint64_t KeyOffset(size_t key_bytes, size_t value_bytes) {
  return IsLarge(key_bytes, value_bytes) ? sizeof(LargeItemHeader)
                                         : sizeof(ItemHeader) + value_bytes;
}
constexpr uint64_t ItemBytes(size_t key_bytes, size_t value_bytes) {
  return IsLarge(key_bytes, value_bytes) ? LargeValueOffset(key_bytes) + value_bytes
                                         : SealedItemBytes(key_bytes, value_bytes);
}
static_assert(SizeClassFor(ItemBytes(kKeyBytesMax, kValueBytesMax)) == kSizeClassMax);

// The verdict on a copy of an item's bytes.
enum class ItemProof : uint8_t {
  kThisKey,   // live, whole, and the key asked for: a correct answer
  kOtherKey,  // live and whole, another key (the slot's tag collided)
  kDead,      // commit word not live: not a miss, look again
  kTorn,      // lengths, checksum or key wrong: look again
};

struct ItemView {
  ItemHeader header;
  std::string_view key;    // into the copy
  std::string_view value;  // into the copy
};

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_ITEM_H_
