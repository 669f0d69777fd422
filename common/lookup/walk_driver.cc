#include "common/lookup/walk_driver.h"

#include <numeric>
#include <utility>

namespace gannet {

WalkDriver::WalkDriver(IndexWalk* walk, WalkReader* reader, uint32_t places, int64_t now_ns)
    : walk_(*walk),
      reader_(*reader),
      places_(places),
      free_(places),
      item_of_place_(places),
      advances_(walk->advances()),
      advanced_ns_(now_ns) {
  std::iota(free_.rbegin(), free_.rend(), 0u);
}

WalkDriver::Outcome WalkDriver::Step() {
  switch (phase_) {
    case Phase::kPlans:
      return Plan();
    case Phase::kBuckets:
      return OnBuckets();
    case Phase::kItems:
      return OnItems();
  }
  return Outcome::kFailed;
}

uint32_t WalkDriver::TakePlace() {
  const uint32_t place = free_.back();
  free_.pop_back();
  return place;
}

WalkDriver::Outcome WalkDriver::Plan() {
  switch (walk_.step()) {
    case IndexWalk::Step::kReadBuckets: {
      if (walk_.begins_run()) reader_.OnRunBegins();
      phase_ = Phase::kBuckets;
      const WalkReader::PlacedRead read = {.place = TakePlace(), .read = walk_.buckets()};
      return Begin({&read, 1});
    }
    case IndexWalk::Step::kReadItems:
      next_item_ = 0;
      phase_ = Phase::kItems;
      return Outcome::kGoesOn;
    case IndexWalk::Step::kWantIndex:
      walk_.Resume();
      if (walk_.step() != IndexWalk::Step::kWantIndex) return Outcome::kGoesOn;
      return reader_.WantIndex() ? Outcome::kWaits : Outcome::kFailed;
    case IndexWalk::Step::kDone:
      return Outcome::kDone;
    case IndexWalk::Step::kChangesTooFast:
      return Outcome::kChangesTooFast;
    case IndexWalk::Step::kUnknownSlot:
      return Outcome::kUnknownSlot;
  }
  return Outcome::kFailed;
}

WalkDriver::Outcome WalkDriver::OnBuckets() {
  if (copied_.empty()) return Outcome::kWaits;
  const uint32_t place = copied_.front();
  copied_.clear();
  free_.push_back(place);
  phase_ = Phase::kPlans;
  walk_.OnBuckets({reader_.CopyAt(place), walk_.buckets().bytes}, reader_.PostedNs(),
                  reader_.NowNs());
  return Outcome::kGoesOn;
}

WalkDriver::Outcome WalkDriver::OnItems() {
  if (const Outcome outcome = ShowCopied(); outcome != Outcome::kGoesOn) return outcome;
  const std::vector<Slot>& slots = walk_.items();
  planned_.clear();
  for (; next_item_ < slots.size() && !free_.empty(); ++next_item_) {
    const Slot slot = slots[next_item_];
    const uint32_t place = TakePlace();
    item_of_place_[place] = next_item_;
    planned_.push_back({place, {slot.offset(), walk_.ReadBytesOf(slot)}});
  }
  if (!planned_.empty()) return Begin(planned_);
  if (free_.size() < places_ || !reader_.FinishItems()) return Outcome::kWaits;
  phase_ = Phase::kPlans;
  walk_.OnItemsDone();
  return Outcome::kGoesOn;
}

WalkDriver::Outcome WalkDriver::ShowCopied() {
  for (; shown_ < copied_.size(); ++shown_) {
    const uint32_t place = copied_[shown_];
    const size_t i = item_of_place_[place];
    const uint32_t bytes = walk_.ReadBytesOf(walk_.items()[i]);
    const auto item = walk_.OnItem(i, {reader_.CopyAt(place), bytes});
    const auto taken = item ? reader_.OnItem(i, *item) : WalkReader::Taken::kYes;
    if (taken == WalkReader::Taken::kLater) return Outcome::kWaits;
    if (taken == WalkReader::Taken::kStop) return Outcome::kStopped;
    free_.push_back(place);
  }
  copied_.clear();
  shown_ = 0;
  return Outcome::kGoesOn;
}

int64_t WalkDriver::StuckNs(int64_t now_ns) {
  if (std::exchange(advances_, walk_.advances()) != walk_.advances()) advanced_ns_ = now_ns;
  return now_ns - advanced_ns_;
}

}  // namespace gannet
