#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/kvcli/doctor.h"
#include "tools/kvcli/doctor_facts.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

void Show(const Finding& finding, bool json) {
  const std::string severity(SeverityName(finding.severity));
  if (json) {
    Json object = {{"severity", severity}, {"check", finding.check}, {"text", finding.text}};
    if (!finding.mend.empty()) object["mend"] = finding.mend;
    std::printf("%s\n", Dump(object).c_str());
    return;
  }
  std::printf("%-8s %-12s %s\n", severity.c_str(), finding.check.c_str(), finding.text.c_str());
  if (!finding.mend.empty()) std::printf("%-8s %-12s   %s\n", "", "", finding.mend.c_str());
}

}  // namespace

int RunDoctor(const Command&, const Invocation& invocation, char** argv) {
  absl::Status chosen = ChooseDevice(invocation, invocation.verbose, argv);
  const bool usable = chosen.ok();
  const MachineFacts machine = GatherMachine(std::move(chosen));
  std::vector<WayFacts> ways;
  for (const std::string& server : invocation.servers) {
    if (usable) ways.push_back(GatherWay(server, ClientOptions(invocation)));
  }
  Severity worst = Severity::kFine;
  for (const Finding& finding : Judge(machine, ways)) {
    Show(finding, invocation.json);
    worst = std::max(worst, finding.severity);
  }
  if (worst == Severity::kError) return kExitError;
  return worst == Severity::kWarning ? kExitNotFound : kExitDone;
}

}  // namespace gannet::kvcli
