// Positions are given under one mutex, so all consumers get the changes in one order. What is safe
// is the least of what the required consumers have.

#include "server/log/changes/change_stream.h"

#include <algorithm>

#include "common/base/check.h"
#include "server/log/changes/record.h"
#include "server/log/changes/update_lane_inline.h"

namespace gannet {

void ChangeSink::RecordUpdates(UpdateLane* lane) {
  Change put;
  for (const PlacedUpdate& update : lane->updates()) {
    DecodeUpdateBody(update.body, &put);
    GANNET_CHECK(Record(put), "whoever takes updates records them");
  }
}

void ChangeConsumer::EndUpdates(UpdateLane* lane) {
  lane->Seal();
  Change put;
  for (const PlacedUpdate& update : lane->updates()) {
    DecodeUpdateBody(update.body, &put);
    ChangePlace place{.end = update.position};
    GANNET_CHECK(Take(put, &place), "whoever begins updates takes them");
    if (place.room != nullptr) Fill(put, place);
  }
}

void ChangeStream::BeginAt(uint64_t position) {
  GANNET_CHECK(consumers_.empty(), "the stream has consumers");
  end_.store(position, std::memory_order_relaxed);
}

void ChangeStream::Add(ChangeConsumer* consumer, Need need) {
  consumers_.push_back(consumer);
  if (need == Need::kRequired) required_.push_back(consumer);
}

void ChangeStream::Remove(ChangeConsumer* consumer) {
  std::erase(consumers_, consumer);
  std::erase(required_, consumer);
}

std::optional<ChangePlace> ChangeStream::Reserve(const Change& change) {
  ChangePlace place;
  if (!Take(change, &place)) return std::nullopt;
  return place;
}

bool ChangeStream::Take(const Change& change, ChangePlace* place) {
  return GiveTo(change, place, [&change](ChangeConsumer* consumer, ChangePlace* its) {
    return consumer->Take(change, its);
  });
}

std::optional<ChangePlace> ChangeStream::ReserveUndo(const Change& deletion,
                                                     std::span<const SessionRecord> answers) {
  ChangePlace place;
  const bool taken = GiveTo(deletion, &place, [&](ChangeConsumer* consumer, ChangePlace* its) {
    return consumer->TakeUndo(deletion, answers, its);
  });
  if (!taken) return std::nullopt;
  return place;
}

template <class Give>
bool ChangeStream::GiveTo(const Change& change, ChangePlace* place, const Give& give) {
  const size_t bytes = RecordBytes(change.key.size(), change.value.size());
  WordMutexLock lock(mutex_);
  const uint64_t end = end_.load(std::memory_order_relaxed) + bytes;
  place->end = end;
  for (ChangeConsumer* const consumer : consumers_) {
    ChangePlace its{.end = end};
    if (!give(consumer, &its)) {
      GANNET_CHECK(consumer == consumers_.front(), "others have the change already");
      return false;
    }
    if (its.room != nullptr) place->room = its.room;
  }
  end_.store(end, std::memory_order_relaxed);
  return true;
}

bool ChangeStream::BeginUpdates(UpdateLane* lane) {
  mutex_.Lock();
  lane->Begin(end());
  for (ChangeConsumer* const consumer : consumers_) {
    if (consumer->BeginUpdates(lane)) continue;
    GANNET_CHECK(consumer == consumers_.front(), "others have begun already");
    mutex_.Unlock();
    return false;
  }
  return true;
}

void ChangeStream::EndUpdates(UpdateLane* lane) {
  for (ChangeConsumer* const consumer : consumers_) consumer->EndUpdates(lane);
  end_.store(lane->position(), std::memory_order_relaxed);
  mutex_.Unlock();
}

// Consumers that writes wait for may hold a lock from BeginUpdates on. There are none.
void ChangeStream::RecordUpdates(UpdateLane* lane) {
  GANNET_CHECK(required_.empty(), "writes wait for this stream");
  WordMutexLock lock(mutex_);
  lane->MoveTo(end());
  for (ChangeConsumer* const consumer : consumers_) consumer->EndUpdates(lane);
  end_.store(lane->position(), std::memory_order_relaxed);
}

bool ChangeStream::Hears() const {
  return std::ranges::any_of(consumers_, [](const auto* it) { return it->Hears(); });
}

void ChangeStream::Pass(uint64_t bytes) {
  WordMutexLock lock(mutex_);
  end_.store(end_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

void ChangeStream::Fill(const Change& change, const ChangePlace& place) {
  if (place.room == nullptr) return;
  for (ChangeConsumer* const consumer : consumers_) consumer->Fill(change, place);
}

void ChangeStream::RecordSession(const SessionRecord& record) {
  WordMutexLock lock(mutex_);
  for (ChangeConsumer* const consumer : consumers_) consumer->TakeSession(record);
}

uint64_t ChangeStream::safe() const {
  uint64_t safe = UINT64_MAX;
  for (const ChangeConsumer* const consumer : required_) safe = std::min(safe, consumer->safe());
  return safe;
}

}  // namespace gannet
