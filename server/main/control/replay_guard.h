#ifndef GANNET_SERVER_MAIN_CONTROL_REPLAY_GUARD_H_
#define GANNET_SERVER_MAIN_CONTROL_REPLAY_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace gannet {

// Tells a connection request from a copy of it that somebody recorded and sends again. A request is
// accepted only while its time is within kWindowMs of this machine's clock, and each of its nonces
// is accepted once in that time.
//
// Nonces are kept in two sets. A new one goes into the younger set. Once that has been used for the
// time in which a request can be accepted, the older set is dropped and the younger one takes its
// place. So a nonce is remembered for at least that time, and at most twice as long.
//
// One owner thread.
class ReplayGuard {
 public:
  // How far the sender's clock may be from this machine's.
  static constexpr uint64_t kWindowMs = 60'000;
  // The size of each set. If a set is full, nothing is accepted until the sets change places, after
  // at most two minutes: it is better to refuse a client than to accept a copy. Both sets take 9
  // MiB if they are full.
  static constexpr size_t kNoncesMax = 1 << 17;

  enum class Verdict : uint8_t {
    kFresh,  // now it is remembered
    kRepeated,
    kOtherClock,   // its time differs by more than kWindowMs from this machine's
    kBeforeStart,  // made before this guard: an earlier run may have accepted it
    kFull,
  };

  // `start_ms`: the time at the start, in ms since the Unix epoch. Judge's times are of the same
  // clock.
  explicit ReplayGuard(uint64_t start_ms, size_t nonces_max = kNoncesMax)
      : start_ms_(start_ms), nonces_max_(nonces_max), now_ms_(start_ms), began_ms_(start_ms) {}

  // REQUIRES: the request is proven to come from somebody who has the key. Otherwise strangers
  // could fill the sets.
  Verdict Judge(uint32_t key_id, uint64_t nonce, uint64_t time_ms, uint64_t now_ms);

  // The time that the last request was compared with. It never goes back: if the clock was set
  // back, a copy would be within the window again.
  uint64_t now_ms() const { return now_ms_; }

 private:
  using Nonce = std::pair<uint64_t, uint32_t>;  // and the key's id

  void ForgetOld();

  uint64_t start_ms_;
  size_t nonces_max_;
  uint64_t now_ms_;
  uint64_t began_ms_;  // when the younger set was empty
  absl::flat_hash_set<Nonce> younger_;
  absl::flat_hash_set<Nonce> older_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_REPLAY_GUARD_H_
