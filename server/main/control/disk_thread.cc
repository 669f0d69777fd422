#include "server/main/control/disk_thread.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "common/base/clock.h"
#include "common/base/short_turns.h"
#include "common/base/status_macros.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<DiskThread>> DiskThread::Start(DiskLog* log, WakeUp* wanted,
                                                              const ServerWorkers* workers) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> stop, WakeUp::Create());
  std::unique_ptr<DiskThread> thread(new DiskThread(log, wanted, workers, std::move(stop)));
  thread->thread_ = std::thread([raw = thread.get()] { raw->Run(); });
  if (log->needs_writer()) thread->writer_ = std::thread([raw = thread.get()] { raw->Write(); });
  return thread;
}

DiskThread::~DiskThread() { Stop().IgnoreError(); }

absl::Status DiskThread::Stop() {
  if (thread_.joinable()) {
    stop_->Ask();
    thread_.join();
    if (writer_.joinable()) writer_.join();
  }
  return status_;
}

void DiskThread::Poll() {
  const uint64_t before = log_->safe();
  log_->Poll(MonotonicNs());
  const bool more_is_safe = !log_->needs_writer() && log_->safe() != before;
  if (more_is_safe && workers_ != nullptr) workers_->Wake();
}

void DiskThread::Write() {
  pthread_setname_np(pthread_self(), "kv-disk-write");
  AskForTurns(kShortestTurnNs);
  pollfd fd{stop_->fd(), POLLIN, 0};
  do {
    const timespec pause{0, log_->Write()};
    ppoll(&fd, 1, &pause, nullptr);
  } while (fd.revents == 0);
}

void DiskThread::Run() {
  pthread_setname_np(pthread_self(), "kv-disk");
  // It runs for moments only, and a group of clients waits for each of them. So it asks to get a
  // core soon, even if other threads compute on all cores.
  AskForTurns(kShortestTurnNs);
  pollfd fds[] = {{stop_->fd(), POLLIN, 0}, {wanted_->fd(), POLLIN, 0}};
  do {
    // Taken before the look at what waits, so that later requests wake it.
    const bool wanted = wanted_->Take();
    if (wanted || log_->due_ns() <= MonotonicNs()) Poll();
    const int64_t left_ns = std::max<int64_t>(log_->due_ns() - MonotonicNs(), 0);
    const timespec timeout{left_ns / kNsPerSecond, left_ns % kNsPerSecond};
    ppoll(fds, std::size(fds), &timeout, nullptr);
  } while (fds[0].revents == 0);
  status_ = log_->Close(MonotonicNs());
}

}  // namespace gannet
