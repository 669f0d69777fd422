#include "server/group/move/partition_dropper.h"

#include <algorithm>

namespace gannet {

void PartitionDropper::Begin(const Partitions& partitions) {
  partitions_ = partitions;
  after_ = writes_->given();
  walked_ = partitions.none();
  position_ = ticket_ = removed_ = 0;
}

bool PartitionDropper::Step(ServerTime now) {
  if (walked_) return done();
  if (writes_->published() < after_) return false;
  const Writes::Flushed flushed = writes_->FlushSome(position_, kHomesPerStep, &partitions_, now);
  removed_ += flushed.removed;
  ticket_ = std::max(ticket_, flushed.ticket);
  position_ = flushed.next;
  walked_ = !flushed.refused && flushed.next == 0;
  return done();
}

}  // namespace gannet
