#include "tools/kvcli/cluster_terms.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/protocol/versions.h"

namespace gannet::kvcli {
namespace {

// A backup of a version before goes by the lease that it found when it was started. It would take
// over while a primary with a longer one is believed.
absl::Status AllKnowTerms(const ClusterState& state, const std::string& group) {
  for (const std::string& node : state.groups.at(group).config.members) {
    const auto info = state.nodes.find(node);
    if (info == state.nodes.end()) continue;  // it has not run yet
    const auto version = state.versions.find(node);
    const bool known =
        version != state.versions.end() && version->second.incarnation == info->second.incarnation;
    if (known && version->second.stream >= kStreamVersionOfLastBeacons) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("member ", node, " of group ", group, " runs Gannet ",
                     known ? version->second.version : "0.1.0",
                     ", which would go by the former terms. Upgrade it first. If it does not run "
                     "any more: kvcli "
                     "cluster remove ",
                     group, " ", node));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GroupConfig> WithTerms(const ClusterState& state, const ClusterCommand& command) {
  const auto group = state.groups.find(command.group);
  if (group == state.groups.end()) {
    return absl::NotFoundError(
        absl::StrCat("cluster ", state.name, " has no group ", command.group));
  }
  GANNET_RETURN_IF_ERROR(AllKnowTerms(state, command.group));
  if (!command.policy.settings.empty() && state.newer_policies.contains(command.group)) {
    return absl::FailedPreconditionError(
        absl::StrCat("a later version of kvcli has set what the members of group ", command.group,
                     " do alike, and this one cannot read it. Use that one"));
  }
  GroupConfig changed = group->second.config;
  changed.min_copies = command.min_copies.value_or(changed.min_copies);
  changed.lease_ms = command.lease_ms.value_or(changed.lease_ms);
  if (const absl::Status wrong = Check(changed); !wrong.ok()) return wrong;
  return changed;
}

std::string TermsText(const ClusterState& before, const ClusterCommand& command) {
  const GroupConfig& config = before.groups.at(command.group).config;
  std::string text = absl::StrCat("group ", command.group, ":\n");
  if (command.min_copies) {
    absl::StrAppend(&text, "  min_copies ", *command.min_copies, ", was ", config.min_copies,
                    ". It counts now\n");
  }
  if (command.lease_ms) {
    absl::StrAppend(&text, "  lease_ms ", *command.lease_ms, ", was ", config.lease_ms,
                    ". It counts from the next primary on: kvcli cluster handover ", command.group,
                    " NODE\n");
  }
  const GroupPolicy policy = PolicyIn(before, command.group);
  for (const auto& [name, value] : command.policy.settings) {
    const std::string note = FindPolicySetting(name)->note;
    absl::StrAppend(&text, "  ", name, " ", value, ", was ", policy.Find(name).value_or("not set"),
                    ". It counts for each member from its next start on: restart them one after "
                    "the other, the primary last",
                    note.empty() ? "" : ". ", note, "\n");
  }
  return text;
}

}  // namespace gannet::kvcli
