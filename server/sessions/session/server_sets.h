#ifndef GANNET_SERVER_SESSIONS_SESSION_SERVER_SETS_H_
#define GANNET_SERVER_SESSIONS_SESSION_SERVER_SETS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"

namespace gannet {

// The list of servers that each connected session has, as a hash that its client told. A client
// spreads keys over the servers of its own list, so clients with different lists look for the same
// key at different servers. Thread safe.
class ServerSets {
 public:
  // Records the latest hash of this session, whose client is at `peer`. REQUIRES: set != 0.
  void Tell(uint32_t session_id, uint64_t set, std::string peer);
  // Forgets a session that has no connection any more.
  void Forget(uint32_t session_id);

  // Returns the addresses of two clients whose lists differ, if there are any.
  std::optional<std::pair<std::string, std::string>> Different() const;

 private:
  struct Told {
    uint64_t set;
    std::string peer;
  };

  mutable Mutex mutex_;
  absl::flat_hash_map<uint32_t, Told> told_ GANNET_GUARDED_BY(mutex_);  // by session
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_SERVER_SETS_H_
