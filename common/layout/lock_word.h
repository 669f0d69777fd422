#ifndef GANNET_COMMON_LAYOUT_LOCK_WORD_H_
#define GANNET_COMMON_LAYOUT_LOCK_WORD_H_

#include <cstdint>

namespace gannet {

// A lock word. It is 0 when free. When held, it names its holder and the acquisition, so that a
// release or a guarded write of an earlier acquisition never matches:
//
//   63              32 31          12 11        0
//   [ connection : 32 ][ count : 20  ][ key tag : 12 ]
//
// Connection ids start at 1 and are never reused within an incarnation. Only the NIC changes the
// word (by CAS); the server's CPU reads it.
class LockWord {
 public:
  constexpr LockWord() = default;
  constexpr explicit LockWord(uint64_t word) : word_(word) {}
  static constexpr LockWord Of(uint32_t connection_id, uint32_t count, uint32_t key_tag) {
    return LockWord(static_cast<uint64_t>(connection_id) << 32 |
                    static_cast<uint64_t>(count & 0xfffff) << 12 | (key_tag & 0xfff));
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool free() const { return word_ == 0; }
  constexpr uint32_t connection_id() const { return static_cast<uint32_t>(word_ >> 32); }
  constexpr uint32_t count() const { return static_cast<uint32_t>(word_ >> 12) & 0xfffff; }
  constexpr uint32_t key_tag() const { return static_cast<uint32_t>(word_) & 0xfff; }

  friend constexpr bool operator==(LockWord, LockWord) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(LockWord) == 8);

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_LOCK_WORD_H_
