#ifndef GANNET_SERVER_CONTROL_DISK_THREAD_H_
#define GANNET_SERVER_CONTROL_DISK_THREAD_H_

#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/disk/disk_log.h"

namespace gannet {

// The thread that polls a DiskLog.
class DiskThread {
 public:
  // ResourceExhausted: no file descriptor. `log` outlives the thread.
  static absl::StatusOr<std::unique_ptr<DiskThread>> Start(DiskLog* log);
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // Ends the thread when everything is written and synced, or failed. Returns which. REQUIRES:
  // nothing is recorded any more.
  absl::Status Stop();

 private:
  DiskThread(DiskLog* log, int stop_fd) : log_(log), stop_fd_(stop_fd) {}
  void Run();

  DiskLog* const log_;
  const int stop_fd_;    // an eventfd; readable once it is to stop
  absl::Status status_;  // the thread's until it is joined
  std::thread thread_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CONTROL_DISK_THREAD_H_
