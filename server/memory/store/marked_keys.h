#ifndef GANNET_SERVER_MEMORY_STORE_MARKED_KEYS_H_
#define GANNET_SERVER_MEMORY_STORE_MARKED_KEYS_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/layout/key_hash.h"

namespace gannet {

// Which keys have marks, for those who ask for each PUT: how many keys have, by the first bits of
// their hashes, and which key it is if it is one. A key that is marked is always found. Another one
// is, too, if it shares its bits with marked ones that were once several.
//
// Thread safety: one thread at a time changes it; anybody may ask. An answer counts only for
// whoever knows that the key's mark neither comes nor goes meanwhile: relaxed.
class MarkedKeys {
 public:
  // Counts of marks. Returns 0 for a key that has none, and nearly always for a key that has none
  // but others have.
  class Counts {
   public:
    // `hash`: a KeyHash's value, of which only the bits that count are loaded.
    uint8_t Of(const uint64_t& hash) const {
      static_assert(std::endian::native == std::endian::little && kShift % 8 == 0);
      uint16_t bits;
      std::memcpy(&bits, reinterpret_cast<const char*>(&hash) + kShift / 8, sizeof(bits));
      return counts_[bits].load(std::memory_order_relaxed);
    }

   private:
    friend class MarkedKeys;
    explicit Counts(const std::atomic<uint8_t>* counts) : counts_(counts) {}
    const std::atomic<uint8_t>* counts_;
  };
  Counts counts() const { return Counts(counts_.data()); }
  bool MayHave(KeyHash hash) const {
    const uint64_t only = only_[hash.value() >> kShift].load(std::memory_order_relaxed);
    return only == hash.value() || only == kSeveral;
  }
  // Marks of a key add up. Returns false if that are too many.
  bool Add(KeyHash hash) {
    const size_t at = hash.value() >> kShift;
    const uint8_t count = counts_[at].load(std::memory_order_relaxed);
    if (count == UINT8_MAX) return false;
    const uint64_t only = only_[at].load(std::memory_order_relaxed);
    const bool alone = count == 0 || only == hash.value();
    only_[at].store(alone ? hash.value() : kSeveral, std::memory_order_relaxed);
    counts_[at].store(count + 1, std::memory_order_relaxed);
    return true;
  }
  void Remove(KeyHash hash) {
    const size_t at = hash.value() >> kShift;
    const uint8_t left = counts_[at].load(std::memory_order_relaxed) - 1;
    counts_[at].store(left, std::memory_order_relaxed);
    if (left == 0) only_[at].store(kNone, std::memory_order_relaxed);
  }

 private:
  static constexpr int kBits = 16;
  static constexpr int kShift = 64 - kBits;
  static constexpr uint64_t kSeveral = UINT64_MAX;
  static constexpr uint64_t kNone = 0;  // a key of this hash is found unmarked, too

  std::vector<std::atomic<uint8_t>> counts_ = std::vector<std::atomic<uint8_t>>(1 << kBits);
  std::vector<std::atomic<uint64_t>> only_ = std::vector<std::atomic<uint64_t>>(1 << kBits);
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_MARKED_KEYS_H_
