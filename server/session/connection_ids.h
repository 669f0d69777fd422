#ifndef GANNET_SERVER_SESSION_CONNECTION_IDS_H_
#define GANNET_SERVER_SESSION_CONNECTION_IDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "common/base/mutex.h"

namespace gannet {

// Hands out the ids by which lock words name their holder, and knows which are alive. An id is
// never given twice: a lock word of a dead connection must never look like one of a living one.
//
// An id is alive from before its client hears of it until its queue pair is in the error state and
// flushed; only then may its locks be broken. Thread safe.
class ConnectionIds {
 public:
  // `first`: for tests of the end of the range.
  explicit ConnectionIds(uint32_t first = 1) : next_(first) {}

  // nullopt: all 2^32 - 1 ids are used up; only a restart of the server helps.
  std::optional<uint32_t> Take();
  void Retire(uint32_t id);
  bool Alive(uint32_t id) const;
  size_t alive() const;

 private:
  mutable Mutex mutex_;
  uint64_t next_ GANNET_GUARDED_BY(mutex_);
  absl::flat_hash_set<uint32_t> alive_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSION_CONNECTION_IDS_H_
