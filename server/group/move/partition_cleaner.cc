#include "server/group/move/partition_cleaner.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace gannet {

PartitionDropper::Partitions PartitionCleaner::Unwanted(
    const PartitionDropper::Partitions& taking) {
  const SeenMap* const map = context_.group.directory->Config();
  if (map == nullptr || map->config.partitions.size() != kPartitions) return {};
  if (std::exchange(map_revision_, map->mod_revision) != map->mod_revision) {
    const auto& groups = map->config.groups;
    for (uint32_t i = 0; i < kPartitions; ++i) {
      others_[i] = groups[map->config.partitions[i]] != context_.group.name;
    }
  }
  return others_ & ~taking;
}

void PartitionCleaner::Begin(BootTime now) {
  const PartitionDropper::Partitions left = unwanted_ & ~clean_;
  dropping_ = left.any() && now - changed_at_ >= kQuietNs;
  next_at_ = left.any() ? std::max(now, changed_at_ + kQuietNs) : now + kIdleNs;
  if (!dropping_) return;
  LOG(INFO) << "deletes what it has of " << left.count()
            << " partitions that other groups have by the map";
  dropper_.Begin(left);
}

void PartitionCleaner::Poll(BootTime now, const PartitionDropper::Partitions& taking) {
  if (context_.group.directory->Moves() == nullptr) {
    next_at_ = now + kIdleNs;
    return;
  }
  const PartitionDropper::Partitions unwanted = Unwanted(taking);
  if (std::exchange(unwanted_, unwanted) != unwanted) changed_at_ = now;
  clean_ &= unwanted;  // what is the group's, or comes to it, gets items
  const bool some_are_wanted = dropping_ && (dropper_.partitions() & ~unwanted).any();
  if (!dropping_ || some_are_wanted) Begin(now);
  if (!dropping_ || now < next_at_) return;
  const BootTime began = context_.clocks.boot.Now();
  context_.server->Publish();
  if (dropper_.Step(context_.server->Time())) {
    dropping_ = false;
    clean_ |= dropper_.partitions();
    LOG_IF(INFO, dropper_.removed() > 0)
        << "deleted " << dropper_.removed() << " items of partitions that other groups have";
  }
  const uint64_t requests = context_.server->requests();
  const int64_t share = requests != requests_ ? kShareWhenBusy : kShareWhenIdle;
  requests_ = requests;
  const BootTime ended = context_.clocks.boot.Now();
  next_at_ = ended + std::clamp((ended - began) * (share - 1), kPauseNsMin, kPauseNsMax);
}

}  // namespace gannet
