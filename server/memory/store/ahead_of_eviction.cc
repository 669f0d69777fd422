// One mutex for all: it is taken for each value that is written or evicted, which is seldom beside
// what these cost.

#include "server/memory/store/ahead_of_eviction.h"

namespace gannet {

bool AheadOfEviction::Add(const Item& item) {
  MutexLock lock(mutex_);
  if (chosen_.size() >= kChosenMax) return false;
  if (!entries_.try_emplace(item.version, Entry{item, std::nullopt}).second) return false;
  chosen_.push_back(item.version);
  bytes_ += item.bytes;
  ++on_the_way_;
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
  return entry->second.place ? State::kWritten : State::kOnTheWay;
}

std::optional<AheadOfEviction::Item> AheadOfEviction::TakeFirst(std::deque<uint64_t>* versions) {
  while (!versions->empty()) {
    const auto entry = entries_.find(versions->front());
    versions->pop_front();
    if (entry != entries_.end()) return entry->second.item;
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
  on_the_way_ -= !entry->second.place;
  entry->second.place = place;
  written_.push_back(place.version);
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
  Remove(version);
}

void AheadOfEviction::NotWritten(uint64_t version) {
  MutexLock lock(mutex_);
  Remove(version);
  steps_left_ = 0;
}

void AheadOfEviction::Remove(uint64_t version) {
  const auto entry = entries_.find(version);
  if (entry == entries_.end()) return;
  bytes_ -= entry->second.item.bytes;
  on_the_way_ -= !entry->second.place;
  entries_.erase(entry);
}

void AheadOfEviction::DropWrittenIn(uint64_t begin, uint64_t end) {
  MutexLock lock(mutex_);
  uint64_t dropped = 0;
  absl::erase_if(entries_, [&](const auto& it) {
    const Entry& entry = it.second;
    const bool goes = entry.place && entry.place->position >= begin && entry.place->position < end;
    if (goes) dropped += entry.item.bytes;
    return goes;
  });
  bytes_ -= dropped;
}

uint64_t AheadOfEviction::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

bool AheadOfEviction::Waits() const {
  MutexLock lock(mutex_);
  return steps_left_ > 0 && on_the_way_ > 0;
}

void AheadOfEviction::StepPassed() {
  MutexLock lock(mutex_);
  if (steps_left_ > 0 && on_the_way_ > 0) --steps_left_;
}

}  // namespace gannet
