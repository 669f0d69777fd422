#ifndef GANNET_COMMON_LAYOUT_KEY_HASH_INLINE_H_
#define GANNET_COMMON_LAYOUT_KEY_HASH_INLINE_H_

#include <cstdint>
#include <string_view>

#include "common/base/xxh3_inline.h"
#include "common/layout/key_hash.h"

namespace gannet {

// KeyHash::Of, inlined for the few sources where every instruction counts.
[[gnu::always_inline]] inline KeyHash InlineKeyHash(std::string_view key, uint64_t seed) {
  return KeyHash(Xxh3Inline(key.data(), key.size(), seed));
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_KEY_HASH_INLINE_H_
