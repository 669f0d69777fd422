#ifndef GANNET_TOOLS_KVLOAD_REPORT_H_
#define GANNET_TOOLS_KVLOAD_REPORT_H_

#include <optional>
#include <string>

#include "tools/kvload/options.h"
#include "tools/kvload/phase.h"

namespace gannet::kvload {

// Everything about a run: the options, the device, and the results.
struct Report {
  LoadOptions options;
  std::string workload;      // options.workload, or "trace"
  std::string distribution;  // empty if there is none
  std::string device;
  std::string kind;
  std::optional<PhaseResult> load;  // if the measured phase is not the load itself
  PhaseResult measured;
};

inline constexpr int kReportSchema = 1;

// Returns the report for machines. docs/performance.md explains every field.
std::string ToJson(const Report& report);
// Returns the report for people.
std::string ToTable(const Report& report);

// Returns the answered operations a second.
double PerSecond(const PhaseResult& result);
// Returns the part of the operations that --rate asked for that were answered. 1: there is no rate.
double RateReached(const Report& report);
// Returns whether a closed loop hides a stall: nothing was answered for a good part of the run, so
// nothing was begun, and the percentiles do not show it.
bool HidesStall(const Report& report);
// A report with a lower share says that the rate was missed.
inline constexpr double kRateReachedMin = 0.95;
uint64_t WrongValues(const Report& report);
uint64_t Errors(const Report& report);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_REPORT_H_
