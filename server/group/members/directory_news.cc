#include "server/group/members/directory_news.h"

#include <memory>
#include <utility>

#include "common/protocol/not_primary.h"
#include "glog/logging.h"

namespace gannet {

bool DirectoryNews::TellPartitions() {
  const GroupPartitions* const partitions = context_.group.directory->Partitions();
  if (partitions == nullptr || partitions_told_ == partitions->revision) return false;
  partitions_told_ = partitions->revision;
  TellMap();  // first: who is refused, or gets no lease, asks for it
  context_.standing->SetPartitions(*partitions);
  return true;
}

void DirectoryNews::TellMap() {
  const std::optional<PartitionMap> map = context_.group.directory->Map();
  if (!map) return;
  std::string bytes = EncodePartitionMap(*map);
  const std::shared_ptr<const std::string> told = context_.standing->map();
  if (told != nullptr && *told == bytes) return;
  context_.standing->SetMap(std::make_shared<const std::string>(std::move(bytes)));
}

void DirectoryNews::TellOfPolicy() {
  const GroupPolicy* const policy = context_.group.directory->Policy();
  if (policy == nullptr || *policy == told_policy_) return;
  told_policy_ = *policy;
  for (const auto& [name, own] : context_.group.policy.settings) {
    const std::optional<std::string> of_group = policy->Find(name);
    if (!of_group || *of_group == own) continue;
    LOG(WARNING) << "the group has " << name << "=" << *of_group
                 << ", and this process was started with " << own << ": restart it";
  }
}

void DirectoryNews::TellElsewhere(const GroupConfiguration& configuration) {
  // A process has one address, and an epoch one primary.
  if (told_of_ == configuration.primary && told_epoch_ == configuration.epoch) return;
  told_of_.reset();
  std::string elsewhere;
  if (configuration.epoch != 0 && configuration.primary != context_.self) {
    const auto address = context_.group.directory->AddressOf(configuration.primary);
    if (address && IsPrimaryAddress(*address)) {
      elsewhere = ReasonOf({.primary = *address, .epoch = configuration.epoch});
      told_of_ = configuration.primary;
      told_epoch_ = configuration.epoch;
    }
  }
  if (elsewhere == elsewhere_) return;
  elsewhere_ = elsewhere;
  context_.standing->SetElsewhere(std::move(elsewhere));
}

}  // namespace gannet
