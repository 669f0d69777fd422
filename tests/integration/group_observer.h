#ifndef GANNET_TESTS_INTEGRATION_GROUP_OBSERVER_H_
#define GANNET_TESTS_INTEGRATION_GROUP_OBSERVER_H_

#include <gannet/client.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "tests/linearizability/linearizability.h"

namespace gannet {

// One client of a group, with a thread that works all the time. It keeps what it saw of each key.
class GroupObserver {
 public:
  static constexpr int kKeys = 2;
  static constexpr char kCounter[] = "counter";
  // Longer than any takeover, so that almost every write has a known outcome.
  static constexpr std::chrono::milliseconds kDeadline{10000};
  static std::string Key(int i);

  enum class Work : uint8_t { kAll, kGets };
  // Fails the test if it cannot connect. `number` names the client.
  GroupObserver(const std::string& endpoint, uint32_t number, Work work, uint64_t seed);
  ~GroupObserver() { Stop(); }

  void Stop();
  uint64_t answers() const { return answers_.load(std::memory_order_relaxed); }
  // READs that it did again, as the primary's lease was over.
  uint64_t reads_disbelieved() const { return client_->Info()[0].reads_disbelieved; }

  // The rest may be called after Stop.
  const std::vector<linearizability::Operation>& seen(int key) const { return seen_[key]; }
  uint64_t operations() const { return operations_; }
  uint64_t incremented() const { return incremented_; }
  uint64_t increments_unknown() const { return increments_unknown_; }
  uint64_t unknown() const { return unknown_; }
  const absl::Status& last_error() const { return last_error_; }
  // What its client said last.
  std::string Log();
  int64_t longest_get_ns() const { return longest_get_ns_; }
  int64_t longest_write_ns() const { return longest_write_ns_; }

 private:
  void Step();
  absl::Status Get(int key, linearizability::Operation* op);
  void Increment();
  void Keep(int key, const linearizability::Operation& op);

  const uint32_t number_;
  const Work work_;
  const std::chrono::microseconds pause_;  // after each answer
  std::mt19937_64 random_;
  Mutex mutex_;
  std::deque<std::string> log_ GANNET_GUARDED_BY(mutex_);  // the client writes it
  std::unique_ptr<Client> client_;
  std::array<std::vector<linearizability::Operation>, kKeys> seen_;
  int64_t longest_get_ns_ = 0;
  int64_t longest_write_ns_ = 0;
  uint64_t operations_ = 0;
  uint64_t values_ = 0;
  uint64_t incremented_ = 0;
  uint64_t increments_unknown_ = 0;
  uint64_t unknown_ = 0;
  absl::Status last_error_;
  int64_t counter_ = 0;
  std::atomic<uint64_t> answers_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_INTEGRATION_GROUP_OBSERVER_H_
