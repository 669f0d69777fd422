#include "common/rdma/name_lookup.h"

#include <pthread.h>

#include <csignal>
#include <cstdint>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace gannet {
namespace {

// Whoever cannot be reached is asked for many times a second.
constexpr int64_t kApartNs = kNsPerSecond;

}  // namespace

struct NameLookup::State {
  explicit State(Resolver how) : resolve(std::move(how)) {}

  const Resolver resolve;
  std::optional<int64_t> began_ns;  // of the owner's thread
  Mutex mutex;
  bool busy GANNET_GUARDED_BY(mutex) = false;
  std::optional<std::vector<SocketAddress>> found GANNET_GUARDED_BY(mutex);

  // Runs in the other thread. `own` is a std::shared_ptr<State>*, which keeps the state alive.
  static void* Run(void* own) {
    const std::unique_ptr<std::shared_ptr<State>> held(static_cast<std::shared_ptr<State>*>(own));
    State& state = **held;
    absl::StatusOr<std::vector<SocketAddress>> addresses = state.resolve();
    const MutexLock lock(state.mutex);
    if (addresses.ok()) state.found = *std::move(addresses);
    state.busy = false;
    return nullptr;
  }
  // Returns false if the system has no thread more.
  static bool Start(const std::shared_ptr<State>& state);
};

bool NameLookup::State::Start(const std::shared_ptr<State>& state) {
  auto own = std::make_unique<std::shared_ptr<State>>(state);
  // The process's signals are for the threads that its program knows of. A thread inherits this.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, &State::Run, own.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return false;
  pthread_detach(thread);
  own.release();
  return true;
}

NameLookup::NameLookup(Resolver resolve) : state_(std::make_shared<State>(std::move(resolve))) {}

void NameLookup::Ask() {
  const int64_t now_ns = MonotonicNs();
  if (state_->began_ns && now_ns - *state_->began_ns < kApartNs) return;
  {
    const MutexLock lock(state_->mutex);
    if (std::exchange(state_->busy, true)) return;
  }
  state_->began_ns = now_ns;
  if (State::Start(state_)) return;
  const MutexLock lock(state_->mutex);
  state_->busy = false;  // asked for again later
}

std::optional<std::vector<SocketAddress>> NameLookup::Take() {
  const MutexLock lock(state_->mutex);
  return std::exchange(state_->found, std::nullopt);
}

}  // namespace gannet
