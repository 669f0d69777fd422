// Primary: what workers record. The updates of a worker's Poll become one record.

#include "server/group/primary.h"
#include "server/session/session_updates.h"
#include "server/stream/update_lane_inline.h"

namespace gannet {

bool Primary::Append(const Change& change, uint64_t position) {
  WordMutexLock lock(mutex_);
  if (!TakesChanges()) {
    takes_.store(false, std::memory_order_relaxed);
    return false;
  }
  outbox_.Add(change, position, committed_);
  recorded_ = position;
  sessions_.Take(change);
  return true;
}

// It is small, and there are no more of them than writes that wait. So it is taken though the ring
// is full: the ring may be full because what waits behind the undone write keeps it so.
bool Primary::AppendUndo(const Change& deletion, std::span<const SessionRecord> answers,
                         uint64_t end) {
  WordMutexLock lock(mutex_);
  if (!TakesUndos()) return false;
  for (const SessionRecord& answer : answers) {
    outbox_.AddSession(answer, committed_);
    sessions_.Take(answer);
  }
  outbox_.Add(deletion, end, committed_);
  recorded_ = end;
  sessions_.Take(deletion);
  return true;
}

void Primary::AppendSession(const SessionRecord& record) {
  WordMutexLock lock(mutex_);
  outbox_.AddSession(record, committed_);
  sessions_.Take(record);
}

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
