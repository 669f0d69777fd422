#include "server/log/stream/ring_tail.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/base/check.h"

namespace gannet {
namespace {

RingRecord Decoded(std::span<const std::byte> bytes, const RingRecordPlace& place) {
  const auto view = DecodeRingRecord(bytes, place);
  GANNET_CHECK(view.has_value(), "the record was proven before");
  return view->record;
}

}  // namespace

void RingTail::Add(std::span<const std::byte> bytes, const RingRecordPlace& place) {
  GANNET_CHECK(place.lsn == end_, "records follow each other");
  entries_.push_back({.place = place, .bytes = {bytes.begin(), bytes.end()}});
  end_ += bytes.size();
}

void RingTail::TakeFirst(Use use) {
  GANNET_CHECK(!entries_.empty(), "there is no record");
  const Entry entry = std::move(entries_.front());
  entries_.pop_front();
  begin_ += entry.bytes.size();
  use(Decoded(entry.bytes, entry.place), entry.place.lsn, begin_);
}

void RingTail::Take(uint64_t limit, Use use) {
  while (!entries_.empty() && begin_ + entries_.front().bytes.size() <= limit) TakeFirst(use);
}

void RingTail::Drop(uint64_t limit) {
  while (!entries_.empty() && begin_ + entries_.front().bytes.size() <= limit) {
    begin_ += entries_.front().bytes.size();
    entries_.pop_front();
  }
}

void RingTail::ForEach(Use use) const {
  for (const Entry& entry : entries_) {
    use(Decoded(entry.bytes, entry.place), entry.place.lsn, entry.place.lsn + entry.bytes.size());
  }
}

bool RingTail::LayOver(RingTail newer) {
  GANNET_CHECK(newer.begin_ <= end_, "records between the two are missing");
  for (const Entry& entry : entries_) {
    const uint64_t begin = entry.place.lsn;
    const uint64_t end = begin + entry.bytes.size();
    for (const uint64_t at : {newer.begin_, newer.end_}) {
      if (begin < at && at < end) return false;
    }
  }
  std::deque<Entry> all;
  for (Entry& entry : entries_) {
    if (entry.place.lsn < newer.begin_) all.push_back(std::move(entry));
  }
  std::move(newer.entries_.begin(), newer.entries_.end(), std::back_inserter(all));
  for (Entry& entry : entries_) {
    if (entry.place.lsn >= newer.end_) all.push_back(std::move(entry));
  }
  entries_ = std::move(all);
  begin_ = std::min(begin_, newer.begin_);
  end_ = std::max(end_, newer.end_);
  return true;
}

}  // namespace gannet
