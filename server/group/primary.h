#ifndef GANNET_SERVER_GROUP_PRIMARY_H_
#define GANNET_SERVER_GROUP_PRIMARY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/checked_state.h"
#include "common/base/mutex.h"
#include "common/base/word_mutex.h"
#include "common/protocol/connect.h"
#include "common/rdma/completion.h"
#include "common/rdma/memory.h"
#include "server/changes/change_stream.h"
#include "server/changes/update_lane.h"
#include "server/group/group_context.h"
#include "server/group/primary_link.h"
#include "server/group/primary_phase.h"
#include "server/group/replica_arrival.h"
#include "server/group/ring_wait.h"
#include "server/group/stream_outbox.h"
#include "server/replica/commit.h"
#include "server/replica/group_directory.h"
#include "server/replica/group_standing.h"
#include "server/replica/hand_over.h"
#include "server/replica/membership.h"
#include "server/replica/opening.h"
#include "server/replica/partition_end.h"
#include "server/replica/primary_lease.h"
#include "server/replica/published_lsn.h"
#include "server/replica/unanswered_beacons.h"
#include "server/session/session_copies.h"
#include "server/stream/ring_writer.h"

namespace gannet {

// What has to be done before a primary takes clients.
class PrimaryOpener {
 public:
  virtual ~PrimaryOpener() = default;
  // The tail is committed: applies it, and lets the workers begin.
  virtual void Open(const RingTail& tail) = 0;
  // Then, whether clients may be taken. Called until it returns true.
  virtual bool MayOpen() = 0;
};

// What a server does as primary of its group: takes the stream of changes, WRITEs it into the rings
// of its backups, and says up to where it is committed (docs/group.md).
//
//   primary->Turn(now);                        // the member's thread, when something came
//   primary->Append(change, position);         // a worker, by the stream of changes
//   primary->Pump();                           // a worker, before it publishes
//   writes.Publish(primary->safe());
//
// It is never destroyed while workers run: a process that was primary serves no more afterwards.
//
// Thread safety: Turn, and what begins with On, by the member's thread. The rest from any thread.
// A mutex guards all. It is taken behind the stream's, and nothing is called under it that takes
// others, but the register's requests.
class Primary {
 public:
  // `terms` are those of the group as operators have them now. `known` names this server as
  // primary, and `tail` is what is still to be committed. `context` and `opener` outlive the
  // primary. ResourceExhausted: no memory for the ring.
  static absl::StatusOr<std::unique_ptr<Primary>> Create(
      const GroupContext& context, PrimaryOpener* opener, const GroupTerms& terms,
      uint64_t stream_id, const GroupRegister& known, const RingTail& tail);
  ~Primary();

  // Returns whether more was committed than at the last Turn.
  bool Turn(int64_t now);
  void OnArrival(ReplicaArrival arrival, int64_t now);
  // A connection of this name is gone.
  void OnGone(uint64_t name, int64_t now);
  // Begins to hand over to the first backup that is in sync and heard, unless that is under way.
  // `why` is for people.
  void StepDown(int64_t now, std::string_view why);
  // All sessions of the group, when it opens.
  void BeginSessions(SessionCopies sessions);
  // Somebody else is primary.
  bool deposed() const { return phase_.now() == PrimaryPhase::kDeposed; }
  bool open() const { return IsOpen(phase_.now()); }
  GroupRegister known() const;
  // Whether the register is lost, and nobody can have led the group since (Membership).
  bool MayAdopt() const;

  // Takes the next change of the stream, which ends at `position`. Returns false if it must not
  // happen now.
  bool Append(const Change& change, uint64_t position);
  // The same for a deletion that undoes waiting writes, with the answers that come before it.
  bool AppendUndo(const Change& deletion, std::span<const SessionRecord> answers, uint64_t end);
  // As ChangeConsumer has them. The lane's memory is in the ring, if there is room.
  GANNET_UNCHECKED_LOCKS bool BeginUpdates(UpdateLane* lane);
  GANNET_UNCHECKED_LOCKS void EndUpdates(UpdateLane* lane);
  // Takes a record of a session, which lies between the change before and the next one.
  void AppendSession(const SessionRecord& record);
  bool takes() const { return takes_.load(std::memory_order_relaxed); }
  // Whether as many members are in sync as writes need. A hint.
  bool has_copies() const { return has_copies_.load(std::memory_order_relaxed); }
  // WRITEs what was appended, and sees what is committed now.
  void Pump();
  // A worker is going to sleep until more is committed: fd_of_writes() is readable when WRITEs have
  // completed. It must Pump between BeginWait and its sleep, and end the wait when it is awake.
  void BeginWait();
  void EndWait(bool slept);
  int fd_of_writes() const { return made_.stream_cq->fd(); }
  // What ends there or before is committed. Acquire: whoever publishes it has it in all rings.
  uint64_t safe() const { return safe_.load(std::memory_order_acquire); }
  // How often something was committed while fewer members than the terms want had it. Whoever
  // acquired safe(), or what was published by it, finds counted what happened up to there.
  uint64_t short_commits() const { return short_commits_.load(std::memory_order_relaxed); }

  // To sleep: Arm, Turn once more, wait until one of fds() is readable, or for next_ns(); Woken.
  absl::Status Arm();
  void Woken();
  std::vector<int> fds() const { return {made_.messages_cq->fd(), made_.stream_cq->fd()}; }
  int64_t next_ns() const { return next_ns_; }

  struct Seen {
    uint64_t epoch = 0;
    uint64_t end = 0;        // LSN
    uint64_t committed = 0;  // LSN
    int64_t lease_left_ns = 0;
    uint64_t waiting_bytes = 0;  // of changes that found no room in the ring yet
    // Since this process became primary.
    uint64_t links_broken = 0;
    uint64_t removed = 0;  // backups that left those in sync
    bool hands_over = false;
    uint16_t stream_version = 0;
    uint64_t ended_map = 0;  // what the map of this revision has closed has ended (PartitionEnd)
    struct Backup {
      std::string node;
      bool in_sync = false;
      bool linked = false;  // its link is not broken
      bool heard = false;
      uint64_t completed = 0;     // LSN
      uint64_t applied = 0;       // LSN
      uint64_t behind_bytes = 0;  // of the ring that it has not freed
    };
    std::vector<Backup> backups;
    std::vector<Backup> receivers;  // of other groups, to which partitions move
  };
  // For observers.
  Seen Look() const;

 private:
  // A link, and whose it is once it said hello.
  struct Backup {
    std::unique_ptr<PrimaryLink> link;
    std::optional<GroupMember> member;
    // It gets the stream for another group (docs/partitions.md), and counts for nothing here.
    bool receives = false;
    RingWriter::LinkId ring = 0;
    bool counted = false;
    bool failed = false;  // to be closed
    uint64_t applied = 0;
    // Fewer than a backup's receives, of which it needs one for the welcome.
    UnansweredBeacons beacons{ControlMessages::kPlaces / 2};
    int64_t since_ns = 0;
    uint64_t ended_told = 0;  // to a receiver: the revision of the last map whose partitions ended
  };

  // Records that the store has not published yet, as it reads them in the ring.
  struct Kept {
    uint64_t position;  // in the stream of changes, behind them
    uint64_t from;      // in the ring
  };
  static constexpr size_t kKeptMax = 64;  // then they are put together

  // What the device or the system may refuse to make.
  struct Made {
    PrivateMemory ring;
    Handle<ibv_mr> ring_mr;
    std::unique_ptr<CompletionQueue> messages_cq;
    std::unique_ptr<CompletionQueue> stream_cq;
  };
  Primary(const GroupContext& context, PrimaryOpener* opener, const GroupTerms& terms,
          uint64_t stream_id, const GroupRegister& known, const RingTail& tail, Made made);
  // Whether backups should soon say what they have freed, which they do after beacons.
  bool WantsRoom() const GANNET_REQUIRES(mutex_);
  // Whether workers sleep until more is committed than `before`, as is the case now.
  bool OthersWaitFor(uint64_t before) const GANNET_REQUIRES(mutex_);
  void SealInRing(UpdateLane* lane) GANNET_REQUIRES(mutex_);
  void AddOneByOne(UpdateLane* lane) GANNET_REQUIRES(mutex_);
  void PumpLocked() GANNET_REQUIRES(mutex_);
  void Keep(const Kept& kept) GANNET_REQUIRES(mutex_);
  void LetPublishedGo() GANNET_REQUIRES(mutex_);
  void Ship() GANNET_REQUIRES(mutex_);
  void PollWrites() GANNET_REQUIRES(mutex_);
  void AdvanceCommit() GANNET_REQUIRES(mutex_);
  void PollMessages(int64_t now) GANNET_REQUIRES(mutex_);
  void OnMessage(Backup* backup, std::span<const std::byte> message, int64_t now)
      GANNET_REQUIRES(mutex_);
  void OnHello(Backup* backup, const ReplicaHello& hello, int64_t now) GANNET_REQUIRES(mutex_);
  void OnHello(Backup* backup, const ReceiverHello& hello, int64_t now) GANNET_REQUIRES(mutex_);
  // Returns why a backup or a receiver cannot be taken, or "" if it can.
  std::string WhyNot(const ReplicaHello& hello) const GANNET_REQUIRES(mutex_);
  std::string WhyNot(const ReceiverHello& hello) const GANNET_REQUIRES(mutex_);
  template <class Hello>
  void Answer(Backup* backup, const Hello& hello, bool joins, std::string why, int64_t now)
      GANNET_REQUIRES(mutex_);
  void Welcome(Backup* backup, bool joins) GANNET_REQUIRES(mutex_);
  void SendBeacons(int64_t now) GANNET_REQUIRES(mutex_);
  // Goes to the newest version of the stream that all speak. Records that are there already keep
  // their kinds, and so their LSNs.
  void RaiseStreamVersion() GANNET_REQUIRES(mutex_);
  bool Speaks(const GroupMember& member, uint16_t version) const GANNET_REQUIRES(mutex_);
  // Ends the partitions that a map has closed, and tells receivers.
  void EndPartitions();
  void TellEnded() GANNET_REQUIRES(mutex_);
  // The only way from one phase to the next. Ends the process if there is none.
  void To(PrimaryPhase next) GANNET_REQUIRES(mutex_);
  // Returns true once, when the tail is committed.
  bool TryToOpen(int64_t now) GANNET_REQUIRES(mutex_);
  // Applies the tail, if that is to be done now, and then takes clients.
  void Open(bool applies, int64_t now);
  void BeginHandOver(const GroupMember& successor, int64_t now) GANNET_REQUIRES(mutex_);
  void FollowHandOver(int64_t now) GANNET_REQUIRES(mutex_);
  void DropLinks(int64_t now) GANNET_REQUIRES(mutex_);
  void Break(Backup* backup, int64_t now, std::string_view why) GANNET_REQUIRES(mutex_);
  void PublishForJoiners();
  // Whether anything may be recorded now. What is published may wait for this (docs/group.md).
  bool TakesUndos() const GANNET_REQUIRES(mutex_) { return Records(phase_.now()); }
  // Whether a change may happen now.
  bool TakesChanges() const GANNET_REQUIRES(mutex_) {
    return TakesUndos() && !outbox_.crowded() && HasCopies();
  }
  bool HasCopies() const GANNET_REQUIRES(mutex_);  // as many members as the terms want
  void FollowOperator(int64_t now) GANNET_REQUIRES(mutex_);
  void TellStanding(int64_t now) GANNET_REQUIRES(mutex_);
  void TellWhetherItTakes() GANNET_REQUIRES(mutex_);
  Backup* FindLink(uint32_t number) GANNET_REQUIRES(mutex_);
  bool HasLink(uint64_t incarnation, bool receives) const GANNET_REQUIRES(mutex_);

  const GroupContext& context_;
  PrimaryOpener* const opener_;
  const GroupTerms terms_;  // when it became primary
  const GroupTimes times_;
  const Made made_;
  const PrimaryLink::Environment environment_;

  mutable WordMutex mutex_;
  Opening opening_ GANNET_GUARDED_BY(mutex_);
  const RingTail tail_;
  RingWriter writer_ GANNET_GUARDED_BY(mutex_);
  PrimaryLease lease_ GANNET_GUARDED_BY(mutex_);
  Commit commit_ GANNET_GUARDED_BY(mutex_);
  Membership membership_ GANNET_GUARDED_BY(mutex_);
  HandOver hand_over_ GANNET_GUARDED_BY(mutex_);
  PartitionEnd end_ GANNET_GUARDED_BY(mutex_);
  uint64_t version_at_end_ GANNET_GUARDED_BY(mutex_) = 0;  // of the store, then
  uint16_t stream_version_ GANNET_GUARDED_BY(mutex_) = kStreamVersions.min;
  uint32_t min_copies_ GANNET_GUARDED_BY(mutex_);  // as operators have it now
  StreamOutbox outbox_ GANNET_GUARDED_BY(mutex_);
  bool lane_in_ring_ GANNET_GUARDED_BY(mutex_) = false;  // between BeginUpdates and EndUpdates
  std::deque<Kept> kept_ GANNET_GUARDED_BY(mutex_);
  SessionCopies sessions_ GANNET_GUARDED_BY(mutex_);  // with all that was appended
  uint64_t committed_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t recorded_ GANNET_GUARDED_BY(mutex_) = 0;  // position of the last change
  uint32_t next_link_ GANNET_GUARDED_BY(mutex_) = 1;
  std::vector<std::unique_ptr<Backup>> backups_ GANNET_GUARDED_BY(mutex_);
  RingWait ring_wait_ GANNET_GUARDED_BY(mutex_);
  bool failed_ GANNET_GUARDED_BY(mutex_) = false;  // some link, since the last Turn
  uint64_t links_broken_ GANNET_GUARDED_BY(mutex_) = 0;

  // The member's thread only, but that `phase_` is written under the mutex, and read there, too.
  CheckedState<PrimaryPhase> phase_{PrimaryPhase::kOpening};
  int64_t beacon_at_ = 0;
  bool has_joiners_ = false;
  PublishedLsn published_;
  int64_t next_ns_ = 0;
  uint64_t told_safe_ = 0;

  std::atomic<bool> takes_{false};          // relaxed: a hint
  std::atomic<bool> has_copies_{false};     // relaxed: a hint
  std::atomic<uint64_t> safe_{0};           // release: after the completions were polled
  std::atomic<uint64_t> short_commits_{0};  // relaxed: counted before safe_ is stored
  std::atomic<bool> nudged_{false};         // relaxed: the member's thread was asked for a Turn
  // Workers that wait for WRITEs. Counted before they Pump and afterwards sleep. So whoever Pumps
  // later, behind the mutex, sees them.
  std::atomic<uint32_t> waiting_workers_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_PRIMARY_H_
