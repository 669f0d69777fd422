// One mutex for all: it is taken for each value that is written or evicted, which is seldom beside
// what these cost.
//
// Each item is in entries_ once, and those with a place are in places_, too. The queues may have
// versions that were dropped or spared since: who takes one passes these over.

#include "server/memory/store/ahead_of_eviction.h"

namespace gannet {

bool AheadOfEviction::Add(const Item& item) {
  MutexLock lock(mutex_);
  const auto known = entries_.find(item.version);
  if (known != entries_.end()) {
    if (!known->second.kept) return false;
    known->second.kept = false;
    written_.push_back(item.version);
    written_bytes_ += known->second.item.bytes;
    bytes_ += known->second.item.bytes;
    return true;
  }
  if (chosen_.size() >= kChosenMax) return false;
  entries_.try_emplace(item.version, Entry{.item = item});
  chosen_.push_back(item.version);
  bytes_ += item.bytes;
  return true;
}

bool AheadOfEviction::full() const {
  MutexLock lock(mutex_);
  return chosen_.size() >= kChosenMax;
}

AheadOfEviction::State AheadOfEviction::StateOf(uint64_t version) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(version);
  if (entry == entries_.end()) return State::kNotHere;
  if (entry->second.kept) return State::kKept;
  return entry->second.place ? State::kWritten : State::kOnTheWay;
}

std::optional<AheadOfEviction::Item> AheadOfEviction::TakeFirst(std::deque<uint64_t>* versions) {
  while (!versions->empty()) {
    const auto entry = entries_.find(versions->front());
    versions->pop_front();
    if (entry != entries_.end() && !entry->second.kept) return entry->second.item;
  }
  return std::nullopt;
}

std::optional<AheadOfEviction::Item> AheadOfEviction::Take() {
  MutexLock lock(mutex_);
  return TakeFirst(&chosen_);
}

void AheadOfEviction::Written(const TierPlace& place) {
  MutexLock lock(mutex_);
  steps_left_ = kStepsMax;
  const auto entry = entries_.find(place.version);
  if (entry == entries_.end()) return;
  written_.push_back(place.version);
  written_bytes_ += entry->second.item.bytes;
  SetPlace(&entry->second, place);
}

// A record is one item's: if another version is known to lie there, that one became a stub, was
// touched, and came back.
void AheadOfEviction::SetPlace(Entry* entry, const TierPlace& place) {
  const uint64_t version = entry->item.version;
  entry->place = place;
  const auto [known, is_new] = places_.try_emplace(place.position, version);
  if (!is_new) {
    Erase(known->second);
    places_[place.position] = version;
  }
  if (places_.size() <= places_max_) return;
  const auto next = places_.lower_bound(leaving_.end);
  Erase(next == places_.end() ? places_.begin()->second : next->second);
}

void AheadOfEviction::Keep(const Item& item, const TierPlace& place) {
  MutexLock lock(mutex_);
  const bool leaves = place.position >= leaving_.begin && place.position < leaving_.end &&
                      place.lap <= leaving_.lap;
  if (leaves) return;
  const auto [entry, is_new] =
      entries_.try_emplace(item.version, Entry{.item = item, .kept = true});
  if (is_new) SetPlace(&entry->second, place);
}

void AheadOfEviction::Spare(uint64_t version) {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(version);
  if (entry == entries_.end() || entry->second.kept) return;
  entry->second.kept = true;
  bytes_ -= entry->second.item.bytes;
  written_bytes_ -= entry->second.item.bytes;
}

std::optional<AheadOfEviction::Item> AheadOfEviction::TakeWritten() {
  MutexLock lock(mutex_);
  return TakeFirst(&written_);
}

std::optional<TierPlace> AheadOfEviction::PlaceOf(uint64_t version) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(version);
  return entry == entries_.end() ? std::nullopt : entry->second.place;
}

void AheadOfEviction::Drop(uint64_t version) {
  MutexLock lock(mutex_);
  Erase(version);
}

void AheadOfEviction::NotWritten(uint64_t version) {
  MutexLock lock(mutex_);
  Erase(version);
  steps_left_ = 0;
}

void AheadOfEviction::Erase(uint64_t version) {
  const auto entry = entries_.find(version);
  if (entry == entries_.end()) return;
  const Entry& known = entry->second;
  if (!known.kept) {
    bytes_ -= known.item.bytes;
    if (known.place) written_bytes_ -= known.item.bytes;
  }
  if (known.place) places_.erase(known.place->position);
  entries_.erase(entry);
}

void AheadOfEviction::DropWrittenIn(uint64_t begin, uint64_t end, uint32_t lap) {
  MutexLock lock(mutex_);
  leaving_ = {begin, end, lap};
  for (auto place = places_.lower_bound(begin); place != places_.end() && place->first < end;
       place = places_.lower_bound(begin)) {
    Erase(place->second);
  }
}

uint64_t AheadOfEviction::written_bytes() const {
  MutexLock lock(mutex_);
  return written_bytes_;
}

uint64_t AheadOfEviction::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

bool AheadOfEviction::DiskWorks() const {
  MutexLock lock(mutex_);
  return steps_left_ > 0;
}

bool AheadOfEviction::SomeAreOnTheWay() const {
  MutexLock lock(mutex_);
  return SomeAreOnTheWayNow();
}

void AheadOfEviction::StepPassed() {
  MutexLock lock(mutex_);
  if (SomeAreOnTheWayNow() && steps_left_ > 0) --steps_left_;
}

}  // namespace gannet
