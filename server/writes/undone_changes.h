#ifndef GANNET_SERVER_WRITES_UNDONE_CHANGES_H_
#define GANNET_SERVER_WRITES_UNDONE_CHANGES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>

#include "common/base/mutex.h"
#include "common/protocol/message.h"

namespace gannet {

// The waiting changes that were undone, by their tickets, until each is asked for. Mostly there are
// none, which costs no lock.
//
// Thread safety: any thread.
class UndoneChanges {
 public:
  // What becomes of the answer to a change that was undone.
  struct Undone {
    uint64_t ticket;  // what it waits for instead
    ReplyStatus status;
  };

  void Add(uint64_t ticket, const Undone& undone) {
    MutexLock lock(mutex_);
    changes_[ticket] = undone;
    any_.store(true, std::memory_order_relaxed);
  }
  bool Contains(uint64_t ticket) const {
    MutexLock lock(mutex_);
    return changes_.contains(ticket);
  }
  // Returns nullopt if the change of this ticket was not undone. Ask once.
  std::optional<Undone> Take(uint64_t ticket) {
    if (!any_.load(std::memory_order_relaxed)) [[likely]]
      return std::nullopt;
    return Find(ticket);
  }

 private:
  std::optional<Undone> Find(uint64_t ticket) {
    MutexLock lock(mutex_);
    const auto it = changes_.find(ticket);
    if (it == changes_.end()) return std::nullopt;
    const Undone undone = it->second;
    changes_.erase(it);
    any_.store(!changes_.empty(), std::memory_order_relaxed);
    return undone;
  }

  mutable Mutex mutex_;
  std::map<uint64_t, Undone> changes_ GANNET_GUARDED_BY(mutex_);
  // Relaxed: written before WaitingChanges::published, and asked after it.
  std::atomic<bool> any_{false};
};

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_UNDONE_CHANGES_H_
