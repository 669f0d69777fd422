#ifndef GANNET_PROXY_WALK_WALK_THREAD_H_
#define GANNET_PROXY_WALK_WALK_THREAD_H_

#include <gannet/walker.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/base/mutex.h"
#include "proxy/jobs/job.h"
#include "proxy/jobs/walks.h"

namespace gannet::proxy {

// Walks through servers' keys by READs, for SCAN and KEYS. Its thread and its connections to the
// servers begin with the first walk. Connections that are not used for a while end.
class WalkThread final : public Walks {
 public:
  WalkThread(std::vector<std::string> servers, gannet::Options options)
      : servers_(std::move(servers)), options_(std::move(options)) {}
  // The walks that wait end with an error.
  ~WalkThread() override;

  void Begin(Operation* walk, WalkInbox* inbox) override;

 private:
  struct Asked {
    Operation* walk;
    WalkInbox* inbox;
  };
  struct Connected {
    std::unique_ptr<Walker> walker;
    uint32_t idle_turns = 0;
  };

  void Run();
  // Waits for a walk. Returns nothing now and then, so that connections can be kept alive.
  std::optional<Asked> Next();
  void Do(Operation& walk);
  absl::Status Walk(Operation& walk);
  absl::StatusOr<Walker*> WalkerOf(uint32_t server);
  void KeepAlive();

  const std::vector<std::string> servers_;
  const gannet::Options options_;
  std::unordered_map<uint32_t, Connected> walkers_;  // of the thread
  Mutex mutex_;
  std::condition_variable wakes_;
  std::deque<Asked> asked_ GANNET_GUARDED_BY(mutex_);
  bool stopping_ GANNET_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_WALK_WALK_THREAD_H_
