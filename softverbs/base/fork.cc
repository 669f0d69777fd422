#include "softverbs/base/fork.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace softverbs {
namespace {

constexpr int kMaxFd = 1 << 16;
constexpr int kMaxResets = 16;

// Constant initialised: used before and after every static constructor and destructor.
std::atomic<uint64_t> own_fds[kMaxFd / 64];
std::atomic<void (*)()> resets[kMaxResets];
std::atomic<int> reset_count{0};
std::atomic<uint32_t> generation{0};
pthread_once_t installed = PTHREAD_ONCE_INIT;

void CloseOwnFds() {
  for (int word = 0; word < kMaxFd / 64; ++word) {
    uint64_t bits = own_fds[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) close(word * 64 + __builtin_ctzll(bits));
  }
}

// The child has one thread, so relaxed order is enough everywhere here.
void InChild() {
  generation.fetch_add(1, std::memory_order_relaxed);
  const int count = reset_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    if (void (*reset)() = resets[i].load(std::memory_order_relaxed)) reset();
  }
  CloseOwnFds();
}

void Install() { pthread_atfork(nullptr, nullptr, InChild); }

}  // namespace

uint32_t ForkGeneration() { return generation.load(std::memory_order_relaxed); }

void OnForkChild(void (*reset)()) {
  pthread_once(&installed, Install);
  const int slot = reset_count.fetch_add(1, std::memory_order_relaxed);
  if (slot >= kMaxResets) abort();  // a fixed number of modules register, each once
  resets[slot].store(reset, std::memory_order_relaxed);
}

void TrackForkFd(int fd, bool own) {
  if (fd < 0 || fd >= kMaxFd) return;
  const uint64_t bit = uint64_t{1} << (fd % 64);
  // Relaxed: only a forked child reads it, which sees the forking thread's memory.
  if (own) {
    own_fds[fd / 64].fetch_or(bit, std::memory_order_relaxed);
  } else {
    own_fds[fd / 64].fetch_and(~bit, std::memory_order_relaxed);
  }
}

}  // namespace softverbs
