#include "server/control/disk_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/short_turns.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<DiskThread>> DiskThread::Start(DiskLog* log, WakeUp* wanted,
                                                              std::function<void()> on_safe) {
  const int stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (stop_fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot create an eventfd: ", std::strerror(errno)));
  }
  std::unique_ptr<DiskThread> thread(new DiskThread(log, wanted, std::move(on_safe), stop_fd));
  thread->thread_ = std::thread([raw = thread.get()] { raw->Run(); });
  if (log->needs_writer()) thread->writer_ = std::thread([raw = thread.get()] { raw->Write(); });
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
    if (writer_.joinable()) writer_.join();
  }
  return status_;
}

void DiskThread::Poll() {
  const Writes* const waiting = log_->waiting();
  const uint64_t before = log_->safe();
  if (waiting != nullptr) given_at_poll_ = waiting->given();
  log_->Poll(MonotonicNs());
  if (waiting != nullptr && log_->safe() != before) on_safe_();
}

// Writes that waited in the last Poll already now wait for space, or for ever. Only later ones call
// for another Poll before it is due.
int64_t DiskThread::DueNs() const {
  const Writes* const waiting = log_->waiting();
  const bool more = waiting != nullptr && waiting->given() != given_at_poll_;
  return more ? 0 : log_->due_ns();
}

void DiskThread::Write() {
  pthread_setname_np(pthread_self(), "kv-disk-write");
  AskForTurns(kShortestTurnNs);
  constexpr timespec kPeriod{0, DiskLog::kWritePeriodNs};
  pollfd fd{stop_fd_, POLLIN, 0};
  do {
    log_->Write();
    ppoll(&fd, 1, &kPeriod, nullptr);
  } while (fd.revents == 0);
}

void DiskThread::Run() {
  pthread_setname_np(pthread_self(), "kv-disk");
  // It runs for moments only, and a group of clients waits for each of them. So it asks to get a
  // core soon, even if other threads compute on all cores.
  AskForTurns(kShortestTurnNs);
  pollfd fds[] = {{stop_fd_, POLLIN, 0}, {wanted_ == nullptr ? -1 : wanted_->fd(), POLLIN, 0}};
  do {
    // Taken before the look at what waits, so that later requests wake it.
    if (wanted_ != nullptr) wanted_->Take();
    if (DueNs() <= MonotonicNs()) Poll();
    const int64_t left_ns = std::max<int64_t>(DueNs() - MonotonicNs(), 0);
    const timespec timeout{left_ns / kNsPerSecond, left_ns % kNsPerSecond};
    ppoll(fds, std::size(fds), &timeout, nullptr);
  } while (fds[0].revents == 0);
  status_ = log_->Close(MonotonicNs());
}

}  // namespace gannet
