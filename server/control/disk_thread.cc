#include "server/control/disk_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<DiskThread>> DiskThread::Start(DiskLog* log) {
  const int stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (stop_fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot create an eventfd: ", std::strerror(errno)));
  }
  std::unique_ptr<DiskThread> thread(new DiskThread(log, stop_fd));
  thread->thread_ = std::thread([raw = thread.get()] { raw->Run(); });
  return thread;
}

DiskThread::~DiskThread() {
  Stop().IgnoreError();
  close(stop_fd_);
}

absl::Status DiskThread::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(stop_fd_, &one, sizeof(one));
    thread_.join();
  }
  return status_;
}

void DiskThread::Run() {
  pthread_setname_np(pthread_self(), "kv-disk");
  pollfd stop{stop_fd_, POLLIN, 0};
  do {
    log_->Poll(MonotonicNs());
    const int64_t left_ns = std::max<int64_t>(log_->due_ns() - MonotonicNs(), 0);
    const timespec timeout{left_ns / kNsPerSecond, left_ns % kNsPerSecond};
    ppoll(&stop, 1, &timeout, nullptr);
  } while (stop.revents == 0);
  status_ = log_->Close(MonotonicNs());
}

}  // namespace gannet
