#include "tools/kvcli/cluster_command.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace gannet::kvcli {
namespace {

bool HasTerms(const ClusterCommand& command) {
  return command.lease_ms || command.min_copies || !command.policy.settings.empty();
}

void TakeDefaults(ClusterCommand* command) {
  const char* const etcd = std::getenv(kEtcdVariable);
  if (command->etcd.empty() && etcd != nullptr) {
    command->etcd = absl::StrSplit(etcd, ',', absl::SkipEmpty());
  }
  const char* const cluster = std::getenv(kClusterVariable);
  if (command->cluster.empty() && cluster != nullptr) command->cluster = cluster;
}

}  // namespace

std::string WhatCanBeSet() {
  std::string text = "min_copies=N, lease_ms=N";
  for (const PolicySetting& setting : PolicySettings()) {
    absl::StrAppend(&text, ", ", setting.name, "=", setting.Usage());
  }
  return text;
}

absl::Status Complete(ClusterCommand* command) {
  using Action = ClusterCommand::Action;
  TakeDefaults(command);
  if (command->etcd.empty()) {
    return absl::InvalidArgumentError(
        "--etcd=URL[,URL...] is missing, and so is $GANNET_ETCD: where etcd is, "
        "http://127.0.0.1:2379 for example");
  }
  if (command->cluster.empty()) {
    return absl::InvalidArgumentError("--cluster=NAME is missing, and so is $GANNET_CLUSTER");
  }
  GANNET_RETURN_IF_ERROR(Check(command->etcd_access));
  if (command->action == Action::kMove && command->to.empty() && !command->stop) {
    return absl::InvalidArgumentError("move needs --to=GROUP");
  }
  if (command->action == Action::kSet && !HasTerms(*command)) {
    return absl::InvalidArgumentError(
        absl::StrCat("set needs what is to be set: ", WhatCanBeSet()));
  }
  return absl::OkStatus();
}

}  // namespace gannet::kvcli
