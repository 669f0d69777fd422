#ifndef GANNET_COMMON_LAYOUT_KEY_HASH_H_
#define GANNET_COMMON_LAYOUT_KEY_HASH_H_

#include <cstdint>
#include <string_view>

#include "common/base/align.h"
#include "common/base/hash.h"

namespace gannet {

inline constexpr uint32_t kTagBits = 20;
inline constexpr uint32_t kStashTagBits = 7;

// The 64-bit hash of a key. Its bits decide where the key goes: the high bits choose the home, the
// lowest 20 are the slot's tag, and bits 20-31 choose the stash tag. The stash home comes from a
// second mix, so that keys crowded in one home do not crowd in one stash bucket.
class KeyHash {
 public:
  constexpr explicit KeyHash(uint64_t hash) : hash_(hash) {}
  static KeyHash Of(std::string_view key, uint64_t seed) { return KeyHash(HashKey(key, seed)); }

  constexpr uint64_t value() const { return hash_; }
  // Returns the home bucket, in [0, homes).
  constexpr uint64_t Home(uint64_t homes) const { return MapToRange(hash_, homes); }
  // Returns the first of the two stash buckets that the key may be in, in [0, stash_homes).
  constexpr uint64_t StashHome(uint64_t stash_homes) const {
    return MapToRange(Mix64(hash_), stash_homes);
  }
  // The 20-bit tag in the key's slot.
  constexpr uint32_t Tag() const { return static_cast<uint32_t>(hash_) & ((1u << kTagBits) - 1); }
  // The key's bit, one of the home bucket's 7 stash tags.
  constexpr uint32_t StashTag() const {
    return 1u << (((hash_ >> 20) & 0xfff) * kStashTagBits >> 12);
  }
  // Returns the index of the key's lock word.
  constexpr uint64_t LockIndex(uint64_t lock_words) const { return hash_ % lock_words; }
  // The 12-bit key tag in a held lock word.
  constexpr uint32_t LockTag() const { return static_cast<uint32_t>(hash_ >> 32) & 0xfff; }

 private:
  uint64_t hash_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_KEY_HASH_H_
