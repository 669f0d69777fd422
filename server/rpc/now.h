#ifndef GANNET_SERVER_RPC_NOW_H_
#define GANNET_SERVER_RPC_NOW_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/base/server_time.h"

namespace gannet {

// The time of one Poll. The main loop or a simulation provides it.
struct Now {
  BootTime boot;
  ServerTime server_time;
};

// The server's clock, by which items expire: the wall clock when it was started, plus the time
// since. It does not jump if somebody steps the wall clock (ntpd, an operator, a migrated
// virtual machine), so no item expires early or late. In a group a backup's follows that of its
// primary, and goes on from there when the backup is primary itself. If it is ahead of what this
// server's own clock would be, as a takeover may put it ahead, it goes slower until it is not.
//
// Thread safe.
class ServerClock final : public ServerTimeSource {
 public:
  // It goes slower by 1/8192. Clients allow 1/512 between the server's clock and theirs
  // (ServerTimeBound), and bad crystals that are slewed may take 15/16 of that.
  static constexpr int kSlewShift = 13;

  static ServerClock Start(const Clocks& clocks) { return ServerClock(clocks); }

  // Where the clock of a server begins that was started at this time and follows nobody. It is the
  // only way from a machine's wall clock to the clock by which items expire: from then on it goes
  // by CLOCK_BOOTTIME.
  static ServerTime BeginsAt(WallTime started) { return ServerTime::FromMs(started.ms()); }

  // Call it only in main loops: everybody else gets a Now. The store reads Time again for an item
  // that is about to expire.
  Now Read() const {
    const BootTime now = boot_.Now();
    // Acquire: whoever sees that the clock goes on sees from where.
    const uint64_t followed_ms = followed_ms_.load(std::memory_order_acquire);
    if (followed_ms != 0) return {now, ServerTime::FromMs(followed_ms)};
    const uint64_t at_start_ms = at_start_ms_.load(std::memory_order_relaxed);
    const int64_t since_ns = now - started_at_ - SlewedNs(now);
    return {now, ServerTime::FromMs(at_start_ms) + static_cast<uint64_t>(since_ns / kNsPerMs)};
  }

  ServerTime Time() const override { return Read().server_time; }

  // From now on the clock stands still at this time.
  void Follow(ServerTime time) { followed_ms_.store(time.ms(), std::memory_order_relaxed); }
  // From now on the clock goes on from this time. REQUIRES: it follows, or nobody reads it.
  void GoOnFrom(ServerTime time) {
    const uint64_t ms = time.ms();
    const BootTime now = boot_.Now();
    const auto since_ms = static_cast<uint64_t>((now - started_at_) / kNsPerMs);
    const auto ahead_ms = static_cast<int64_t>(ms - (own_at_start_ms_ + since_ms));
    at_start_ms_.store(ms - since_ms, std::memory_order_relaxed);
    slewed_from_.store(now, std::memory_order_relaxed);
    ahead_ns_.store(std::clamp<int64_t>(ahead_ms, 0, kAheadMsMax) * kNsPerMs,
                    std::memory_order_relaxed);
    followed_ms_.store(0, std::memory_order_release);
  }

 private:
  static constexpr int64_t kAheadMsMax = INT64_MAX / kNsPerMs;  // a primary may say anything

  explicit ServerClock(const Clocks& clocks)
      : boot_(clocks.boot),
        started_at_(boot_.Now()),
        own_at_start_ms_(BeginsAt(clocks.wall.Now()).ms()),
        at_start_ms_(own_at_start_ms_) {}

  // Returns how much the clock has lost on purpose.
  int64_t SlewedNs(BootTime now) const {
    const int64_t ahead_ns = ahead_ns_.load(std::memory_order_relaxed);
    if (ahead_ns == 0) [[likely]]
      return 0;
    const int64_t since_ns = now - slewed_from_.load(std::memory_order_relaxed);
    return std::clamp<int64_t>(since_ns >> kSlewShift, 0, ahead_ns);
  }

  const BootClock boot_;
  const BootTime started_at_;
  const uint64_t own_at_start_ms_;     // the wall clock when it was started
  std::atomic<uint64_t> at_start_ms_;  // this clock then
  std::atomic<BootTime> slewed_from_{};
  std::atomic<int64_t> ahead_ns_{0};      // that it loses from then on
  std::atomic<uint64_t> followed_ms_{0};  // 0: it goes on by itself
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_NOW_H_
