// Primary: what workers record. The updates of a worker's Poll become one record.

#include <algorithm>

#include "server/changes/update_lane_inline.h"
#include "server/group/primary.h"
#include "server/session/session_updates.h"
#include "server/stream/update_batch.h"

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

bool Primary::BeginUpdates(UpdateLane* lane) {
  mutex_.Lock();
  if (!TakesChanges()) {
    takes_.store(false, std::memory_order_relaxed);
    mutex_.Unlock();
    return false;
  }
  const std::span<std::byte> room = writer_.UpdateRoom();
  constexpr size_t kHeader = sizeof(UpdateBatchHeader);
  lane_in_ring_ = outbox_.TakesUpdates() && room.size() >= kHeader + UpdateLane::kMemoryMin;
  if (lane_in_ring_) {
    lane->UseMemory(room.first(std::min(room.size(), kUpdateBatchBytesMax)).subspan(kHeader));
  }
  return true;
}

// They are in the ring, where they become one record. Or, if it has no room now, they take the way
// of all other changes.
void Primary::EndUpdates(UpdateLane* lane) {
  if (lane_in_ring_ && !lane->empty()) {
    SealInRing(lane);
  } else {
    AddOneByOne(lane);
  }
  if (!lane->empty()) recorded_ = lane->position();
  mutex_.Unlock();
}

void Primary::AddOneByOne(UpdateLane* lane) {
  lane->Seal([](const std::byte*) {});
  uint64_t position = lane->from();
  const std::span<const std::byte> bodies = lane->bodies();
  for (size_t at = 0; at < bodies.size(); at += UpdateBodyBytesOf(&bodies[at])) {
    Change put;
    DecodeUpdateBody(&bodies[at], &put);
    position += RecordBytes(put.key.size(), put.value.size());
    outbox_.Add(put, position, committed_);
    sessions_.Take(put);
  }
}

[[gnu::always_inline]] inline void Primary::SealInRing(UpdateLane* lane) {
  uint32_t count = 0;
  {
    SessionCopies::Updates sessions(&sessions_);
    lane->Seal([&](const std::byte* update) {
      sessions.Take(UpdateToken(update), UpdateSequence(update), UpdateVersion(update));
      ++count;
    });
  }
  const RingRecordPlace place = {.stream_id = writer_.stream_id(), .lsn = writer_.end().lsn};
  const size_t bytes = SealUpdateBatch(lane->bodies(), count, place, committed_);
  Keep({.position = lane->position(), .from = writer_.end().position});
  writer_.Appended(bytes);
  outbox_.OnAppended(lane->position());
}

}  // namespace gannet
