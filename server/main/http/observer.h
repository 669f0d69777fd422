#ifndef GANNET_SERVER_MAIN_HTTP_OBSERVER_H_
#define GANNET_SERVER_MAIN_HTTP_OBSERVER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "common/base/boot_time.h"
#include "common/base/mutex.h"
#include "server/main/control/server_threads.h"
#include "server/main/http/server_view.h"

namespace gannet {

// Looks at a running server. It reads counters, what the workers publish, and the lock words, so no
// thread does work for it. The server does not see locks being taken. So a thread looks at the lock
// words each second, whether anybody asks or not. Thread safe.
class Observer {
 public:
  struct Options {
    std::string version;
    std::string address;
    // Of a member of a group.
    std::string cluster = {};
    std::string group = {};
    // A worker hangs if it has connections and has published nothing for this long.
    int64_t hangs_ns = 0;
  };
  // `threads` outlives it.
  Observer(const ServerThreads* threads, Options options);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Returns a view that is at most kAgeNsMax old.
  ServerView Look();
  // Returns whether no worker hangs.
  bool Healthy() const;
  // Returns why the disk takes no write now, or why this member of a group neither serves nor may
  // take over. Empty: it is ready.
  std::string WhyNotReady() const;
  // Returns what fails of a server that serves all the same: the disk behind the memory. Empty:
  // nothing does.
  std::string WhatFails() const;

  static constexpr int64_t kAgeNsMax = 250 * kNsPerMs;
  // The time within which a lock is seen after it was taken, if the machine lets the thread run.
  static constexpr std::chrono::seconds kLocksEvery{1};

 private:
  struct Seen {
    uint64_t word = 0;
    BootTime since;
  };

  void WatchLocks();
  ServerView Take(const Now& now) GANNET_REQUIRES(mutex_);
  void LookAtLocks(BootTime now, ServerView* view) GANNET_REQUIRES(mutex_);

  const ServerThreads& threads_;
  const Options options_;
  Mutex mutex_;
  ServerView last_ GANNET_GUARDED_BY(mutex_);
  BootTime taken_at_ GANNET_GUARDED_BY(mutex_);  // BootTime(): none yet
  absl::flat_hash_map<uint32_t, Seen> locks_seen_ GANNET_GUARDED_BY(mutex_);  // by index
  std::mutex stop_mutex_;
  std::condition_variable stop_wanted_;
  bool stopping_ = false;  // under stop_mutex_
  std::thread watcher_;    // the last member: it uses the others
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_HTTP_OBSERVER_H_
