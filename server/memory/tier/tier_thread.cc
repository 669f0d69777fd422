#include "server/memory/tier/tier_thread.h"

#include <poll.h>
#include <pthread.h>

#include <cstdint>
#include <iterator>

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

// Until it looks again: for the end of a read, and for space on the disk.
constexpr int kReadsMs = 1;
constexpr int kIdleMs = 1000;

}  // namespace

absl::StatusOr<std::unique_ptr<TierThread>> TierThread::Start(TierWriter* writer, WakeUp* wanted) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> stop, WakeUp::Create());
  std::unique_ptr<TierThread> thread(new TierThread(writer, wanted, std::move(stop)));
  thread->thread_ = std::thread([raw = thread.get()] { raw->Run(); });
  return thread;
}

TierThread::~TierThread() {
  stop_->Ask();
  if (thread_.joinable()) thread_.join();
}

TierWriter::Disk TierThread::disk() const { return writer_->disk(MonotonicNs()); }

void TierThread::Run() {
  pthread_setname_np(pthread_self(), "kv-tier");
  pollfd fds[] = {{stop_->fd(), POLLIN, 0}, {wanted_->fd(), POLLIN, 0}};
  do {
    // Taken before the look for values, so that later ones wake it.
    wanted_->Take();
    const TierWriter::Did did = writer_->Poll(MonotonicNs());
    const int wait_ms = did == TierWriter::Did::kWorked  ? 0
                        : did == TierWriter::Did::kWaits ? kReadsMs
                                                         : kIdleMs;
    poll(fds, std::size(fds), wait_ms);
  } while (fds[0].revents == 0);
}

}  // namespace gannet
