#ifndef GANNET_TESTS_SERVER_LOG_JOURNAL_FAULT_PLAN_H_
#define GANNET_TESTS_SERVER_LOG_JOURNAL_FAULT_PLAN_H_

#include <array>
#include <cstdint>
#include <string>

#include "server/log/journal/journal.h"
#include "softverbs/tests/support/sanitizer.h"
#include "tests/server/log/journal/simulated_files.h"

namespace gannet {

// What happens in one run of a test that crashes, and when.
struct FaultPlan {
  uint64_t seed = 0;
  Journal::Sync sync = Journal::Sync::kInterval;
  SimulatedFiles::Fault fault = SimulatedFiles::Fault::kNone;
  uint64_t fault_at = 0;
};

// Sanitizers make a run ten times as long. With them only each seventh operation of a workload
// fails.
inline constexpr uint64_t kFaultsApart =
    test_support::kThreadSanitizer || test_support::kAddressSanitizer ? 7 : 1;

inline constexpr std::array kFaults = {
    SimulatedFiles::Fault::kPowerCut, SimulatedFiles::Fault::kNoSpace,
    SimulatedFiles::Fault::kIoError, SimulatedFiles::Fault::kSyncFails};
// Returns the end of a test's name.
inline std::string NameOf(SimulatedFiles::Fault fault) {
  switch (fault) {
    case SimulatedFiles::Fault::kNone:
      return "None";
    case SimulatedFiles::Fault::kPowerCut:
      return "PowerCut";
    case SimulatedFiles::Fault::kNoSpace:
      return "NoSpace";
    case SimulatedFiles::Fault::kIoError:
      return "IoError";
    case SimulatedFiles::Fault::kSyncFails:
      return "SyncFails";
  }
  return "";
}

inline std::string Describe(const FaultPlan& plan) {
  return "seed " + std::to_string(plan.seed) + ", sync " +
         std::to_string(static_cast<int>(plan.sync)) + ", fault " +
         std::to_string(static_cast<int>(plan.fault)) + " at operation " +
         std::to_string(plan.fault_at);
}

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_LOG_JOURNAL_FAULT_PLAN_H_
