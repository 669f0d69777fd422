#include "client/tables/item_copies.h"

#include <utility>

namespace gannet {

void ItemCopies::Restart(uint64_t incarnation) {
  incarnation_ = incarnation;
  header_ = {};
  words_count_ = false;
  words_.clear();
  copies_.clear();
  bytes_ = 0;
  seen_ = {};
}

void ItemCopies::DropLeases() {
  header_ = {};
  words_count_ = false;
  words_.clear();
}

void ItemCopies::OnHeader(const ItemLeaseHeader& header) {
  if (!ItemLeaseValid(header, incarnation_)) return;
  words_count_ = words_count_ && header.generation == header_.generation;
  header_ = header;
}

void ItemCopies::OnWords(std::span<const uint64_t> words) {
  words_.clear();
  for (const uint64_t word : words) {
    if (word != 0) words_.insert(word);
  }
  words_count_ = true;
  absl::erase_if(copies_, [this](const auto& it) {
    const bool gone = !words_.contains(it.second.header.commit);
    if (gone) bytes_ -= BytesOf(it.second);
    return gone;
  });
}

bool ItemCopies::Note(KeyHash hash, std::string_view key, std::string_view value,
                      const ItemHeader& header, Slot slot) {
  if (!words_.contains(header.commit)) {
    uint64_t& seen = seen_[header.commit % kSeen];
    const bool again = seen == header.commit;
    seen = header.commit;
    return again;
  }
  if (const auto it = copies_.find(hash.value()); it != copies_.end()) {
    // It moved, or its words are READ again and again.
    bytes_ -= BytesOf(it->second);
    copies_.erase(it);
  }
  Copy copy{.key = std::string(key), .value = std::string(value), .header = header, .slot = slot};
  if (bytes_ + BytesOf(copy) > bytes_max_) MakeRoom();
  if (bytes_ + BytesOf(copy) > bytes_max_) return false;
  bytes_ += BytesOf(copy);
  copies_.emplace(hash.value(), std::move(copy));
  return false;
}

// Drops what was not used since the last time.
void ItemCopies::MakeRoom() {
  absl::erase_if(copies_, [this](auto& it) {
    const bool used = std::exchange(it.second.used, false);
    if (!used) bytes_ -= BytesOf(it.second);
    return !used;
  });
}

}  // namespace gannet
