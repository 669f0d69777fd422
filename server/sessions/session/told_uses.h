#ifndef GANNET_SERVER_SESSIONS_SESSION_TOLD_USES_H_
#define GANNET_SERVER_SESSIONS_SESSION_TOLD_USES_H_

#include <algorithm>
#include <cstdint>

namespace gannet {

// How many uses of items a client makes for each that its touches tell (common/protocol/touch.h).
// It tells of one item for every few GETs, and of no more than a message has room for, so a fast
// client tells of one use in ten.
class ToldUses {
 public:
  // So many uses must be told before the ratio means anything.
  static constexpr uint64_t kWindow = 1024;
  // A client that claims more is not believed.
  static constexpr uint64_t kEachMost = 32;

  void OnTold(uint64_t uses) { told_ += uses; }
  // The client reports GETs that found their key.
  void OnHits(uint64_t hits) {
    hits_ += hits;
    if (told_ < kWindow) return;
    each_ = static_cast<uint32_t>(
        std::clamp<uint64_t>((hits_ + told_ / 2) / told_, uint64_t{1}, kEachMost));
    hits_ = told_ = 0;
  }
  // Returns for how many uses each one stands that is told.
  uint32_t each() const { return each_; }

 private:
  // Since each_ was found.
  uint64_t hits_ = 0;
  uint64_t told_ = 0;
  uint32_t each_ = 1;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_TOLD_USES_H_
