#ifndef GANNET_TESTS_SERVER_WRITES_SOME_UPDATE_H_
#define GANNET_TESTS_SERVER_WRITES_SOME_UPDATE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/writes/update.h"

namespace gannet {

// Does what a worker does with a put of no conditions and no expiry in a lane. Returns nullopt if
// it has to go on otherwise.
inline std::optional<Writes::Decided> TryUpdateInLane(Store& store, Writes& writes,
                                                      std::string_view key, std::string_view value,
                                                      uint32_t flags = 0,
                                                      const Writes::UpdateOrigin& origin = {},
                                                      bool alone = false) {
  Store::Guess guess;
  store.GuessBucket(key, &guess);
  store.GuessItem(&guess);
  Writes::UpdateDecided decided;
  const auto its_flags = [flags] { return flags; };
  bool done = false;
  if (alone) {
    done = writes.Update(guess, key, value, its_flags, origin, &decided);
  } else if (writes.BeginUpdates()) {
    done = writes.UpdateInLane(guess, key, value, its_flags, origin, &decided);
    writes.EndUpdates();
  }
  if (!done) return std::nullopt;
  return Writes::Decided{{.version = decided.version, .slot = decided.slot}, decided.ticket};
}

// The same, and then what it does if that cannot be in a lane of many. Returns nullopt if the put
// has to take the general path.
inline std::optional<Writes::Decided> TryUpdate(Store& store, Writes& writes, std::string_view key,
                                                std::string_view value, uint32_t flags = 0,
                                                const Writes::UpdateOrigin& origin = {}) {
  const auto decided = TryUpdateInLane(store, writes, key, value, flags, origin);
  if (decided) return decided;
  return TryUpdateInLane(store, writes, key, value, flags, origin, /*alone=*/true);
}

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_WRITES_SOME_UPDATE_H_
