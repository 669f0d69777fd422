#include "client/api/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace gannet {
namespace {

// How often this process and its ancestors forked, as their children count. Written only in the
// child of a fork, which has one thread: relaxed suffices.
std::atomic<uint32_t> forks{0};

void CountFork() { forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

ForkGuard::ForkGuard() {
  static const int registered = pthread_atfork(nullptr, nullptr, &CountFork);
  static_cast<void>(registered);
  forks_ = forks.load(std::memory_order_relaxed);
}

bool ForkGuard::forked() const { return forks.load(std::memory_order_relaxed) != forks_; }

}  // namespace gannet
