#ifndef GANNET_CLIENT_TABLES_ITEM_COPIES_H_
#define GANNET_CLIENT_TABLES_ITEM_COPIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/layout/item.h"
#include "common/layout/item_lease_header.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"

namespace gannet {

// Copies of a server's items, and what the client READ of the server's leases
// (docs/item-leases.md). A copy is right as long as its commit word is among the words that were
// READ, these count, and the server's clock has surely not come to the end of the leases.
//
//   OnHeader -> (words READ behind that header) -> OnWords -> Note: copies -> Find, if Holds
//
// Words that were READ count as long as headers have the generation of the header before them. So a
// header of another generation ends all copies, until the words are READ again.
//
// One owner thread.
class ItemCopies {
 public:
  struct Copy {
    std::string key;
    std::string value;
    ItemHeader header;
    Slot slot;
    bool used = true;  // since the last time that room was made
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

  // Returns whether copies are right now. `upper_ms`: the server's clock has not passed it.
  bool Holds(uint64_t upper_ms) const { return words_count_ && upper_ms < header_.end_ms; }
  // Returns how long they still are. 0: they are not.
  uint64_t LeftMs(uint64_t upper_ms) const {
    return Holds(upper_ms) ? header_.end_ms - upper_ms : 0;
  }
  // Returns nullptr if there is no copy of the key.
  const Copy* Find(KeyHash hash, std::string_view key) {
    const auto it = copies_.find(hash.value());
    if (it == copies_.end() || it->second.key != key) return nullptr;
    it->second.used = true;
    return &it->second;
  }

  // An item was READ, and has proven itself. Copies it if it is leased. Otherwise returns whether
  // the same content was READ before, so that a copy of it would have answered if it were leased.
  bool Note(KeyHash hash, std::string_view key, std::string_view value, const ItemHeader& header,
            Slot slot);

  size_t size() const { return copies_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  // What a copy takes beside key and value.
  static constexpr uint64_t kBytesOfCopy = sizeof(Copy) + 32;
  static constexpr size_t kSeen = 1024;

  static uint64_t BytesOf(const Copy& copy) {
    return kBytesOfCopy + copy.key.size() + copy.value.size();
  }
  void MakeRoom();

  uint64_t bytes_max_;
  uint64_t incarnation_ = 0;
  ItemLeaseHeader header_{};  // the newest
  bool words_count_ = false;  // under it
  absl::flat_hash_set<uint64_t> words_;
  absl::flat_hash_map<uint64_t, Copy> copies_;  // by key hash
  uint64_t bytes_ = 0;
  std::array<uint64_t, kSeen> seen_{};  // commit words of items that were READ lately
};

}  // namespace gannet

#endif  // GANNET_CLIENT_TABLES_ITEM_COPIES_H_
