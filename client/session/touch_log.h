#ifndef GANNET_CLIENT_SESSION_TOUCH_LOG_H_
#define GANNET_CLIENT_SESSION_TOUCH_LOG_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/base/data_path_checks.h"
#include "common/base/hash.h"
#include "common/layout/slot.h"
#include "common/protocol/touch.h"

namespace gannet {

// What the client tells a server that evicts of the items that it READ. The server sees no READ, so
// this is how it learns what is used.
//
// It remembers which items it told of in this epoch, and counts further uses of those. It tells an
// item's count when the item is used in a later epoch, or when another item takes its entry. So an
// item that is READ all the time costs 8 bytes an epoch.
//
// Lossy on purpose: it tells of at most one item for every kGetsPerTouch GETs, and drops what does
// not fit into the next message. For a server that only leases items, one use of several stands for
// all of them: what is popular is found so, too, and a GET costs less.
//
// One owner thread. It takes no memory and notes nothing until it is started.
class TouchLog {
 public:
  static constexpr size_t kEntries = 4096;
  // An epoch ends after so many uses.
  static constexpr uint32_t kUsesPerEpoch = 4 * kEntries;
  static constexpr uint32_t kGetsPerTouch = 4;
  // A message is worth its cost if it tells of so many items.
  static constexpr size_t kWorthAMessage = 256;

  // A use stands for at most so many, itself included, and half of them on average.
  static constexpr uint32_t kUsesPerSampleMax = 16;

  // What a server wants to know of.
  enum class Wanted : uint8_t { kNothing, kSamples, kAll };

  // Forgets everything. From now on it notes what the server wants.
  void Restart(Wanted wanted) {
    on_ = wanted != Wanted::kNothing;
    samples_ = wanted == Wanted::kSamples;
    unnoted_ = 0;
    noted_at_ = 1;
    entries_.assign(on_ ? kEntries : 0, Entry{});
    touches_ = 0;
    credit_ = 0;
  }
  bool on() const { return on_; }

  // The client READ the item at this slot, or used a copy of it so many times. REQUIRES: on().
  void Used(Slot slot, uint32_t uses = 1) {
    GANNET_CHECK_DATA_PATH(on(), "the server wants no touches");
    unnoted_ += uses;
    if (unnoted_ >= noted_at_) Note(slot);
  }
  // A GET found nothing. It pays for telling of others.
  void Missed() { AddCredit(1); }

  // Returns what is to be told. They are forgotten by Clear.
  std::span<const uint64_t> touches() const { return std::span(words_).first(touches_); }
  void Clear() { touches_ = 0; }
  bool worth_a_message() const { return touches_ >= kWorthAMessage; }

 private:
  static constexpr uint32_t kCreditMax = kTouchesMax * kGetsPerTouch;

  struct Entry {
    uint64_t block : 40 = 0;
    uint64_t uses : 12 = 0;  // not told yet
    uint64_t epoch : 12 = 0;
    Entry() = default;
    Entry(uint64_t b, uint16_t u, uint16_t e) : block(b), uses(u & 0xfffu), epoch(e & 0xfffu) {}
  };
  static_assert(sizeof(Entry) == 8);

  // Counts what was not noted since the last time as uses of this item.
  [[gnu::noinline]] void Note(Slot slot) {
    uint32_t uses = std::exchange(unnoted_, 0);
    if (samples_) noted_at_ = 1 + static_cast<uint32_t>(Mix64(++sampled_) % kUsesPerSampleMax);
    AddCredit(uses);
    if ((uses_ += uses) >= kUsesPerEpoch) NextEpoch();
    const uint64_t block = slot.offset() / kItemAlignment;
    Entry& entry = entries_[Mix64(block) % kEntries];
    if (entry.block == block && entry.epoch == epoch_) {
      entry.uses = AddedTo(entry, uses);
      return;
    }
    const bool same = entry.block == block;
    // An item that was used again in this epoch keeps its entry.
    if (!same && entry.epoch == epoch_ && entry.uses > 1) {
      --entry.uses;
      Tell(block, uses);
      return;
    }
    if (!same && entry.uses > 0) Tell(entry.block, entry.uses);
    if (same) uses = AddedTo(entry, uses);
    const bool told = Tell(block, uses);
    entry = {block, static_cast<uint16_t>(told ? 0 : uses), epoch_};
  }

  // Returns the uses of an entry, and so many more.
  static uint16_t AddedTo(const Entry& entry, uint32_t uses) {
    return static_cast<uint16_t>(std::min<uint32_t>(entry.uses + uses, Touch::kUsesMax));
  }
  void AddCredit(uint32_t gets) { credit_ = std::min(credit_ + gets, kCreditMax); }
  void NextEpoch() {
    uses_ = 0;
    epoch_ = static_cast<uint16_t>((epoch_ + 1) & 0xfff);
  }
  bool Tell(uint64_t block, uint32_t uses) {
    if (credit_ < kGetsPerTouch || touches_ == words_.size()) return false;
    credit_ -= kGetsPerTouch;
    words_[touches_++] = Touch::Of(block * kItemAlignment, uses).word;
    return true;
  }

  bool on_ = false;
  bool samples_ = false;
  uint32_t unnoted_ = 0;   // uses
  uint32_t noted_at_ = 1;  // so many of them
  uint64_t sampled_ = 0;
  uint16_t epoch_ = 1;
  uint32_t uses_ = 0;    // in this epoch
  uint32_t credit_ = 0;  // GETs that no touch was told for
  std::vector<Entry> entries_;
  size_t touches_ = 0;
  std::array<uint64_t, kTouchesMax> words_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_TOUCH_LOG_H_
