#include "server/group/members/primary_ring.h"

#include <algorithm>

#include "server/log/changes/update_lane_inline.h"
#include "server/log/stream/update_batch.h"
#include "server/sessions/session/session_updates.h"

namespace gannet {

void PrimaryRing::Keep(const Kept& kept) {
  if (kept_.empty()) writer_.KeepFrom(kept.from);
  if (kept_.size() < kKeptMax) return kept_.push_back(kept);
  kept_.back().position = kept.position;
}

void PrimaryRing::LetPublishedGo(uint64_t published) {
  if (kept_.empty()) return;
  const uint64_t before = kept_.front().from;
  while (!kept_.empty() && kept_.front().position <= published) kept_.pop_front();
  const uint64_t from = kept_.empty() ? RingWriter::kKeepNone : kept_.front().from;
  if (from != before) writer_.KeepFrom(from);
}

void PrimaryRing::AppendSessions() {
  sessions_.ForEachRecord(
      [this](const SessionRecord& record) { outbox_.AddSession(record, committed_); });
}

void PrimaryRing::BeginUpdates(UpdateLane* lane) {
  const std::span<std::byte> room = writer_.UpdateRoom();
  constexpr size_t kHeader = sizeof(UpdateBatchHeader);
  lane_in_ring_ = outbox_.TakesUpdates() && room.size() >= kHeader + UpdateLane::kMemoryMin;
  if (lane_in_ring_) {
    lane->UseMemory(room.first(std::min(room.size(), kUpdateBatchBytesMax)).subspan(kHeader));
  }
}

// They are in the ring, where they become one record. Or, if it has no room now, they take the way
// of all other changes.
void PrimaryRing::EndUpdates(UpdateLane* lane) {
  if (lane_in_ring_ && !lane->empty()) {
    SealInRing(lane);
  } else {
    AddOneByOne(lane);
  }
  if (!lane->empty()) recorded_ = lane->position();
}

void PrimaryRing::AddOneByOne(UpdateLane* lane) {
  lane->Seal();
  Change put;
  for (const PlacedUpdate& update : lane->updates()) {
    DecodeUpdateBody(update.body, &put);
    outbox_.Add(put, update.position, committed_);
    sessions_.Take(put);
  }
}

[[gnu::always_inline]] inline void PrimaryRing::SealInRing(UpdateLane* lane) {
  uint32_t count = 0;
  {
    SessionCopies::Updates sessions(&sessions_);
    lane->SealEach([&](const std::byte* update) {
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
