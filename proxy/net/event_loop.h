#ifndef GANNET_PROXY_NET_EVENT_LOOP_H_
#define GANNET_PROXY_NET_EVENT_LOOP_H_

#include <gannet/async_client.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "proxy/jobs/counters.h"
#include "proxy/net/connection.h"
#include "proxy/net/listener.h"

namespace gannet::proxy {

// One thread of the proxy: accepts connections, and serves them with a client of its own.
class EventLoop {
 public:
  struct Options {
    std::vector<const Listener*> listeners;  // shared with the other threads
    Protocol protocol = Protocol::kAuto;
    uint64_t connections_max = 0;
    const Service* service = nullptr;
    Counters* counters = nullptr;
    std::atomic<uint64_t>* next_id = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(std::unique_ptr<AsyncClient> client,
                                                           const Options& options);
  ~EventLoop();

  // Serves until Stop. It goes around at least once a second.
  void Run();
  // From any thread.
  void Stop();
  uint64_t rounds() const { return rounds_.Get(); }

 private:
  EventLoop(std::unique_ptr<AsyncClient> client, const Options& options);
  void PollStore();
  void AdvanceDirty();
  void MarkDirty(Connection* connection);
  void Sleep();
  void Accept(const Listener& listener);
  bool HasRoom() const;

  const Options options_;
  const std::unique_ptr<AsyncClient> client_;
  StoreQueue store_;
  JobPool pool_;
  int epoll_ = -1;
  int stop_fd_ = -1;
  std::vector<Job*> finished_;
  std::vector<Connection*> dirty_;
  absl::flat_hash_map<Connection*, std::unique_ptr<Connection>> connections_;
  Count rounds_;
  // Relaxed: stop_fd_ wakes the thread, and nothing else depends on it.
  std::atomic<bool> stopping_{false};
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_NET_EVENT_LOOP_H_
