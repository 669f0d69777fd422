#include "client/tables/item_copies.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gannet {

void ItemCopies::Restart(uint64_t incarnation) {
  incarnation_ = incarnation;
  header_ = {};
  words_count_ = false;
  words_.clear();
  DropUnless([](const Copy&) { return false; });
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
  DropUnless([this](const Copy& copy) { return words_.contains(copy.header.commit); });
}

// Puts the copies for which stays(Copy&) returns true into a table of their own.
template <class F>
void ItemCopies::DropUnless(F stays) {
  std::vector<std::unique_ptr<Copy>> before = std::exchange(places_, {});
  std::erase_if(before, [&](const auto& copy) { return copy == nullptr || !stays(*copy); });
  size_ = before.size();
  bytes_ = 0;
  places_.resize(std::max(kPlacesMin, std::bit_ceil(2 * size_)));
  mask_ = places_.size() - 1;
  for (std::unique_ptr<Copy>& copy : before) {
    bytes_ += BytesOf(*copy);
    const size_t place = PlaceOf(copy->hash);
    places_[place] = std::move(copy);
  }
}

// One that is READ often keeps its place from those that are not.
uint32_t ItemCopies::See(uint64_t word) {
  Seen& seen = seen_[word % kSeen];
  if (seen.word == word) return ++seen.times;
  if (seen.times > 0) {
    --seen.times;
  } else {
    seen.word = word;
  }
  return 0;
}

uint32_t ItemCopies::Note(KeyHash hash, std::string_view key, std::string_view value,
                          const ItemHeader& header, Slot slot) {
  if (!words_.contains(header.commit)) return See(header.commit);
  auto copy = std::make_unique<Copy>(Copy{.hash = hash,
                                          .key = std::string(key),
                                          .value = std::string(value),
                                          .header = header,
                                          .slot = slot});
  if (bytes_ + BytesOf(*copy) > bytes_max_) MakeRoom();
  if (bytes_ + BytesOf(*copy) <= bytes_max_) Insert(std::move(copy));
  return 0;
}

// In the place of an older copy of its hash, if there is one: the item moved, or its words are READ
// again and again.
void ItemCopies::Insert(std::unique_ptr<Copy> copy) {
  bytes_ += BytesOf(*copy);
  std::unique_ptr<Copy>& place = places_[PlaceOf(copy->hash)];
  if (place != nullptr) {
    bytes_ -= BytesOf(*place);
  } else {
    ++size_;
  }
  place = std::move(copy);
  if (2 * size_ > places_.size()) DropUnless([](const Copy&) { return true; });
}

// Drops what was not used since the last time.
void ItemCopies::MakeRoom() {
  DropUnless([](Copy& copy) { return std::exchange(copy.used, false); });
}

}  // namespace gannet
