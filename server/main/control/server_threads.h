#ifndef GANNET_SERVER_MAIN_CONTROL_SERVER_THREADS_H_
#define GANNET_SERVER_MAIN_CONTROL_SERVER_THREADS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/boot_time.h"
#include "common/base/wake_up.h"
#include "common/program/supervisor.h"
#include "server/main/control/disk_thread.h"
#include "server/main/control/server.h"
#include "server/main/control/worker_pulses.h"
#include "server/main/control/worker_wait.h"

namespace gannet {

// Runs a Server: a thread for each worker, and one for the connection manager. Each polls for a
// while after the last request unless cores are scarce, then sleeps until something arrives.
class ServerThreads {
 public:
  struct Options {
    int64_t busy_poll_ns = 100'000;
    // Is told when the server stops, and, while none of its threads hangs, that it is alive. Must
    // outlive the threads. nullptr: nobody is told.
    const Supervisor* supervisor = nullptr;
    // How long a member of a group that is asked to stop waits until others have what it has. A
    // hand-over that has begun by then gets more time.
    int64_t stop_wait_ns = 0;
  };

  // Starts to serve. ResourceExhausted: no file descriptor.
  static absl::StatusOr<std::unique_ptr<ServerThreads>> Start(std::unique_ptr<Server> server,
                                                              const Options& options);
  // Stops the server, and waits until it has stopped.
  ~ServerThreads();

  // Starts to stop. Wait then returns. From any thread, a signal handler included.
  void RequestStop();
  // Waits until the server begins to stop, but no longer than this. Returns whether it does.
  bool AwaitStop(int64_t ns_max) const;
  // Makes the server read the auth file again. From any thread, a signal handler included.
  void RequestReload() { server_->RequestReload(); }
  // Waits until the server has stopped. Returns OK if it was asked to, and otherwise the reason.
  absl::Status Wait();

  const Server& server() const { return *server_; }
  Now now() const { return clock_.Read(); }

 private:
  ServerThreads(std::unique_ptr<Server> server, const Options& options,
                std::unique_ptr<WakeUp> stop)
      : server_(std::move(server)),
        options_(options),
        clock_(ServerClock::Start(server_->clocks())),
        beat_ns_(options.supervisor == nullptr ? 0 : options.supervisor->beat_ns()),
        stop_(std::move(stop)),
        pulses_(server_->workers().size()) {}

  void RunControl();
  void RunMember();
  void RunWorker(Worker* worker);
  // Returns false if the device lost the queue.
  bool SleepWorker(Worker* worker, WorkerWait* wait);
  // Logs a Poll that took longer than others should have to wait.
  void NoteSlowPoll(const Worker* worker, BootTime began, BootTime ended);
  // Returns true if a stop was requested.
  bool SleepControl(bool stopping);
  // Lets a primary hand over, and a backup leave those in sync, before the server stops.
  void LeaveGroup();
  // Returns what ends with this process, as others have not taken over what it has; "": nothing.
  std::string LastWords(bool has_waited) const;
  // Tells the supervisor that the server is alive, if that is due and no worker hangs.
  void Beat(BootTime now);

  const std::unique_ptr<Server> server_;
  const Options options_;
  ServerClock clock_;
  const int64_t beat_ns_;  // the supervisor's; 0: nobody watches, and no turns are noted
  // Wakes the control thread, which then begins to stop. Nobody takes it.
  const std::unique_ptr<WakeUp> stop_;
  WorkerPulses pulses_;
  BootTime next_beat_;  // the control thread's
  // The number of workers that still run. A worker decrements it last, with release. The control
  // thread loads it with acquire before it takes the worker's state for final.
  std::atomic<size_t> running_{0};
  std::atomic<bool> worker_failed_{false};
  absl::Status status_;  // the control thread's, until it is joined
  LogLimit slow_polls_{1, ServerLog::kNsPerMinute};
  std::vector<std::thread> workers_;
  std::thread control_;
  std::thread member_;  // of a server that is in a group
  std::atomic<bool> member_stops_{false};
  std::atomic<bool> asked_to_stop_{false};  // relaxed: read after the control thread was joined
  std::unique_ptr<DiskThread> disk_;        // nullptr: the server has no disk
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_SERVER_THREADS_H_
