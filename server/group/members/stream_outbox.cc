// A change goes into the ring at once if nothing waits and there is room, else behind what waits.
// A long value goes in parts. Marks say which record ends which position, so that a commit, which
// is of records, is told as a position.

#include "server/group/members/stream_outbox.h"

#include <algorithm>
#include <string_view>

namespace gannet {

bool StreamOutbox::TryAppend(const RingRecord& record, uint64_t committed) {
  if (!writer_->HasRoomFor(record.bytes())) return false;
  writer_->Append(record, committed);
  return true;
}

bool StreamOutbox::TryAppendShort(const Change& change, uint64_t committed) {
  if (version_ >= kStreamVersionOfUpdates || !change.IsUpdate()) [[likely]]
    return writer_->TryAppend(change, committed);
  Change put = change;
  put.item_checksum = 0;
  return writer_->TryAppend(put, committed);
}

void StreamOutbox::Add(const Change& change, uint64_t position, uint64_t committed) {
  if (queue_.empty() && change.value.size() <= kPartBytes && TryAppendShort(change, committed)) {
    return Mark(position);
  }
  Queued& queued = queue_.emplace_back(Queued{.session = std::nullopt,
                                              .change = change,
                                              .key = std::string(change.key),
                                              .value = std::string(change.value),
                                              .position = position});
  queued.change.key = queued.change.value = {};
  queued_bytes_ += queued.key.size() + queued.value.size();
  Fill(committed);
}

void StreamOutbox::Mark(uint64_t position) {
  if (!mark_grows_) marks_.emplace_back();
  marks_.back() = {.lsn = writer_->end().lsn, .position = position};
  mark_grows_ = true;
}

void StreamOutbox::AddSession(const SessionRecord& record, uint64_t committed) {
  if (queue_.empty() && TryAppend(RingRecord::OfSession(record), committed)) return;
  Queued& queued = queue_.emplace_back(Queued{.session = record,
                                              .change = {},
                                              .key = {},
                                              .value = std::string(record.answers),
                                              .position = 0});
  queued.session->answers = {};
  queued_bytes_ += queued.value.size();
}

void StreamOutbox::Fill(uint64_t committed) {
  while (!queue_.empty()) {
    if (!TryAppendFirst(committed)) break;
    const Queued& first = queue_.front();
    if (!first.session) Mark(first.position);
    queued_bytes_ -= first.key.size() + first.value.size();
    queue_.pop_front();
  }
  mark_grows_ = false;
}

bool StreamOutbox::TryAppendFirst(uint64_t committed) {
  const Queued& first = queue_.front();
  if (first.session) {
    SessionRecord session = *first.session;
    session.answers = first.value;
    return TryAppend(RingRecord::OfSession(session), committed);
  }
  Change change = first.change;
  change.key = first.key;
  if (first.value.size() > kPartBytes) return TryAppendLong(first, change, committed);
  change.value = first.value;
  return TryAppendShort(change, committed);
}

bool StreamOutbox::TryAppendLong(const Queued& queued, const Change& change, uint64_t committed) {
  if (sent_ == 0) ++transfers_;
  while (sent_ < queued.value.size()) {
    const std::string_view part = std::string_view(queued.value).substr(sent_, kPartBytes);
    const auto offset = static_cast<uint32_t>(sent_);
    if (!TryAppend(RingRecord::Part(transfers_, offset, part), committed)) return false;
    sent_ += part.size();
  }
  const auto bytes = static_cast<uint32_t>(queued.value.size());
  if (!TryAppend(RingRecord::LongPut(change, transfers_, bytes), committed)) return false;
  sent_ = 0;
  return true;
}

uint64_t StreamOutbox::PositionAt(uint64_t committed) {
  while (!marks_.empty() && marks_.front().lsn <= committed) {
    position_ = marks_.front().position;
    marks_.pop_front();
  }
  mark_grows_ = mark_grows_ && !marks_.empty();
  return position_;
}

}  // namespace gannet
