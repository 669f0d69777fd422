// The primary's end of the ring: one copy of the records here, of which each link ships what it has
// not shipped yet. A record never crosses the ring's end, so a wrap record, or nothing, fills the
// rest. Room is what every link has completed and its backup has consumed, and what the store has
// published (KeepFrom); CountRoom keeps its end, so that an append compares one number.

#include "server/log/stream/ring_writer.h"

#include <algorithm>

#include "common/base/align.h"
#include "common/base/check.h"
#include "server/log/stream/update_record.h"

namespace gannet {

RingWriter::RingWriter(std::span<std::byte> ring, uint64_t stream_id, uint64_t first_lsn)
    : ring_(ring), stream_id_(stream_id), end_{.lsn = first_lsn, .position = 0} {
  GANNET_CHECK(ring.size() >= 2 * kRingRecordBytesMax && ring.size() % kRecordAlignment == 0,
               "a ring has room for the two longest records");
}

uint64_t RingWriter::free_from() const {
  uint64_t least = std::min(end_.position, kept_from_);
  for (const auto& [id, link] : links_) least = std::min(least, link.free());
  return least;
}

void RingWriter::CountRoom() {
  const bool free = links_.empty() && kept_from_ == kKeepNone;
  room_end_ = free ? UINT64_MAX : free_from() + ring_.size();
}

bool RingWriter::HasRoomFor(size_t bytes) const { return PlaceFor(bytes) + bytes <= room_end_; }

size_t RingWriter::free_bytes() const {
  return ring_.size() - static_cast<size_t>(end_.position - free_from());
}

void RingWriter::Wrap(uint64_t to, uint64_t committed) {
  const RingRecord wrap = RingRecord::Wrap();
  wrap_from_ = end_.position;
  wrap_to_ = to;
  if (to - end_.position < wrap.bytes()) return;
  EncodeRingRecord(wrap, {.stream_id = stream_id_, .lsn = end_.lsn}, committed,
                   ring_.subspan(end_.position % ring_.size(), wrap.bytes()));
  wrap_from_ += wrap.bytes();
}

uint64_t RingWriter::Append(const RingRecord& record, uint64_t committed) {
  const size_t bytes = record.bytes();
  const uint64_t position = PlaceFor(bytes);
  GANNET_CHECK(record.kind != RingRecordKind::kWrap && position + bytes <= room_end_,
               "no room in the ring");
  EncodeRingRecord(record, {.stream_id = stream_id_, .lsn = end_.lsn}, committed,
                   Enter(position, bytes, committed));
  end_ = {.lsn = end_.lsn + bytes, .position = position + bytes};
  return end_.lsn;
}

bool RingWriter::TryAppend(const Change& change, uint64_t committed) {
  const size_t bytes = change.IsUpdate() ? UpdateBytes(change.key.size(), change.value.size())
                                         : RecordBytes(change.key.size(), change.value.size());
  const uint64_t position = PlaceFor(bytes);
  if (position + bytes > room_end_) return false;
  const std::span<std::byte> out = Enter(position, bytes, committed);
  if (change.IsUpdate()) {
    EncodeUpdate(change, {.stream_id = stream_id_, .lsn = end_.lsn}, committed, out);
  } else {
    EncodeRecord(change, stream_id_, end_.lsn, committed, out);
  }
  end_ = {.lsn = end_.lsn + bytes, .position = position + bytes};
  return true;
}

RingWriter::LinkId RingWriter::AddLink() {
  links_[next_link_] = {.shipped = end_, .completed = end_, .consumed = end_.position};
  CountRoom();
  return next_link_++;
}

void RingWriter::RemoveLink(LinkId id) {
  links_.erase(id);
  CountRoom();
}

// Between two places there are no fewer bytes of the ring than of records, as wraps take some.
bool RingWriter::GoBack(LinkId id, const RingMark& to) {
  Link& link = links_.at(id);
  if (to.position < link.consumed || to.position > link.shipped.position) return false;
  if (to.lsn > link.shipped.lsn ||
      link.shipped.position - to.position < link.shipped.lsn - to.lsn) {
    return false;
  }
  if (to.position > wrap_from_ && to.position < wrap_to_) return false;  // no record begins there
  link = {.shipped = to, .completed = to, .consumed = to.position};
  CountRoom();
  return true;
}

RingWriter::Shipment RingWriter::Ship(LinkId id) {
  Link& link = links_.at(id);
  if (link.shipped == end_ || link.shipments.size() == kShipmentsMax) return {};
  const auto chunk = [this](uint64_t from, uint64_t to) {
    return Chunk{.offset = from % ring_.size(), .bytes = to - from};
  };
  const uint64_t from = link.shipped.position;
  link.shipped = end_;
  link.shipments.push_back(end_);
  // Less than the ring's length is to be shipped, so it crosses at most the last turn.
  if (from >= wrap_to_) return {chunk(from, end_.position)};
  if (from == wrap_from_) return {chunk(wrap_to_, end_.position)};
  return {chunk(from, wrap_from_), chunk(wrap_to_, end_.position)};
}

void RingWriter::OnCompleted(LinkId id) {
  Link& link = links_.at(id);
  GANNET_CHECK(!link.shipments.empty(), "a completion of nothing");
  link.completed = link.shipments.front();
  link.shipments.pop_front();
  CountRoom();
}

bool RingWriter::OnConsumed(LinkId id, uint64_t position) {
  Link& link = links_.at(id);
  if (position < link.consumed || position > link.shipped.position) return false;
  link.consumed = position;
  CountRoom();
  return true;
}

}  // namespace gannet
