#ifndef GANNET_COMMON_LOOKUP_WALK_DRIVER_H_
#define GANNET_COMMON_LOOKUP_WALK_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/layout/bucket.h"
#include "common/layout/item.h"
#include "common/lookup/index_walk.h"

namespace gannet {

// Who walks through a region: READs what a WalkDriver plans, and takes the items.
class WalkReader {
 public:
  // A READ into the place of this number.
  struct PlacedRead {
    uint32_t place;
    IndexWalk::Read read;
  };
  enum class Taken : uint8_t {
    kYes,
    kLater,  // show it again in the next step
    kStop,   // the walk is to end
  };
  virtual ~WalkReader() = default;

  // Begins these READs, and tells WalkDriver::OnRead when they are done: at once, or later. Returns
  // false if it cannot.
  virtual bool BeginReads(std::span<const PlacedRead> reads) = 0;
  // When the last of them were begun, or earlier.
  virtual int64_t PostedNs() const = 0;
  virtual int64_t NowNs() const = 0;
  virtual const std::byte* CopyAt(uint32_t place) const = 0;
  virtual Taken OnItem(size_t i, const IndexWalk::Item& item) = 0;
  // All items of the run were shown. Returns true once it has dealt with them.
  virtual bool FinishItems() { return true; }
  // No READ is under way of an index older than those that the view had when the last run began.
  virtual void OnRunBegins() {}
  // The walk wants a newer index than the view has, and looks again in its next step. Returns false
  // if there will be none.
  virtual bool WantIndex() = 0;
};

// Drives an IndexWalk from step to step: plans which READs go to which places, and shows the items.
//
//   driver.OnRead(places);                       // whenever READs are done
//   while (driver.Step() == Outcome::kGoesOn) {  // then, unless it waits, the walk is over
//   }
//
// 1. A place has one READ at a time, until what it brought was looked at.
// 2. Items are shown in the order in which their READs are done.
//
// One owner thread.
class WalkDriver {
 public:
  // Each place has so many bytes: those of a run of buckets, or of an item that is READ whole.
  static constexpr uint32_t kPlaceBytes = 4096;
  static_assert(kPlaceBytes >= IndexWalk::kBucketsMax * kBucketBytes);
  static_assert(kPlaceBytes >= SizeClassBytes(kSealedClassMax));

  enum class Outcome : uint8_t {
    kGoesOn,
    kWaits,           // for READs, or for the reader
    kDone,            // all was walked through
    kStopped,         // the reader wants no more
    kFailed,          // the reader knows why
    kChangesTooFast,  // as IndexWalk has it
    kUnknownSlot,     // as IndexWalk has it
  };

  // `walk` and `reader` outlive this. Places are numbered from 0 on.
  WalkDriver(IndexWalk* walk, WalkReader* reader, uint32_t places, int64_t now_ns);

  // The READs into these places are done.
  void OnRead(std::span<const uint32_t> places) {
    copied_.insert(copied_.end(), places.begin(), places.end());
  }
  Outcome Step();
  // Whether READs that it planned are not done.
  bool reads() const { return free_.size() + copied_.size() - shown_ < places_; }
  // Whether it is between two steps of the walk, which may be cut off then.
  bool between() const { return phase_ == Phase::kPlans; }
  // Returns for how long the walk has not advanced.
  int64_t StuckNs(int64_t now_ns);

 private:
  enum class Phase : uint8_t { kPlans, kBuckets, kItems };

  Outcome Plan();
  Outcome OnBuckets();
  Outcome OnItems();
  // Returns kGoesOn once all that was copied is shown.
  Outcome ShowCopied();
  uint32_t TakePlace();
  Outcome Begin(std::span<const WalkReader::PlacedRead> reads) {
    return reader_.BeginReads(reads) ? Outcome::kGoesOn : Outcome::kFailed;
  }

  IndexWalk& walk_;
  WalkReader& reader_;
  const uint32_t places_;
  Phase phase_ = Phase::kPlans;
  std::vector<uint32_t> free_;    // places
  std::vector<uint32_t> copied_;  // places with what was READ
  size_t shown_ = 0;              // of them
  std::vector<size_t> item_of_place_;
  std::vector<WalkReader::PlacedRead> planned_;
  size_t next_item_ = 0;  // of the walk's items(), to be READ
  uint64_t advances_ = 0;
  int64_t advanced_ns_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_LOOKUP_WALK_DRIVER_H_
