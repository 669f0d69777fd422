#ifndef GANNET_TESTS_INTEGRATION_HOT_KEY_RUN_H_
#define GANNET_TESTS_INTEGRATION_HOT_KEY_RUN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/support/server_process.h"

namespace gannet {

// Values of at least this length name the write that they are from.
inline constexpr size_t kIdBytes = 8;

struct HotKeyOptions {
  int operations = 0;  // of each client
  size_t value_bytes_min = 0;
  bool hasty = false;  // deadlines so short that the outcome of some writes is unknown
  uint32_t clients = 6;
  // Others insert keys into a small index that grows, instead of moving keys in a full one.
  bool index_grows = false;
};

// Runs several clients, each with its own connection, on a few hot keys, while others move these in
// a nearly full index. What the clients saw of each key must be linearizable. Prints its seed, and
// takes it from GANNET_TEST_SEED.
class HotKeyRun {
 public:
  // Starts a kvserver and fills its index.
  explicit HotKeyRun(const HotKeyOptions& options);
  ~HotKeyRun();
  HotKeyRun(const HotKeyRun&) = delete;
  HotKeyRun& operator=(const HotKeyRun&) = delete;

  // Returns when all clients have done their operations and their histories are checked.
  void Run();

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
