#ifndef GANNET_CLIENT_TABLES_ITEM_COPIES_H_
#define GANNET_CLIENT_TABLES_ITEM_COPIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/same_bytes.h"
#include "common/base/server_time.h"
#include "common/layout/item.h"
#include "common/layout/item_lease_header.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"

namespace gannet {

// Copies of a server's items, and what the client READ of the server's leases
// (docs/item-leases.md). A copy is right as long as its commit word is among the words that were
// READ, these count, and the server's clock has surely not come to the end of the leases.
//
//   OnHeader -> (words READ behind that header) -> OnWords -> Note: copies -> Find, before end
//
// Words that were READ count as long as headers have the generation of the header before them. So a
// header of another generation ends all copies, until the words are READ again.
//
// One owner thread.
class ItemCopies {
 public:
  // A copy's uses are told together, this many at a time.
  static constexpr uint32_t kUsesPerTouch = 64;

  struct Copy {
    KeyHash hash;
    std::string key;
    std::string value;
    ItemHeader header;
    Slot slot;
    bool used = true;   // since the last time that room was made
    uint32_t uses = 0;  // not told yet
  };

  // Keeps at most so many bytes of copies.
  explicit ItemCopies(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Forgets everything: another session, or another run of the server.
  void Restart(uint64_t incarnation);

  // Forgets header and words. The copies stay, as they prove themselves by words.
  void DropLeases();
  void set_bytes_max(uint64_t bytes_max) { bytes_max_ = bytes_max; }

  // Takes a header that was READ. Does nothing if it is torn.
  void OnHeader(const ItemLeaseHeader& header);
  // Returns whether words are to be READ now, or else none of the copies counts.
  bool WantsWords() const { return header_.end_ms != 0 && !words_count_; }
  // Takes words whose READ was posted behind that of the last header. Copies whose words are not
  // there any more go.
  void OnWords(std::span<const uint64_t> words);

  // Copies are right until the server's clock comes to this time. ServerTime(): they are not.
  ServerTime end() const {
    return words_count_ ? ServerTime::FromMs(header_.end_ms) : ServerTime();
  }
  // Returns nullptr if there is no copy of the key. A copy stays where it is until the next OnWords
  // or Note.
  Copy* Find(KeyHash hash, std::string_view key) {
    Copy* copy;
    for (size_t place = hash.value();; ++place) {
      copy = places_[place & mask_].get();
      if (copy == nullptr) return nullptr;
      if (copy->hash.value() == hash.value()) break;
    }
    if (copy->key.size() != key.size()) return nullptr;
    if (!SameBytes(copy->key.data(), key.data(), key.size())) return nullptr;
    copy->used = true;
    return copy;
  }

  // An item was READ, and has proven itself. Copies it if it is leased. Otherwise returns how often
  // the same content was noted before: so many times a copy of it would have answered if it were
  // leased. It may be more often.
  uint32_t Note(KeyHash hash, std::string_view key, std::string_view value,
                const ItemHeader& header, Slot slot);

  size_t size() const { return size_; }
  uint64_t bytes() const { return bytes_; }

 private:
  // What a copy takes beside key and value.
  static constexpr uint64_t kBytesOfCopy = sizeof(Copy) + 32;
  static constexpr size_t kPlacesMin = 16;
  static constexpr size_t kSeen = 1024;

  // A content that was READ lately, by its commit word.
  struct Seen {
    uint64_t word = 0;
    uint32_t times = 0;
  };

  static uint64_t BytesOf(const Copy& copy) {
    return kBytesOfCopy + copy.key.size() + copy.value.size();
  }
  // Returns where the copy of a key of this hash is, or would be.
  size_t PlaceOf(KeyHash hash) const {
    size_t place = hash.value() & mask_;
    while (places_[place] != nullptr && places_[place]->hash.value() != hash.value()) {
      place = (place + 1) & mask_;
    }
    return place;
  }
  template <class F>
  void DropUnless(F stays);
  void Insert(std::unique_ptr<Copy> copy);
  uint32_t See(uint64_t word);
  void MakeRoom();

  uint64_t bytes_max_;
  uint64_t incarnation_ = 0;
  ItemLeaseHeader header_{};  // the newest
  bool words_count_ = false;  // under it
  absl::flat_hash_set<uint64_t> words_;
  // By hash, at most half of them used. A copy lies anywhere from its home on, up to the next place
  // that is empty.
  std::vector<std::unique_ptr<Copy>> places_{kPlacesMin};
  size_t mask_ = kPlacesMin - 1;
  size_t size_ = 0;
  uint64_t bytes_ = 0;
  std::array<Seen, kSeen> seen_{};  // each at a place that many contents share
};

}  // namespace gannet

#endif  // GANNET_CLIENT_TABLES_ITEM_COPIES_H_
