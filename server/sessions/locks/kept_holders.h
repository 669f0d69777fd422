#ifndef GANNET_SERVER_SESSIONS_LOCKS_KEPT_HOLDERS_H_
#define GANNET_SERVER_SESSIONS_LOCKS_KEPT_HOLDERS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/boot_time.h"

namespace gannet {

// The holders of locks whose sessions have no first connection now (docs/rails.md#locks). Lock
// words name a holder by the id of a connection. If that breaks, and the session keeps its locks,
// the id stays alive (ConnectionIds) for the session's next connection, or until the time is over.
//
// The owner retires each id that it takes from here, unless a connection goes on with it. Owner
// thread only.
class KeptHolders {
 public:
  // REQUIRES: the session has none here.
  void Keep(uint64_t session_token, uint32_t holder, BootTime until) {
    kept_[session_token] = {holder, until};
  }
  // Returns the session's holder, which is here no longer; 0: it has none.
  uint32_t Take(uint64_t session_token) {
    const auto it = kept_.find(session_token);
    if (it == kept_.end()) return 0;
    const uint32_t holder = it->second.holder;
    kept_.erase(it);
    return holder;
  }
  // Returns those whose time is over, which are here no longer. BootTime::Never(): all.
  std::vector<uint32_t> TakeOver(BootTime now) {
    std::vector<uint32_t> over;
    absl::erase_if(kept_, [&](const auto& entry) {
      if (entry.second.until > now) return false;
      over.push_back(entry.second.holder);
      return true;
    });
    return over;
  }
  // When TakeOver has some.
  BootTime next() const {
    BootTime next = BootTime::Never();
    for (const auto& [token, kept] : kept_) next = std::min(next, kept.until);
    return next;
  }

 private:
  struct Kept {
    uint32_t holder;
    BootTime until;
  };
  absl::flat_hash_map<uint64_t, Kept> kept_;  // by the session's token
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_KEPT_HOLDERS_H_
