// A chunk goes from coming_, where threads reserve parts of it, to leaving_ (Gather), and is
// written once all parts are filled (First, Pop). One that was written is the next spare_.

#include "server/log/journal/waiting_records.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "server/log/changes/record.h"

namespace gannet {
namespace {

// A chunk has room for so much, and for one record at least.
constexpr size_t kChunkBytes = 256 << 10;

}  // namespace

bool WaitingRecords::IsOld(int64_t now_ns, int64_t unwritten_ns_max) const {
  const auto waits_longer = [now_ns](int64_t since_ns, int64_t max_ns) {
    return max_ns != 0 && since_ns != 0 && now_ns - since_ns > max_ns;
  };
  return waits_longer(unsynced_since_ns(), limits_.unsynced_ns_max) ||
         waits_longer(unwritten_since_ns(), unwritten_ns_max);
}

bool WaitingRecords::Takes(int64_t now_ns, int64_t unwritten_ns_max) const {
  return !refuses_all_ && bytes_ < limits_.bytes_max &&
         !(limits_.refuses_for_age && IsOld(now_ns, unwritten_ns_max));
}

bool WaitingRecords::Takes(int64_t now_ns) const {
  MutexLock lock(mutex_);
  return Takes(now_ns, limits_.unwritten_ns_max);
}

bool WaitingRecords::TakesIfWrittenWithin(int64_t unwritten_ns, int64_t now_ns) const {
  const bool has_limit = limits_.unwritten_ns_max != 0;
  MutexLock lock(mutex_);
  return Takes(now_ns, has_limit ? std::max(limits_.unwritten_ns_max, unwritten_ns) : 0);
}

void WaitingRecords::SetRefusesAll(bool refuses_all) {
  MutexLock lock(mutex_);
  refuses_all_ = refuses_all;
}

std::optional<ChangePlace> WaitingRecords::Reserve(size_t record_bytes, int64_t now_ns) {
  MutexLock lock(mutex_);
  if (!Takes(now_ns, limits_.unwritten_ns_max)) return std::nullopt;
  return Enter(record_bytes, now_ns);
}

ChangePlace WaitingRecords::Enter(size_t record_bytes, int64_t now_ns) {
  if (unsynced_since_ns() == 0) unsynced_since_ns_.store(now_ns, std::memory_order_relaxed);
  if (unwritten_since_ns() == 0) unwritten_since_ns_.store(now_ns, std::memory_order_relaxed);
  if (coming_.empty() || coming_.back()->capacity - coming_.back()->reserved < record_bytes) {
    AddChunk(record_bytes, now_ns);
  }
  Chunk& chunk = *coming_.back();
  chunk.reserved += record_bytes;
  bytes_ += record_bytes;
  const uint64_t end = appended() + record_bytes;
  // Relaxed: whoever needs the bytes waits until their chunk is filled.
  appended_.store(end, std::memory_order_relaxed);
  return {.end = end, .room = &chunk};
}

void WaitingRecords::AddChunk(size_t bytes, int64_t now_ns) {
  auto chunk = std::move(spare_);
  if (chunk == nullptr || chunk->capacity < bytes) {
    chunk = std::make_unique<Chunk>();
    chunk->capacity = std::max(kChunkBytes, bytes);
    chunk->bytes = std::make_unique_for_overwrite<std::byte[]>(chunk->capacity);
  }
  chunk->first = appended();
  chunk->since_ns = now_ns;
  chunk->reserved = 0;
  chunk->updates.clear();
  chunk->filled.store(0, std::memory_order_relaxed);  // nobody has it yet
  coming_.push_back(std::move(chunk));
}

// The chunk stays until it is filled.
void WaitingRecords::Fill(const Change& change, const ChangePlace& place, uint64_t synced) {
  const size_t bytes = RecordBytes(change.key.size(), change.value.size());
  const uint64_t position = place.end - bytes;
  Chunk& chunk = *static_cast<Chunk*>(place.room);
  EncodeRecord(change, journal_id_, position, synced,
               std::span(chunk.bytes.get() + (position - chunk.first), bytes));
  // Release: who sees that the whole chunk is filled sees the bytes of everybody who filled it,
  // because each of these additions continues the release sequence of those before it.
  chunk.filled.fetch_add(bytes, std::memory_order_release);
}

uint64_t WaitingRecords::AppendUpdates(const UpdateLane& lane, int64_t now_ns) {
  const std::span<const std::byte> bodies = lane.bodies();
  const size_t bytes = lane.position() - lane.from();
  ChangePlace place;
  {
    MutexLock lock(mutex_);
    place = Enter(bytes, now_ns);
    Chunk& chunk = *static_cast<Chunk*>(place.room);
    chunk.updates.push_back({.at = place.end - bytes - chunk.first,
                             .record_bytes = bytes,
                             .body_bytes = bodies.size()});
  }
  Chunk& chunk = *static_cast<Chunk*>(place.room);
  std::memcpy(chunk.bytes.get() + (place.end - chunk.first) - bodies.size(), bodies.data(),
              bodies.size());
  chunk.filled.fetch_add(bytes, std::memory_order_release);  // as in Fill
  return place.end;
}

// A record ends where the next body begins, or before. So it lies over its own body, which is
// copied, and over none that is still to be read.
void WaitingRecords::MakeRecords(Chunk* chunk, uint64_t synced) const {
  std::array<std::byte, UpdateLane::kMemoryMin> body;
  Change put;
  for (const Updates& updates : chunk->updates) {
    std::byte* const room = chunk->bytes.get() + updates.at;
    const std::span<const std::byte> bodies(room + updates.record_bytes - updates.body_bytes,
                                            updates.body_bytes);
    for (const PlacedUpdate& update : UpdateBodies(bodies, chunk->first + updates.at)) {
      GANNET_CHECK(update.bytes <= body.size(), "an update is longer than it may be");
      std::memcpy(body.data(), update.body, update.bytes);
      DecodeUpdateBody(body.data(), &put);
      const size_t bytes = update.record_bytes();
      const uint64_t position = update.position - bytes;
      EncodeRecord(put, journal_id_, position, synced,
                   std::span(chunk->bytes.get() + (position - chunk->first), bytes));
    }
  }
  chunk->updates.clear();
}

void WaitingRecords::Gather() {
  if (!leaving_.empty()) return;
  MutexLock lock(mutex_);
  std::swap(leaving_, coming_);
  leaving_since_ns_ = leaving_.empty() ? 0 : leaving_.front()->since_ns;
}

std::optional<WaitingRecords::Filled> WaitingRecords::First(uint64_t synced) {
  if (leaving_.empty()) return std::nullopt;
  Chunk& chunk = *leaving_.front();
  // Acquire: with Fill. Whoever fills it now lets the journal be written again afterwards.
  if (chunk.filled.load(std::memory_order_acquire) != chunk.reserved) return std::nullopt;
  MakeRecords(&chunk, synced);
  return Filled{.bytes = {chunk.bytes.get(), chunk.reserved}, .since_ns = chunk.since_ns};
}

// A chunk for one large value does not keep its memory.
void WaitingRecords::Pop() {
  std::unique_ptr<Chunk> chunk = std::move(leaving_.front());
  leaving_.pop_front();
  MutexLock lock(mutex_);
  bytes_ -= chunk->reserved;
  leaving_since_ns_ = leaving_.empty() ? 0 : leaving_.front()->since_ns;
  unwritten_since_ns_.store(WaitingSince(), std::memory_order_relaxed);
  if (chunk->capacity <= kChunkBytes) spare_ = std::move(chunk);
}

bool WaitingRecords::IsWorthAWrite() const {
  if (!leaving_.empty()) return true;
  MutexLock lock(mutex_);
  return bytes_ >= kChunkBytes;
}

int64_t WaitingRecords::WaitingSince() const {
  if (leaving_since_ns_ != 0) return leaving_since_ns_;
  return coming_.empty() ? 0 : coming_.front()->since_ns;
}

void WaitingRecords::NoteSynced(int64_t written_since_ns) {
  MutexLock lock(mutex_);
  const int64_t since_ns = written_since_ns != 0 ? written_since_ns : WaitingSince();
  unsynced_since_ns_.store(since_ns, std::memory_order_relaxed);
}

}  // namespace gannet
