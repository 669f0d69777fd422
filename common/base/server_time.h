#ifndef GANNET_COMMON_BASE_SERVER_TIME_H_
#define GANNET_COMMON_BASE_SERVER_TIME_H_

#include <compare>
#include <cstdint>

namespace gannet {

// A time by a server's clock (ServerClock, server/rpc/now.h), by which items expire. It neither is
// a time by another clock nor a number, unless somebody asks by name: else an item could expire
// when a machine's wall clock jumps, and clients would take it for alive still, or for gone.
class ServerTime {
 public:
  constexpr ServerTime() = default;  // none: earlier than all others, and no item is past then
  static constexpr ServerTime FromMs(uint64_t ms) { return ServerTime(ms); }

  // Since the Unix epoch: for bytes that others read, and for an item's expiry.
  constexpr uint64_t ms() const { return ms_; }
  // Returns whether an item with this expiry has expired at this time. 0: it never does.
  constexpr bool IsPast(uint64_t expiry_ms) const { return expiry_ms != 0 && expiry_ms <= ms_; }

  friend constexpr auto operator<=>(ServerTime, ServerTime) = default;
  friend constexpr ServerTime operator+(ServerTime time, uint64_t ms) {
    return ServerTime(time.ms_ + ms);
  }

 private:
  explicit constexpr ServerTime(uint64_t ms) : ms_(ms) {}

  uint64_t ms_ = 0;
};
static_assert(sizeof(ServerTime) == sizeof(uint64_t));

// Tells the time by a server's clock. Thread safe.
class ServerTimeSource {
 public:
  virtual ServerTime Time() const = 0;

 protected:
  ~ServerTimeSource() = default;
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_SERVER_TIME_H_
