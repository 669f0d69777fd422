#ifndef GANNET_SERVER_RPC_CLIENT_BOARD_H_
#define GANNET_SERVER_RPC_CLIENT_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/boot_time.h"
#include "common/base/mutex.h"
#include "common/protocol/list_entries.h"

namespace gannet {

// Where the workers show their connections to whoever wants to see them. Each worker replaces its
// entries a few times within the time of silence. So nobody has to ask a worker, and wait. Thread
// safe.
class ClientBoard {
 public:
  explicit ClientBoard(size_t workers) : sheets_(workers) {}

  void Publish(uint32_t worker, std::vector<ClientEntry> entries, BootTime now) {
    MutexLock lock(mutex_);
    sheets_[worker] = {std::move(entries), now};
  }
  // Returns the entries of all workers.
  std::vector<ClientEntry> All() const {
    std::vector<ClientEntry> all;
    MutexLock lock(mutex_);
    for (const Sheet& sheet : sheets_) {
      all.insert(all.end(), sheet.entries.begin(), sheet.entries.end());
    }
    return all;
  }
  // Returns whether a worker that has connections published nothing since `then`: it hangs.
  bool AnyOlderThan(BootTime then) const {
    MutexLock lock(mutex_);
    for (const Sheet& sheet : sheets_) {
      if (!sheet.entries.empty() && sheet.published_at < then) return true;
    }
    return false;
  }

 private:
  struct Sheet {
    std::vector<ClientEntry> entries;
    BootTime published_at;
  };

  mutable Mutex mutex_;
  std::vector<Sheet> sheets_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_CLIENT_BOARD_H_
