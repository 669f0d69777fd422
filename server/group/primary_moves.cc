// Primary: how it ends partitions that move to other groups (docs/partitions.md).

#include <algorithm>

#include "glog/logging.h"
#include "server/group/primary.h"

namespace gannet {

// Clients were told of leases just before, and the clock is read last, as PartitionEnd wants both.
void Primary::EndPartitions() {
  const ServedPartitions& partitions = context_.standing->partitions();
  const uint64_t revision = partitions.revision();
  {
    WordMutexLock lock(mutex_);
    end_.OnMap(revision, partitions.leases_from());
    const bool receives = std::ranges::any_of(backups_, [](const auto& backup) {
      return backup->receives && !backup->failed && !backup->link->closing();
    });
    if (!receives) end_.OnNoReceiver();
    TellEnded();
    if (!end_.busy()) return;
  }
  PartitionEnd::Facts facts{.workers_at = context_.server->workers_at()};
  context_.server->Publish();
  facts.published = context_.server->published();
  const uint64_t version_next = context_.store->NextVersion();
  WordMutexLock lock(mutex_);
  facts.recorded = recorded_;
  facts.safe = safe();
  facts.committed = committed_;
  facts.now = context_.clock();
  facts.lease_is_valid = membership_.MayCommit() && lease_.Valid(facts.now);
  const uint64_t before = end_.ended() ? end_.ended()->revision : 0;
  end_.Poll(facts);
  next_ns_ = std::min(next_ns_, end_.next_ns());
  if (!end_.ended() || end_.ended()->revision == before) return;
  version_at_end_ = version_next;
  LOG(INFO) << "has ended all partitions that are closed by map " << end_.ended()->revision
            << ", at " << end_.ended()->lsn;
  TellEnded();
}

void Primary::TellEnded() {
  if (!end_.ended()) return;
  MoveEnded ended = NewMoveEnded();
  ended.epoch = membership_.known().configuration.epoch;
  ended.revision = end_.ended()->revision;
  ended.lsn = end_.ended()->lsn;
  ended.version_next = version_at_end_;
  for (const auto& backup : backups_) {
    if (!backup->member || !backup->receives || backup->failed || backup->link->closing()) continue;
    if (backup->ended_told >= ended.revision || !backup->beacons.MaySend()) continue;
    backup->ended_told = ended.revision;
    if (!backup->link->Send(ended)) backup->failed = true;
    beacon_at_ = next_ns_ = 0;  // it brings the clock that the receiver waits for
  }
}

}  // namespace gannet
