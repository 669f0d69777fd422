#include "softverbs/cm/state.h"

#include <atomic>

#include "softverbs/base/fork.h"

namespace softverbs::cm {
namespace {

std::atomic<State*> the_state{nullptr};

// In a forked child the parent's locks may be held by a thread that does not exist. So this starts
// anew, and leaves the old state alone.
void ForgetState() { the_state.store(new State, std::memory_order_relaxed); }

}  // namespace

State& State::Get() {
  static const bool created = [] {
    OnForkChild(ForgetState);
    // Relaxed: the guard of this static orders it before every caller's load.
    the_state.store(new State, std::memory_order_relaxed);
    return true;
  }();
  (void)created;
  return *the_state.load(std::memory_order_relaxed);
}

}  // namespace softverbs::cm
