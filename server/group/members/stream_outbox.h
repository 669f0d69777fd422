#ifndef GANNET_SERVER_GROUP_MEMBERS_STREAM_OUTBOX_H_
#define GANNET_SERVER_GROUP_MEMBERS_STREAM_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "common/protocol/versions.h"
#include "server/log/changes/change.h"
#include "server/log/changes/session_record.h"
#include "server/log/stream/ring_writer.h"

namespace gannet {

// Brings changes into a primary's ring, in their order, and those for which the ring has no room
// now into a queue of their own. Long values go in parts. Knows which of the changes are committed.
//
// Changes have positions, those of the stream of changes. Records have LSNs. Both grow in the same
// order.
//
// One thread at a time.
class StreamOutbox {
 public:
  // More than this is not queued. The largest value is, whatever waits.
  static constexpr size_t kQueuedBytesMax = 4 << 20;

  // Transfers are numbered from `first_transfer` on. `writer` outlives this.
  StreamOutbox(RingWriter* writer, uint16_t stream_version, uint64_t first_transfer)
      : writer_(writer), version_(stream_version), transfers_(first_transfer) {}

  // From now on records may be those of this version, which is newer.
  void RaiseTo(uint16_t stream_version) { version_ = stream_version; }
  // Takes a change, whose position ends at `position`.
  void Add(const Change& change, uint64_t position, uint64_t committed);
  // Whether updates may be appended to the ring by somebody else, who calls OnAppended then.
  bool TakesUpdates() const { return version_ >= kStreamVersionOfBatches && queue_.empty(); }
  // The changes up to `position` are in the ring.
  void OnAppended(uint64_t position) { Mark(position); }
  // Takes a record of a session, which comes behind the changes that were added before.
  void AddSession(const SessionRecord& record, uint64_t committed);
  // Brings what is queued into the ring, as far as there is room.
  void Fill(uint64_t committed);
  // A link begins here. The parts of a long value that are in the ring already are sent again.
  void OnLink() { sent_ = 0; }

  bool empty() const { return queue_.empty(); }
  size_t queued_bytes() const { return queued_bytes_; }
  bool crowded() const { return queued_bytes_ > kQueuedBytesMax; }
  // Returns the position up to which all is committed if `committed` is the committed LSN.
  uint64_t PositionAt(uint64_t committed);

 private:
  struct Queued {
    std::optional<SessionRecord> session;  // nullopt: a change
    Change change;                         // without views
    std::string key;
    std::string value;  // of a session's record: its answers
    uint64_t position;
  };
  struct Marked {
    uint64_t lsn;
    uint64_t position;
  };

  // Notes that the changes up to `position` are in the ring.
  void Mark(uint64_t position);
  // Returns false if there is no room.
  bool TryAppend(const RingRecord& record, uint64_t committed);
  bool TryAppendShort(const Change& change, uint64_t committed);
  bool TryAppendFirst(uint64_t committed);
  bool TryAppendLong(const Queued& queued, const Change& change, uint64_t committed);

  RingWriter* const writer_;
  uint16_t version_;  // of the stream
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;
  // Not each change has a mark: those that are shipped together need only one.
  std::deque<Marked> marks_;
  bool mark_grows_ = false;  // the last one
  uint64_t position_ = 0;    // all is committed up to here
  uint64_t transfers_;
  size_t sent_ = 0;  // bytes of the first one's value that are in the ring
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_STREAM_OUTBOX_H_
