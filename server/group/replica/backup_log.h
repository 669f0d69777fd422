#ifndef GANNET_SERVER_GROUP_REPLICA_BACKUP_LOG_H_
#define GANNET_SERVER_GROUP_REPLICA_BACKUP_LOG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "server/log/stream/ring_reader.h"
#include "server/log/stream/ring_tail.h"

namespace gannet {

// What a backup has of its group's records: those that it has applied, and behind them its *tail*,
// in the ring of its link, and in what a former link has left (docs/group.md, "Takeover").
//
//   log.Follow(ring, begin, tail_end, apply);   // a welcome came
//   log.OnCommitted(beacon.committed);
//   log.Apply(apply);
//   log.Seal();                                 // after the fence of the link
//   log.Follow(...)                             // a survivor: the next primary's stream
//   RingTail tail = log.TakeTail();             // or this is the next primary
//
// The *rest* is the tail of former streams. What the new stream brings is laid over it, LSN by LSN.
// It ends when the new stream has come to the end of the new primary's tail: not before, as this
// may be the only other copy; and not later, as what is behind was never committed, and the new
// stream has other records there.
//
// Thread safety: one thread, beside the device that writes into the ring.
class BackupLog {
 public:
  using Use = RingTail::Use;
  using UseUpdates = RingReader::UseUpdates;

  // It has all records that end at `applied` or before.
  explicit BackupLog(uint64_t applied) : applied_(applied), rest_(applied) {}

  // A new link's stream begins. Its first record is the first one that the new primary has not
  // applied, so what is before it is committed, and applied from the rest. Returns false if the
  // rest does not have that: then the stream cannot be followed. REQUIRES: no link, or a sealed
  // one; the ring is zero and outlives the link.
  bool Follow(std::span<std::byte> ring, const RingReader::Begin& begin, uint64_t tail_end,
              Use apply);
  // All that ends there or before is committed in the stream that is followed.
  void OnCommitted(uint64_t committed);
  // Looks for what has arrived, and applies what is committed: updates by `apply_updates`, many at
  // once, if there is one.
  void Apply(Use apply, std::optional<UseUpdates> apply_updates = std::nullopt);
  // Reads the ring to its end, and keeps that. Returns false if the stream and the rest do not fit
  // together. Without a link it changes nothing. REQUIRES: the link is fenced.
  bool Seal();
  // Where the stream that was sealed last goes on: all of it before was taken. A new link to the
  // same primary follows it from there. nullopt: none was sealed.
  const std::optional<RingReader::Begin>& sealed_at() const { return sealed_at_; }
  // Returns all that is not applied. It comes again in this member's own stream. REQUIRES: no link,
  // or a sealed one.
  RingTail TakeTail();

  uint64_t applied() const { return applied_; }
  // Looks for what has arrived. Returns where all ends that the stream that it followed last has
  // brought, applied or not. Of two backups of one primary, who has more has all that the other
  // one has. The rest does not count: what is behind the new stream may never have been committed.
  uint64_t Received();
  // What the ring's primary may write again; 0 without a link.
  uint64_t consumed() const { return reader_ ? reader_->consumed() : 0; }

 private:
  // Ends the rest if the new stream has come far enough, and drops of it what is applied.
  void ShortenRest();

  uint64_t applied_;
  uint64_t received_ = 0;  // by the last stream, as far as anybody has looked
  uint64_t committed_ = 0;
  RingTail rest_;
  uint64_t tail_end_ = 0;             // of the primary that is followed
  std::optional<RingReader> reader_;  // of the link; nullopt: none, or it is sealed
  uint64_t stream_id_ = 0;            // of the last one that was followed
  std::optional<RingReader::Begin> sealed_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_BACKUP_LOG_H_
