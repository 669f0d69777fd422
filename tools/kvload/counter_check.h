#ifndef GANNET_TOOLS_KVLOAD_COUNTER_CHECK_H_
#define GANNET_TOOLS_KVLOAD_COUNTER_CHECK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace gannet::kvload {

// Checks the numbers that a thread's counters return. Only this thread changes them, and a
// counter's operations are answered in the order in which they were started. So each number is the
// last one plus what was added, unless the counter expired or was evicted meanwhile.
class CounterCheck {
 public:
  // Call it for each answer. Returns false if the number is wrong. `may_vanish`: the counter may
  // have begun anew.
  bool IsRight(std::string_view key, int64_t delta, int64_t number, bool may_vanish) {
    const auto [known, first] = numbers_.try_emplace(std::string(key), number);
    const bool right = first || number == known->second + delta || (may_vanish && number == delta);
    known->second = number;
    return right;
  }
  // Call it if an operation failed: it may have been applied.
  void Forget(std::string_view key) { numbers_.erase(std::string(key)); }

 private:
  absl::flat_hash_map<std::string, int64_t> numbers_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_COUNTER_CHECK_H_
