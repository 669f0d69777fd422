#ifndef GANNET_SERVER_MAIN_CONTROL_DISK_THREAD_H_
#define GANNET_SERVER_MAIN_CONTROL_DISK_THREAD_H_

#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/wake_up.h"
#include "server/main/control/server_workers.h"
#include "server/main/disk/disk_log.h"

namespace gannet {

// The thread that polls a DiskLog. Beside it, if the log needs one, a thread that writes what is
// recorded to the system, so that this waits for no sync.
class DiskThread {
 public:
  // Wakes `workers` when writes that wait may be published; null: nobody waits. `wanted` asks it to
  // Poll at once. ResourceExhausted: no file descriptor. All outlive the thread.
  static absl::StatusOr<std::unique_ptr<DiskThread>> Start(DiskLog* log, WakeUp* wanted,
                                                           const ServerWorkers* workers);
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // Ends the thread when everything is written and synced, or writing failed. Returns which of
  // both. REQUIRES: nothing is recorded any more.
  absl::Status Stop();

 private:
  DiskThread(DiskLog* log, WakeUp* wanted, const ServerWorkers* workers,
             std::unique_ptr<WakeUp> stop)
      : log_(log), wanted_(wanted), workers_(workers), stop_(std::move(stop)) {}
  void Run();
  void Write();
  void Poll();

  DiskLog* const log_;
  WakeUp* const wanted_;
  const ServerWorkers* const workers_;
  const std::unique_ptr<WakeUp> stop_;  // both threads; nobody takes it
  absl::Status status_;                 // of the thread, until it is joined
  std::thread thread_;
  std::thread writer_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_DISK_THREAD_H_
