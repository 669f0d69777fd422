#ifndef GANNET_TOOLS_KVCLI_CLUSTER_TERMS_H_
#define GANNET_TOOLS_KVCLI_CLUSTER_TERMS_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_config.h"
#include "tools/kvcli/cluster_command.h"
#include "tools/kvcli/cluster_state.h"

namespace gannet::kvcli {

// What `kvcli cluster set` makes of a group that runs. Pure: no I/O.

// Returns what groups/G becomes; the policy becomes PolicyIn(state, group).With(command.policy).
// NotFound: there is no such group. InvalidArgument: it cannot have these terms.
// FailedPrecondition: a member is of a version that would go by the former ones, or a later version
// than this one has written the policy.
absl::StatusOr<GroupConfig> WithTerms(const ClusterState& state, const ClusterCommand& command);

// Says what was changed, and from when on it counts. REQUIRES: WithTerms(before, command) is OK.
std::string TermsText(const ClusterState& before, const ClusterCommand& command);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CLUSTER_TERMS_H_
