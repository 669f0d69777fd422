#ifndef GANNET_SERVER_LOG_STREAM_RING_WRITER_H_
#define GANNET_SERVER_LOG_STREAM_RING_WRITER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>

#include "server/log/stream/ring_record.h"

namespace gannet {

// A place in a stream: the LSN, and the position in the ring. Positions count the ring's bytes, and
// grow for ever.
struct RingMark {
  uint64_t lsn = 0;
  uint64_t position = 0;
  friend bool operator==(const RingMark&, const RingMark&) = default;
};

// The primary's end of a stream: a ring of records in its own memory, and how far each backup has
// them. A backup's ring has the same length, and gets each record at the same place by RDMA WRITE.
//
//   if (!writer.HasRoomFor(bytes)) ...      // a backup is slow: take no requests
//   writer.Append(record, committed);       // encodes it once, for all backups
//   for each link: post writer.Ship(link)   // WRITEs of all that was appended
//   writer.OnCompleted(link)                // when the last of those WRITEs completed
//
// Invariants:
//   1. A record does not cross the ring's end. Behind the last one that fits there is a wrap, or
//      less room than a wrap takes.
//   2. For each link, what is consumed and completed is free, and end - free is at most the ring's
//      length. So no byte is written that a backup still needs, or that the device may send again
//      because an acknowledgement was lost. Nor one that KeepFrom keeps.
//
// Thread safety: one thread.
class RingWriter {
 public:
  using LinkId = uint32_t;
  // One link may have so many calls of Ship that are not completed.
  static constexpr size_t kShipmentsMax = 64;

  struct Chunk {
    size_t offset = 0;  // in both rings
    size_t bytes = 0;
  };
  // What to WRITE, in this order; nothing if the first is empty. The second one is empty unless the
  // records go on at the ring's start.
  using Shipment = std::array<Chunk, 2>;

  // REQUIRES: an aligned ring that outlives the writer, and has room for the two longest records.
  RingWriter(std::span<std::byte> ring, uint64_t stream_id, uint64_t first_lsn);

  // Returns whether a record of so many bytes can be appended now.
  bool HasRoomFor(size_t bytes) const;
  // How many bytes are free, until which a wrap may take some.
  size_t free_bytes() const;
  // Returns the LSN behind the record. REQUIRES: HasRoomFor(record.bytes()); not a wrap.
  uint64_t Append(const RingRecord& record, uint64_t committed);
  // Appends a change, or returns false if there is no room. REQUIRES: a value of at most
  // kPartBytes.
  bool TryAppend(const Change& change, uint64_t committed);
  // Returns where updates may be appended straight (UpdateLane), up to the ring's end or to what is
  // not free. Empty at the ring's start, where a wrap comes first: Append the next record. Call
  // Appended then, before anything else.
  std::span<std::byte> UpdateRoom() const {
    const size_t offset = end_.position % ring_.size();
    if (offset == 0) return {};
    return ring_.subspan(offset,
                         std::min<uint64_t>(ring_.size() - offset, room_end_ - end_.position));
  }
  void Appended(size_t bytes) {
    end_ = {.lsn = end_.lsn + bytes, .position = end_.position + bytes};
  }
  // From now on, records at this position or behind it stay in this ring, whatever backups have
  // freed; kKeepNone: only those that backups need.
  static constexpr uint64_t kKeepNone = UINT64_MAX;
  void KeepFrom(uint64_t position) {
    kept_from_ = position;
    CountRoom();
  }
  RingMark end() const { return end_; }
  uint64_t stream_id() const { return stream_id_; }

  // Adds a link that begins here, at end(). It holds what follows in the ring, also while nobody
  // ships it.
  LinkId AddLink();
  void RemoveLink(LinkId id);
  // The link's backup has a new ring, and of the old one nothing behind `to`: what is shipped next
  // begins there, and what was under way counts for nothing. Returns false if that cannot be: the
  // ring here has that no more, or it was never shipped. Then nothing changed.
  bool GoBack(LinkId id, const RingMark& to);
  // Takes all that was appended and not shipped yet. Returns nothing if there is nothing, or if
  // kShipmentsMax shipments are under way.
  Shipment Ship(LinkId id);
  // The link's oldest shipment has completed.
  void OnCompleted(LinkId id);
  // Returns whether any link's shipment has not completed yet.
  bool ships() const {
    return std::ranges::any_of(links_, [](const auto& it) { return !it.second.shipments.empty(); });
  }
  // All records that end there or before are in the backup's ring.
  uint64_t completed_lsn(LinkId id) const { return links_.at(id).completed.lsn; }
  // How many bytes of the ring the backup has not said to be free.
  uint64_t unconsumed_bytes(LinkId id) const { return end_.position - links_.at(id).consumed; }
  // Whether no other link frees the ring later than this one.
  bool IsLast(LinkId id) const { return links_.at(id).free() <= free_from(); }
  // The backup says that its ring is free up to a position. Returns false if that cannot be: it
  // goes back, or beyond what was shipped. Then nothing changed, and the link is to be broken.
  bool OnConsumed(LinkId id, uint64_t position);

 private:
  struct Link {
    RingMark shipped;
    RingMark completed;
    uint64_t consumed = 0;  // position
    std::deque<RingMark> shipments;

    uint64_t free() const { return std::min(consumed, completed.position); }
  };

  // Returns the position of the next record of so many bytes.
  uint64_t PlaceFor(size_t bytes) const {
    const size_t offset = end_.position % ring_.size();
    if (offset + bytes <= ring_.size()) return end_.position;
    return end_.position + (ring_.size() - offset);
  }
  uint64_t free_from() const;  // what lies before has been freed
  void CountRoom();            // call it after each change of a link
  // Returns the bytes where the next record goes. Makes a wrap before it, if need be.
  std::span<std::byte> Enter(uint64_t position, size_t bytes, uint64_t committed) {
    const size_t offset = position % ring_.size();
    // A record at the ring's start. The one before it may end where the ring ends, so that nothing
    // is skipped: one WRITE cannot have both all the same.
    if (offset == 0) [[unlikely]]
      Wrap(position, committed);
    return ring_.subspan(offset, bytes);
  }
  void Wrap(uint64_t to, uint64_t committed);

  const std::span<std::byte> ring_;
  const uint64_t stream_id_;
  RingMark end_;
  // Where the records before the ring's last turn end, and the position at which it starts anew.
  // What lies between is not shipped.
  uint64_t wrap_from_ = 0;
  uint64_t wrap_to_ = 0;
  uint64_t room_end_ = UINT64_MAX;  // no record ends behind this position
  uint64_t kept_from_ = kKeepNone;
  LinkId next_link_ = 0;
  std::map<LinkId, Link> links_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_RING_WRITER_H_
