#ifndef SOFTVERBS_TESTS_SUPPORT_TASK_STATUS_H_
#define SOFTVERBS_TESTS_SUPPORT_TASK_STATUS_H_

#include <cstdint>
#include <fstream>
#include <string>

namespace softverbs {

// Returns how often a thread gave up its core to wait. `task` is its folder in /proc (proc(5)).
inline int64_t SleepsOfTask(const std::string& task) {
  std::ifstream status(task + "/status");
  int64_t sleeps = 0;
  for (std::string field; status >> field;) {
    if (field == "voluntary_ctxt_switches:") status >> sleeps;
  }
  return sleeps;
}

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SUPPORT_TASK_STATUS_H_
