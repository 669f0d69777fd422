#ifndef GANNET_COMMON_BASE_WAIT_STAGES_H_
#define GANNET_COMMON_BASE_WAIT_STAGES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// Decides how a thread waits for what a device or a peer brings:
//
//   poll     as long as it pays, which is learned from what came before;
//   yield    let the thread run that has the answer;
//   sleep    arm the completion channel, poll once more, wait on the descriptors.
//
//   for (;;) {
//     if (poll() > 0) { stages.Came(now()); ...; continue; }
//     switch (stages.Next(now())) { ... do as it says ... }
//   }
//
// It only decides: no system call, no allocation, no clock of its own.
//
// 1. Polling pays up to a time T if what it costs on average, E[min(wait, T)], is not more than the
//    sleeping that it saves, P(wait <= T) * poll_ns_max. Of the T that pay, the one is taken that
//    saves the most. So a thread whose answers take 5 us polls for 8, one whose answers take longer
//    than poll_ns_max does not poll at all.
// 2. The waits are learned from probes: some waits poll for poll_ns_max, whatever is known. Only
//    these tell the truth about answers that come later than the thread polls, because a thread
//    that sleeps learns when it was woken, not when the answer came.
// 3. One probe in kProbeEvery waits while polling pays, one in kProbeSeldom while it does not, and
//    the first kLearnFirst waits all.
//
// One owner thread.
class WaitStages {
 public:
  enum class Stage : uint8_t { kPoll, kYield, kSleep };
  struct Options {
    // A thread polls no longer than this. It is also the assumed cost of sleeping and being woken.
    // 0: it never polls.
    int64_t poll_ns_max = 32 * kNsPerUs;
    // The number of times that it yields between polling and sleeping.
    uint32_t yields = 1;
  };

  static constexpr uint32_t kLearnFirst = 4;
  static constexpr uint32_t kProbeEvery = 16;
  static constexpr uint32_t kProbeSeldom = 128;

  explicit WaitStages(const Options& options) : options_(options) {}

  // A Poll found nothing: what to do before the next one. The first call after Came begins a wait.
  Stage Next(int64_t now_ns) {
    if (!waiting_) Begin(now_ns);
    if (now_ns < poll_until_ns_) return Stage::kPoll;
    if (yields_left_ == 0) return Stage::kSleep;
    --yields_left_;
    return Stage::kYield;
  }
  // A Poll found something. Ends the wait, if there is one.
  void Came(int64_t now_ns) {
    if (!waiting_) return;
    waiting_ = false;
    if (probes_) Learn(now_ns - began_ns_);
  }
  // Ends the wait without an answer: nothing is waited for any more. Nothing is learned.
  void Cancel() { waiting_ = false; }

  bool waiting() const { return waiting_; }
  // How long the next wait polls, unless it is a probe.
  int64_t poll_ns() const { return poll_ns_; }

 private:
  // Part i holds the waits of up to poll_ns_max >> (kParts - 1 - i); the last one holds the longer
  // ones.
  static constexpr size_t kParts = 6;
  static constexpr uint32_t kRemembered = 32;  // after so many waits, older ones count half

  int64_t EndOf(size_t part) const { return options_.poll_ns_max >> (kParts - 1 - part); }

  void Begin(int64_t now_ns) {
    waiting_ = true;
    began_ns_ = now_ns;
    yields_left_ = options_.yields;
    probes_ = until_probe_ == 0;
    if (!probes_) --until_probe_;
    poll_until_ns_ = now_ns + (probes_ ? options_.poll_ns_max : poll_ns_);
  }

  void Learn(int64_t wait_ns) {
    size_t part = 0;
    while (part < kParts && wait_ns > EndOf(part)) ++part;
    ++waits_[part];
    if (++remembered_ >= kRemembered) Forget();
    poll_ns_ = BestPollNs();
    if (learned_ < kLearnFirst) {
      ++learned_;
    } else {
      until_probe_ = (poll_ns_ > 0 ? kProbeEvery : kProbeSeldom) - 1;
    }
  }

  void Forget() {
    remembered_ = 0;
    for (uint32_t& waits : waits_) remembered_ += waits /= 2;
  }

  // See 1. In units of waits times nanoseconds, so that nothing is divided.
  int64_t BestPollNs() const {
    int64_t best_ns = 0;
    int64_t best_saving = 0;
    int64_t came = 0;     // waits that ended within the part's time
    int64_t came_ns = 0;  // the time that these waited, taken as the ends of their parts
    for (size_t part = 0; part < kParts; ++part) {
      came += waits_[part];
      came_ns += waits_[part] * EndOf(part);
      const int64_t cost = came_ns + (int64_t{remembered_} - came) * EndOf(part);
      const int64_t saving = came * options_.poll_ns_max - cost;
      if (saving <= best_saving) continue;
      best_saving = saving;
      best_ns = EndOf(part);
    }
    return best_ns;
  }

  const Options options_;
  bool waiting_ = false;
  bool probes_ = false;  // this wait does
  uint32_t yields_left_ = 0;
  int64_t began_ns_ = 0;
  int64_t poll_until_ns_ = 0;
  int64_t poll_ns_ = 0;
  uint32_t until_probe_ = 0;  // waits
  uint32_t learned_ = 0;      // probes, up to kLearnFirst
  uint32_t remembered_ = 0;   // the sum of waits_
  std::array<uint32_t, kParts + 1> waits_{};
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_WAIT_STAGES_H_
