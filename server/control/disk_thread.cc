#include "server/control/disk_thread.h"

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
                                                              std::function<void()> on_safe) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> stop, WakeUp::Create());
  std::unique_ptr<DiskThread> thread(
      new DiskThread(log, wanted, std::move(on_safe), std::move(stop)));
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
  const Writes* const waiting = log_->waiting();
  const uint64_t before = log_->safe();
  if (waiting != nullptr) given_at_poll_ = waiting->given();
  log_->Poll(MonotonicNs());
  if (!log_->needs_writer() && log_->safe() != before) on_safe_();
}

// Writes that waited in the last Poll already now wait for space, or for ever. Only later ones call
// for another Poll before it is due.
int64_t DiskThread::DueNs() const {
  const Writes* const waiting = log_->waiting();
  const bool more = waiting != nullptr && waiting->given() != given_at_poll_;
  return more ? 0 : log_->due_ns();
}

// Who waits in a group is not known to the log. A request there may come too often, if the writes
// wait for others already.
bool DiskThread::Hurries(bool asked) const {
  return asked && log_->waiting() == nullptr && !log_->needs_writer();
}

void DiskThread::Write() {
  pthread_setname_np(pthread_self(), "kv-disk-write");
  AskForTurns(kShortestTurnNs);
  constexpr timespec kPeriod{0, DiskLog::kWritePeriodNs};
  pollfd fd{stop_->fd(), POLLIN, 0};
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
  pollfd fds[] = {{stop_->fd(), POLLIN, 0}, {wanted_->fd(), POLLIN, 0}};
  do {
    // Taken before the look at what waits, so that later requests wake it.
    const bool asked = wanted_->Take();
    if (Hurries(asked) || DueNs() <= MonotonicNs()) Poll();
    const int64_t left_ns = std::max<int64_t>(DueNs() - MonotonicNs(), 0);
    const timespec timeout{left_ns / kNsPerSecond, left_ns % kNsPerSecond};
    ppoll(fds, std::size(fds), &timeout, nullptr);
  } while (fds[0].revents == 0);
  status_ = log_->Close(MonotonicNs());
}

}  // namespace gannet
