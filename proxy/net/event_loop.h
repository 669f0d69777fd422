#ifndef GANNET_PROXY_NET_EVENT_LOOP_H_
#define GANNET_PROXY_NET_EVENT_LOOP_H_

#include <gannet/async_client.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/wake_up.h"
#include "proxy/jobs/counters.h"
#include "proxy/jobs/loop_status.h"
#include "proxy/net/application_connection.h"
#include "proxy/net/application_listener.h"

namespace gannet::proxy {

// One thread of the proxy. It accepts connections, and serves them with a client of its own.
class EventLoop {
 public:
  struct Options {
    std::vector<const ApplicationListener*> listeners;  // shared with the other threads
    Protocol protocol = Protocol::kAuto;
    uint64_t connections_max = 0;
    const Service* service = nullptr;
    Counters* counters = nullptr;
    std::atomic<uint64_t>* next_id = nullptr;
    Walks* walks = nullptr;
    MemoryLimit* memory = nullptr;  // of all threads
    bool is_watched = false;        // somebody reads status().servers()
  };
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(std::unique_ptr<AsyncClient> client,
                                                           const Options& options);
  ~EventLoop();

  // Serves until Stop. It goes around at least once a second.
  void Run();
  // From any thread.
  void Stop();
  uint64_t rounds() const { return rounds_.Get(); }
  const LoopStatus& status() const { return status_; }

 private:
  EventLoop(std::unique_ptr<AsyncClient> client, const Options& options,
            std::unique_ptr<WalkInbox> walks, std::unique_ptr<WakeUp> stop);
  // Publishes the state of this thread.
  void Publish();
  void PollStore();
  void TakeFinished();
  void AdvanceDirty();
  void MarkDirty(ApplicationConnection* connection);
  void Sleep();
  void Close(ApplicationConnection* connection);
  // Gives memory to connections that want some to read, or to begin a command.
  void FeedHungry();
  // If somebody has waited for memory too long, closes the connections that hold some and do
  // nothing. If there are none, closes the one that holds the most, unless only that one waits.
  void WatchShortage();
  bool CloseIdle();
  void CloseLargest();
  void CloseForMemory(ApplicationConnection* connection, const char* which);
  void Accept(const ApplicationListener& listener);
  bool HasRoom() const;
  void WatchListeners();
  // There is no descriptor for a connection.
  void PauseAccepting(int error);

  const Options options_;
  const std::unique_ptr<AsyncClient> client_;
  const std::unique_ptr<WalkInbox> walk_inbox_;
  const std::unique_ptr<WakeUp> stop_;  // wakes the thread to stop; nobody takes it
  Memory memory_;
  Holder orphans_;  // of jobs whose connection is closed
  StoreQueue store_;
  JobPool pool_;
  int epoll_ = -1;
  std::vector<Job*> finished_;
  std::vector<ApplicationConnection*> dirty_;
  absl::flat_hash_map<ApplicationConnection*, std::unique_ptr<ApplicationConnection>> connections_;
  std::deque<ApplicationConnection*> hungry_;  // in the order in which they want memory
  uint64_t grants_ = 0;                        // how often those who waited for memory got some
  uint64_t grants_seen_ = 0;
  bool is_short_ = false;           // somebody waits for memory
  int64_t now_ms_ = 0;              // at the last sleep
  int64_t no_accept_until_ms_ = 0;  // 0: it accepts connections
  int64_t no_accept_told_ms_ = 0;
  Count rounds_;
  LoopStatus status_;
  int64_t servers_told_ms_ = 0;  // when status_ was told of the servers
  // Relaxed: stop_ wakes the thread, and nothing else depends on it.
  std::atomic<bool> stopping_{false};
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_NET_EVENT_LOOP_H_
