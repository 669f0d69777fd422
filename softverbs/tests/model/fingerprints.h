#ifndef SOFTVERBS_TESTS_MODEL_FINGERPRINTS_H_
#define SOFTVERBS_TESTS_MODEL_FINGERPRINTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace softverbs::model {

// Returns the product's high half xored with its low half: each bit depends on all bits of both.
inline uint64_t Fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Returns a hash of these bytes that is not 0, made as wyhash does: 16 bytes a multiplication.
inline uint64_t FingerprintOf(const void* data, size_t size) {
  constexpr uint64_t kSecret[] = {0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3};
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint64_t hash = kSecret[0] ^ size;
  for (size_t at = 0; at < size; at += 16) {
    uint64_t words[2] = {};  // the last ones are padded with zeroes
    std::memcpy(words, bytes + at, std::min<size_t>(16, size - at));
    hash = Fold(words[0] ^ kSecret[1], words[1] ^ hash);
  }
  return std::max<uint64_t>(1, Fold(hash ^ kSecret[2], kSecret[1]));
}

// A map from fingerprints to words. A fingerprint is a hash already, so it says itself where it
// lies: its low bits, or the next free place behind that. 0 marks a free place.
class FingerprintMap {
 public:
  // Returns false, and changes nothing, if the fingerprint is there already. REQUIRES: it is not 0.
  bool Insert(uint64_t fingerprint, uint64_t word) {
    if (4 * (size_ + 1) > 3 * places_.size()) Grow();
    Place& place = places_[IndexOf(fingerprint)];
    if (place.fingerprint != 0) return false;
    place = {fingerprint, word};
    ++size_;
    return true;
  }
  bool Contains(uint64_t fingerprint) const {
    return places_[IndexOf(fingerprint)].fingerprint != 0;
  }
  // REQUIRES: it is there.
  uint64_t At(uint64_t fingerprint) const { return places_[IndexOf(fingerprint)].word; }
  uint64_t size() const { return size_; }

 private:
  struct Place {
    uint64_t fingerprint = 0;
    uint64_t word = 0;
  };

  // Returns where it is, or where it would be.
  size_t IndexOf(uint64_t fingerprint) const {
    size_t at = fingerprint & (places_.size() - 1);
    while (places_[at].fingerprint != 0 && places_[at].fingerprint != fingerprint) {
      at = (at + 1) & (places_.size() - 1);
    }
    return at;
  }
  void Grow() {
    const std::vector<Place> before =
        std::exchange(places_, std::vector<Place>(2 * places_.size()));
    for (const Place& place : before) {
      if (place.fingerprint != 0) places_[IndexOf(place.fingerprint)] = place;
    }
  }

  std::vector<Place> places_ = std::vector<Place>(1024);  // a power of two
  uint64_t size_ = 0;
};

}  // namespace softverbs::model

#endif  // SOFTVERBS_TESTS_MODEL_FINGERPRINTS_H_
