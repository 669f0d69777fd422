#ifndef GANNET_SERVER_SESSION_CONNECTION_IDS_H_
#define GANNET_SERVER_SESSION_CONNECTION_IDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"

namespace gannet {

// Hands out the ids by which lock words name their holder, and knows which are alive and whose they
// are. An id that a client was told is never given again: a lock word of a dead connection must
// never look like one of a living one.
//
// An id is alive from before its client hears of it until its queue pair is in the error state and
// flushed; only then may its locks be broken. Thread safe.
class ConnectionIds {
 public:
  // Who may hold locks under an id.
  struct Holder {
    uint32_t session_id = 0;
    std::array<char, 40> peer{};  // address and port, NUL padded
  };

  // `first`: for tests of the end of the range.
  explicit ConnectionIds(uint32_t first = 1) : next_(first) {}

  // nullopt: all 2^32 - 1 ids are used up; only a restart of the server helps.
  std::optional<uint32_t> Take();
  // A connection has the id now; until then its holder is empty. The peer's address is cut to fit.
  void Describe(uint32_t id, uint32_t session_id, std::string_view peer);
  void Retire(uint32_t id);
  // Nobody was told of the id: it may be taken again.
  void GiveBack(uint32_t id);
  bool Alive(uint32_t id) const;
  // nullopt: it is not alive.
  std::optional<Holder> HolderOf(uint32_t id) const;
  size_t alive() const;

 private:
  mutable Mutex mutex_;
  uint64_t next_ GANNET_GUARDED_BY(mutex_);
  // At most as many as connection requests waited at once.
  std::vector<uint32_t> given_back_ GANNET_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, Holder> alive_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSION_CONNECTION_IDS_H_
