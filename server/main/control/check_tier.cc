// kvserver --check with --tier.

#include "server/main/control/check_tier.h"

#include <cstdio>
#include <vector>

#include "common/base/status_macros.h"
#include "server/main/control/check_memory_file.h"

namespace gannet {

absl::Status CheckTier(const TierOptions& options, bool keeps, bool json) {
  GANNET_ASSIGN_OR_RETURN(const TierExamination found, ServerTier::Examine(options, keeps));
  std::vector<ReportLine> lines = {{"tier_bytes", options.bytes},
                                   {"free_bytes", found.free_bytes},
                                   {"found_again", found.kept ? 1 : 0}};
  if (found.direct) lines.emplace_back("o_direct", *found.direct ? 1 : 0);
  std::fputs(RenderReport(lines, json).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace gannet
