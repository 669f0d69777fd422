#ifndef GANNET_TESTS_SERVER_WRITES_SOME_UPDATE_H_
#define GANNET_TESTS_SERVER_WRITES_SOME_UPDATE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/writes/update.h"

namespace gannet {

// Does what a worker does first with a put of no conditions and no expiry. Returns nullopt if that
// has to take the general path.
inline std::optional<Writes::Decided> TryUpdate(Store& store, Writes& writes, std::string_view key,
                                                std::string_view value, uint32_t flags = 0,
                                                const ChangeOrigin& origin = {}) {
  Store::Guess guess;
  store.GuessBucket(key, &guess);
  store.GuessItem(&guess);
  Writes::UpdateDecided decided;
  const auto its_flags = [flags] { return flags; };
  bool done = false;
  if (writes.BeginUpdates()) {
    done = writes.UpdateInLane(guess, key, value, its_flags, origin.session_token, origin.sequence,
                               &decided);
    writes.EndUpdates();
  } else {
    done = writes.Update(guess, key, value, its_flags, origin, &decided);
  }
  if (!done) return std::nullopt;
  return Writes::Decided{{.version = decided.version, .slot = decided.slot}, decided.ticket};
}

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_WRITES_SOME_UPDATE_H_
