// Primary: the updates of a worker's Poll, which become one record.

#include "server/group/primary.h"
#include "server/session/session_updates.h"
#include "server/stream/update_lane_inline.h"

namespace gannet {

UpdateLane* Primary::BeginUpdates(uint64_t position) {
  mutex_.Lock();
  if (!TakesChanges() || !outbox_.TakesUpdates()) {
    mutex_.Unlock();
    return nullptr;
  }
  lane_.Begin({.room = writer_.UpdateRoom(),
               .stream_id = writer_.stream_id(),
               .lsn = writer_.end().lsn,
               .committed = committed_,
               .position = position});
  return &lane_;
}

uint64_t Primary::EndUpdates() {
  SessionCopies::Updates sessions(&sessions_);
  const std::span<const std::byte> record = lane_.Seal([&sessions](const std::byte* update) {
    sessions.Take(UpdateToken(update), UpdateSequence(update), UpdateVersion(update));
  });
  const uint64_t position = lane_.position();
  if (!record.empty()) {
    Keep({.position = position, .from = writer_.end().position});
    writer_.Appended(record.size());
    outbox_.OnAppended(position);
    recorded_ = position;
  }
  mutex_.Unlock();
  return position;
}

}  // namespace gannet
