#ifndef GANNET_TOOLS_KVCLI_WALK_PROGRESS_H_
#define GANNET_TOOLS_KVCLI_WALK_PROGRESS_H_

#include <gannet/walker.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/clock.h"

namespace gannet::kvcli {

// A line on stderr, which is a terminal, that says how far a walk has come. The line is gone at the
// end. One thread.
class WalkProgressLine {
 public:
  // Shows nothing unless `shown`. `walker` must outlive this.
  WalkProgressLine(const Walker& walker, std::string server, bool shown)
      : walker_(walker), server_(std::move(server)), shown_(shown) {}
  ~WalkProgressLine() {
    if (drawn_) std::fputs("\r\033[K", stderr);
  }
  WalkProgressLine(const WalkProgressLine&) = delete;
  WalkProgressLine& operator=(const WalkProgressLine&) = delete;

  // Call it often. Draws the line anew now and then.
  void Look() {
    if (!shown_) return;
    const int64_t now_ns = MonotonicNs();
    if (now_ns < next_ns_) return;
    next_ns_ = now_ns + kPauseNs;
    const WalkProgress progress = walker_.progress();
    const std::string line = absl::StrFormat("\r\033[Kkvcli: %.0f %% of %s, %d items",
                                             100 * progress.done, server_, progress.items);
    std::fputs(line.c_str(), stderr);
    drawn_ = true;
  }

 private:
  static constexpr int64_t kPauseNs = kNsPerSecond / 2;

  const Walker& walker_;
  const std::string server_;
  const bool shown_;
  bool drawn_ = false;
  int64_t next_ns_ = MonotonicNs() + kPauseNs;  // a short walk shows nothing
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_WALK_PROGRESS_H_
