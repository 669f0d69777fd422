#ifndef GANNET_TESTS_INTEGRATION_HOT_KEY_RUN_H_
#define GANNET_TESTS_INTEGRATION_HOT_KEY_RUN_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "tests/integration/hot_key_client.h"
#include "tests/support/server_process.h"

namespace gannet {

// Runs several clients, each with its own connection, on a few hot keys, while others move these in
// a nearly full index, or have these evicted. What the clients saw of each key must be
// linearizable. Prints its seed, and takes it from TEST_SEED.
class HotKeyRun {
 public:
  // Starts a kvserver and fills its index.
  explicit HotKeyRun(const HotKeyOptions& options);
  ~HotKeyRun();
  HotKeyRun(const HotKeyRun&) = delete;
  HotKeyRun& operator=(const HotKeyRun&) = delete;

  // Returns when all clients have done their operations and their histories are checked.
  void Run();

  // Returns how long the slowest operation on a hot key took. REQUIRES: Run returned.
  std::chrono::nanoseconds Slowest() const;
  ServerProcess& server();
  // Counts, during Run, what the clients did and what they logged (the loss of a connection, its
  // return).
  const std::atomic<uint64_t>& steps() const;
  const std::atomic<uint64_t>& lines() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Waits until the counter is at least `value`.
void WaitFor(const std::atomic<uint64_t>& counter, uint64_t value);

}  // namespace gannet

#endif  // GANNET_TESTS_INTEGRATION_HOT_KEY_RUN_H_
