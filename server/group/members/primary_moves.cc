#include "server/group/members/primary_moves.h"

#include "glog/logging.h"

namespace gannet {

bool PrimaryMoves::Poll() {
  next_at_ = BootTime::Never();
  const ServedPartitions& partitions = context_.standing->partitions();
  const uint64_t revision = partitions.revision();
  bool told = false;
  {
    WordMutexLock lock(stream_.mutex());
    end_.OnMap(revision, partitions.leases_from());
    if (!stream_.followers().HasReceiver()) end_.OnNoReceiver();
    told = TellEnded();
  }
  if (!end_.busy()) return told;
  const uint64_t before = ended_map();
  End();
  next_at_ = end_.next_at();
  if (ended_map() == before) return told;
  WordMutexLock lock(stream_.mutex());
  return TellEnded() || told;
}

// The clock is read last, as PartitionEnd wants it.
void PrimaryMoves::End() {
  PartitionEnd::Facts facts{.workers_at = context_.server->workers_at()};
  context_.server->Publish();
  facts.published = context_.server->published();
  const uint64_t version_next = context_.store->NextVersion();
  const uint64_t before = ended_map();
  {
    WordMutexLock lock(stream_.mutex());
    facts.recorded = stream_.ring().recorded();
    facts.safe = stream_.safe();
    facts.committed = stream_.ring().committed();
    facts.now = context_.clocks.boot.Now();
    facts.lease_is_valid = stream_.lead().LeaseIsValid(facts.now);
  }
  end_.Poll(facts);
  if (ended_map() == before) return;
  version_at_end_ = version_next;
  LOG(INFO) << "has ended all partitions that are closed by map " << ended_map() << ", at "
            << end_.ended()->lsn;
}

bool PrimaryMoves::TellEnded() {
  if (!end_.ended()) return false;
  MoveEnded ended = NewMoveEnded();
  ended.epoch = stream_.lead().epoch();
  ended.revision = end_.ended()->revision;
  ended.lsn = end_.ended()->lsn;
  ended.version_next = version_at_end_;
  bool told = false;
  for (const auto& follower : stream_.followers().all()) {
    if (!follower->receives() || !follower->follows()) continue;
    if (follower->ended_told >= ended.revision || !follower->beacons.MaySend()) continue;
    follower->ended_told = ended.revision;
    follower->link->Send(ended);
    told = true;
  }
  return told;
}

}  // namespace gannet
