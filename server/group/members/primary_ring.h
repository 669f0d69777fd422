#ifndef GANNET_SERVER_GROUP_MEMBERS_PRIMARY_RING_H_
#define GANNET_SERVER_GROUP_MEMBERS_PRIMARY_RING_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>

#include "server/group/members/stream_outbox.h"
#include "server/group/replica/opening.h"
#include "server/log/changes/update_lane.h"
#include "server/log/stream/ring_writer.h"
#include "server/sessions/session/session_copies.h"

namespace gannet {

// The group's stream at its primary: the ring of records that followers get, which changes are in
// it, and up to where they are committed.
//
// 1. Changes and records of sessions go into the ring in the order in which they are appended.
//    What finds no room waits in the outbox, and what comes later waits behind it.
// 2. Records that the store has not published yet stay in the ring: it reads updates where the lane
//    wrote them.
// 3. What is appended by a stream of one version is never of a newer one. The version only grows.
// 4. Its copies of sessions have all that was appended.
//
// One thread at a time: whoever holds the mutex of PrimaryStream.
class PrimaryRing {
 public:
  // REQUIRES: as RingWriter. Transfers are numbered from `first_transfer` on.
  PrimaryRing(std::span<std::byte> ring, uint64_t stream_id, uint64_t first_lsn,
              uint64_t first_transfer)
      : bytes_(ring.size()),
        writer_(ring, stream_id, first_lsn),
        outbox_(&writer_, version_, first_transfer),
        committed_(first_lsn) {}

  // Takes the next change of the stream of changes, which ends at `position`.
  void Append(const Change& change, uint64_t position) {
    outbox_.Add(change, position, committed_);
    recorded_ = position;
    sessions_.Take(change);
  }
  // Takes a record of a session, which lies between the change before and the next one.
  void AppendSession(const SessionRecord& record) {
    outbox_.AddSession(record, committed_);
    sessions_.Take(record);
  }
  // The lane's memory is in the ring, if there is room. Nothing else is called until EndUpdates.
  void BeginUpdates(UpdateLane* lane);
  void EndUpdates(UpdateLane* lane);
  // Appends what the ring has room for of a tail that is sent again.
  void SendTail(Opening* opening) { opening->Send(&writer_, committed_); }

  // All sessions of the group, when it opens.
  void BeginSessions(SessionCopies sessions) { sessions_ = std::move(sessions); }
  // Appends what a joiner has to know of them. Those that are in sync may be told again.
  void AppendSessions();

  // Brings what waits into the ring, as far as there is room.
  void Fill() { outbox_.Fill(committed_); }
  bool keeps() const { return !kept_.empty(); }
  // The store has published all up to this position in the stream of changes.
  void LetPublishedGo(uint64_t published);
  // All that ends at this LSN or before is committed. Returns the position up to which the changes
  // are.
  uint64_t OnCommitted(uint64_t lsn) {
    committed_ = lsn;
    return outbox_.PositionAt(lsn);
  }
  uint64_t committed() const { return committed_; }  // LSN
  uint64_t recorded() const { return recorded_; }    // position of the last change

  // Whether something waits for room in the ring; for too much, no change is taken.
  bool waits() const { return !outbox_.empty(); }
  bool crowded() const { return outbox_.crowded(); }
  size_t waiting_bytes() const { return outbox_.queued_bytes(); }
  // Whether followers should soon say what they have freed, which they do after beacons.
  bool WantsRoom() const { return waits() || writer_.free_bytes() < bytes_ / 2; }

  uint16_t version() const { return version_; }
  // Records that are there already keep their kinds, and so their LSNs.
  void RaiseTo(uint16_t version) {
    version_ = version;
    outbox_.RaiseTo(version);
  }
  // Adds a link, which begins here.
  RingWriter::LinkId AddLink() {
    outbox_.OnLink();
    return writer_.AddLink();
  }
  // Of links: what to WRITE, what has completed, and what they have freed.
  RingWriter& writer() { return writer_; }
  const RingWriter& writer() const { return writer_; }
  size_t bytes() const { return bytes_; }

 private:
  // Records that the store has not published yet, as it reads them in the ring.
  struct Kept {
    uint64_t position;  // in the stream of changes, behind them
    uint64_t from;      // in the ring
  };
  static constexpr size_t kKeptMax = 64;  // then they are put together

  void Keep(const Kept& kept);
  void SealInRing(UpdateLane* lane);
  void AddOneByOne(UpdateLane* lane);

  const size_t bytes_;
  RingWriter writer_;
  uint16_t version_ = kStreamVersions.min;
  StreamOutbox outbox_;
  bool lane_in_ring_ = false;  // between BeginUpdates and EndUpdates
  std::deque<Kept> kept_;
  SessionCopies sessions_;
  uint64_t committed_;
  uint64_t recorded_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_PRIMARY_RING_H_
