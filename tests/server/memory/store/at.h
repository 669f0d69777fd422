#ifndef GANNET_TESTS_SERVER_MEMORY_STORE_AT_H_
#define GANNET_TESTS_SERVER_MEMORY_STORE_AT_H_

#include <cstdint>

#include "common/base/server_time.h"

namespace gannet {

// A time by the clock of the server that is tested.
constexpr ServerTime At(uint64_t ms) { return ServerTime::FromMs(ms); }
// The expiry of an item that expires then; 0: never.
constexpr Expiry ExpiresAt(uint64_t ms) { return Expiry::FromMs(ms); }

// A clock that stands still unless it is set.
class SetClock final : public ServerTimeSource {
 public:
  explicit SetClock(uint64_t now_ms) : ms(now_ms) {}
  ServerTime Time() const override { return At(ms); }

  uint64_t ms;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_STORE_AT_H_
