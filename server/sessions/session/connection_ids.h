#ifndef GANNET_SERVER_SESSIONS_SESSION_CONNECTION_IDS_H_
#define GANNET_SERVER_SESSIONS_SESSION_CONNECTION_IDS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "common/protocol/connection_epoch.h"

namespace gannet {

// Hands out connection ids. Lock words name their holder by them. Knows which ids are alive and who
// holds them. An id that a client was told is never given again: a lock word of a dead connection
// must never look like one of a living connection.
//
// An id is alive from before its client hears of it until its queue pair is in the error state and
// flushed. Only after that may its locks be broken. Thread safe.
class ConnectionIds {
 public:
  // The connection that may hold locks under an id.
  struct Holder {
    uint32_t session_id = 0;
    std::array<char, 40> peer{};  // address and port, NUL padded
  };

  // `first` is for tests of the end of the range.
  explicit ConnectionIds(uint32_t first = 1) : next_(first) {}

  // From now on ids are those of a primary's epoch (connection_epoch.h).
  void BeginEpoch(uint64_t epoch) {
    MutexLock lock(mutex_);
    next_ = std::max<uint64_t>(FirstConnectionOf(epoch), next_);
    given_back_.clear();
  }
  // Returns nullopt if all 2^32 - 1 ids are used up. Then only a restart of the server helps.
  std::optional<uint32_t> Take();
  // Records the connection that has the id. Before that, its holder is empty. Cuts the peer's
  // address to fit.
  void Describe(uint32_t id, uint32_t session_id, std::string_view peer);
  void Retire(uint32_t id);
  // Takes back an id that nobody was told of, so that it may be given again.
  void GiveBack(uint32_t id);
  bool Alive(uint32_t id) const;
  // Returns nullopt if the id is not alive.
  std::optional<Holder> HolderOf(uint32_t id) const;
  size_t alive() const;

 private:
  mutable Mutex mutex_;
  uint64_t next_ GANNET_GUARDED_BY(mutex_);
  // At most as many as there were connection requests at once.
  std::vector<uint32_t> given_back_ GANNET_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, Holder> alive_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_CONNECTION_IDS_H_
