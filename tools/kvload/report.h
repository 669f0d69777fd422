#ifndef GANNET_TOOLS_KVLOAD_REPORT_H_
#define GANNET_TOOLS_KVLOAD_REPORT_H_

#include <optional>
#include <string>

#include "tools/kvload/options.h"
#include "tools/kvload/phase.h"

namespace gannet::kvload {

// Everything there is to say about a run: what was asked for, on what, and what came of it.
struct Report {
  Options options;
  std::string workload;      // options.workload, or "trace"
  std::string distribution;  // empty where there is none
  std::string device;
  std::string kind;
  std::optional<PhaseResult> load;  // when the phase measured is not the load itself
  PhaseResult measured;
};

inline constexpr int kReportSchema = 1;

// The run for machines; docs/performance.md explains every field.
std::string ToJson(const Report& report);
// The run for people.
std::string ToTable(const Report& report);

uint64_t WrongValues(const Report& report);
uint64_t Errors(const Report& report);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_REPORT_H_
