#include "server/rpc/inbox.h"

#include <iterator>
#include <utility>

#include "common/base/status_macros.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<Inbox>> Inbox::Create() {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> wake_up, WakeUp::Create());
  return std::unique_ptr<Inbox>(new Inbox(std::move(wake_up)));
}

bool Inbox::Put(Arrival& arrival) {
  {
    MutexLock lock(mutex_);
    if (contents_.arrivals.size() >= kArrivalsMax) return false;
    contents_.arrivals.push_back(std::move(arrival));
  }
  Wake();
  return true;
}

void Inbox::Put(Notice notice) {
  {
    MutexLock lock(mutex_);
    for (Arrival& arrival : contents_.arrivals) {
      arrival.gone |= arrival.name == notice.name && notice.type == Notice::Type::kGone;
    }
    contents_.notices.push_back(notice);
  }
  Wake();
}

void Inbox::PutSessions(std::vector<SessionCopy> sessions) {
  {
    MutexLock lock(mutex_);
    std::move(sessions.begin(), sessions.end(), std::back_inserter(contents_.sessions));
  }
  Wake();
}

void Inbox::PutLocks(LockService service) {
  {
    MutexLock lock(mutex_);
    contents_.locks.push_back(std::move(service));
  }
  Wake();
}

void Inbox::PutClose() {
  {
    MutexLock lock(mutex_);
    contents_.close = true;
  }
  Wake();
}

void Inbox::Wake() {
  filled_.store(true, std::memory_order_release);
  wake_up_->Ask();
}

size_t Inbox::arrivals() const {
  MutexLock lock(mutex_);
  return contents_.arrivals.size();
}

Inbox::Contents Inbox::Take(size_t arrivals_max) {
  // Load first: an exchange would take the cache line from the other thread at every Poll.
  if (!filled()) return {};
  filled_.exchange(false, std::memory_order_acquire);
  MutexLock lock(mutex_);
  Contents taken{.notices = std::exchange(contents_.notices, {}),
                 .sessions = std::exchange(contents_.sessions, {}),
                 .locks = std::exchange(contents_.locks, {}),
                 .close = std::exchange(contents_.close, false)};
  for (; arrivals_max > 0 && !contents_.arrivals.empty(); --arrivals_max) {
    taken.arrivals.push_back(std::move(contents_.arrivals.front()));
    contents_.arrivals.pop_front();
  }
  // Relaxed: only this thread takes.
  if (!contents_.arrivals.empty()) filled_.store(true, std::memory_order_relaxed);
  return taken;
}

}  // namespace gannet
