#ifndef GANNET_COMMON_BASE_SERVER_TIME_H_
#define GANNET_COMMON_BASE_SERVER_TIME_H_

#include <compare>
#include <cstdint>

#include "common/base/data_path_checks.h"

namespace gannet {

class Expiry;

// A time by a server's clock (ServerClock, server/rpc/now.h), by which items expire. It neither is
// a time by another clock nor a number, unless somebody asks by name: else an item could expire
// when a machine's wall clock jumps, and clients would take it for alive still, or for gone.
class ServerTime {
 public:
  constexpr ServerTime() = default;  // none: earlier than all others, and no item is past then
  static constexpr ServerTime FromMs(uint64_t ms) { return ServerTime(ms); }

  // Since the Unix epoch: for bytes that others read.
  constexpr uint64_t ms() const { return ms_; }
  // Returns whether an item with this expiry has expired at this time.
  constexpr bool IsPast(Expiry expiry) const;

  friend constexpr auto operator<=>(ServerTime, ServerTime) = default;
  friend constexpr ServerTime operator+(ServerTime time, uint64_t ms) {
    return ServerTime(time.ms_ + ms);
  }
  // Returns how many milliseconds are between them. REQUIRES: begin <= end.
  friend constexpr uint64_t operator-(ServerTime end, ServerTime begin) {
    GANNET_CHECK_DATA_PATH(begin <= end, "a time between times in the wrong order");
    return end.ms_ - begin.ms_;
  }

 private:
  explicit constexpr ServerTime(uint64_t ms) : ms_(ms) {}

  uint64_t ms_ = 0;
};
static_assert(sizeof(ServerTime) == sizeof(uint64_t));

// When an item expires, by its server's clock, or that it never does. Since most items never do, an
// expiry is no time, and has no order: "never" would be the earliest, as it is 0 in bytes.
class Expiry {
 public:
  constexpr Expiry() = default;  // never
  // An item expires when the clock has come to this time, which is not ServerTime().
  static constexpr Expiry At(ServerTime time) { return Expiry(time.ms()); }
  // As bytes have it: since the Unix epoch; 0: never.
  static constexpr Expiry FromMs(uint64_t ms) { return Expiry(ms); }
  constexpr uint64_t ms() const { return ms_; }

  constexpr bool never() const { return ms_ == 0; }
  // REQUIRES: !never().
  constexpr ServerTime time() const {
    GANNET_CHECK_DATA_PATH(!never(), "an item that never expires has no such time");
    return ServerTime::FromMs(ms_);
  }

  friend constexpr bool operator==(Expiry, Expiry) = default;

 private:
  explicit constexpr Expiry(uint64_t ms) : ms_(ms) {}

  uint64_t ms_ = 0;
};
static_assert(sizeof(Expiry) == sizeof(uint64_t));

constexpr bool ServerTime::IsPast(Expiry expiry) const {
  return !expiry.never() && expiry.time() <= *this;
}

// Tells the time by a server's clock. Thread safe.
class ServerTimeSource {
 public:
  virtual ServerTime Time() const = 0;

 protected:
  ~ServerTimeSource() = default;
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_SERVER_TIME_H_
