#include "server/group/replica/opening.h"

#include <utility>

#include "common/base/check.h"

namespace gannet {

Opening::Opening(RingTail tail)
    : tail_(std::move(tail)), first_lsn_(tail_.begin()), tail_end_(tail_.end()) {}

void Opening::Send(RingWriter* writer, uint64_t committed) {
  while (tail_.begin() < tail_.end() && writer->HasRoomFor(kRingRecordBytesMax)) {
    GANNET_CHECK(writer->end().lsn == tail_.begin(), "a record keeps its LSN");
    tail_.TakeFirst(
        [&](const RingRecord& record, uint64_t, uint64_t) { writer->Append(record, committed); });
  }
}

bool Opening::IsOver(uint64_t committed, const PrimaryLease& lease, BootTime now) {
  over_ = over_ || (committed >= tail_end_ && lease.Valid(now));
  return over_;
}

}  // namespace gannet
