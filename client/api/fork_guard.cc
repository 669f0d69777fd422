#include "client/api/fork_guard.h"

#include <pthread.h>

namespace gannet {

void ForkGuard::CountFork() { forks.fetch_add(1, std::memory_order_relaxed); }

ForkGuard::ForkGuard() {
  static const int registered = pthread_atfork(nullptr, nullptr, &ForkGuard::CountFork);
  static_cast<void>(registered);
  forks_ = forks.load(std::memory_order_relaxed);
}

}  // namespace gannet
