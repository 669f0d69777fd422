#ifndef GANNET_SERVER_GROUP_MEMBERS_PRIMARY_H_
#define GANNET_SERVER_GROUP_MEMBERS_PRIMARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/boot_time.h"
#include "server/group/members/group_context.h"
#include "server/group/members/primary_moves.h"
#include "server/group/members/primary_phase.h"
#include "server/group/members/primary_stream.h"
#include "server/group/members/replica_arrival.h"
#include "server/group/replica/group_directory.h"
#include "server/group/replica/published_lsn.h"
#include "server/sessions/session/session_copies.h"

namespace gannet {

// What has to be done before a primary takes clients.
class PrimaryOpener {
 public:
  virtual ~PrimaryOpener() = default;
  // The tail is committed: applies it, and lets the workers begin.
  virtual void Open(const RingTail& tail) = 0;
  // Then, whether clients may be taken. Called until it returns true.
  virtual bool MayOpen(BootTime now) = 0;
};

// What a server does as primary of its group (docs/group.md). Its parts:
//
//   PrimaryStream  what workers use: they append changes, and publish what is committed
//     PrimaryRing  the ring of records, and which changes are in it
//     Followers    the links of backups and receivers
//     Leadership   phase, lease, who is in sync, hand-over
//   PrimaryMoves   ends partitions that move to other groups
//
// In each Turn it hears its followers, goes from phase to phase, sends beacons, and says what this
// server may do.
//
// It is never destroyed while workers run: a process that was primary serves no more afterwards.
//
// Thread safety: the member's thread only, but what stream() has.
class Primary {
 public:
  // `terms` are those of the group as operators have them now. `known` names this server as
  // primary, and `tail` is what is still to be committed. `context` and `opener` outlive the
  // primary. ResourceExhausted: no memory for the ring.
  static absl::StatusOr<std::unique_ptr<Primary>> Create(
      const GroupContext& context, PrimaryOpener* opener, const GroupTerms& terms,
      uint64_t stream_id, const GroupRegister& known, const RingTail& tail);
  ~Primary();

  // Does what is due, when something came or next_at() is over. Returns whether more was committed
  // than at the last Turn.
  bool Turn(BootTime now);
  void OnArrival(ReplicaArrival arrival, BootTime now);
  // A connection of this name is gone.
  void OnGone(uint64_t name, BootTime now);
  // Begins to hand over to the first backup that is in sync and heard, unless that is under way.
  // `why` is for people.
  void StepDown(BootTime now, std::string_view why);
  // All sessions of the group, when it opens.
  void BeginSessions(SessionCopies sessions);
  PrimaryPhase phase() const;
  // Somebody else is primary.
  bool deposed() const { return phase() == PrimaryPhase::kDeposed; }
  bool open() const { return IsOpen(phase()); }
  GroupRegister known() const;
  // Whether the register is lost, and nobody can have led the group since (Membership).
  bool MayAdopt() const;
  PrimaryStream* stream() { return &stream_; }

  // To sleep: Arm, Turn once more, wait until one of fds() is readable, or for next_at(); Woken.
  absl::Status Arm();
  void Woken();
  std::vector<int> fds() const {
    return {stream_.queues().messages_fd(), stream_.queues().stream_fd()};
  }
  BootTime next_at() const { return next_at_; }

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
      uint8_t rail = 0;     // of this server, by which its link goes
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
  Primary(const GroupContext& context, PrimaryOpener* opener, const GroupTerms& terms,
          uint64_t stream_id, const GroupRegister& known, const RingTail& tail, LinkQueues queues);
  void PublishForJoiners();
  // Hears the followers, and sees what is committed.
  void Hear(BootTime now) GANNET_REQUIRES(stream_.mutex());
  // Sends beacons if they are due.
  void SendBeacons(BootTime now) GANNET_REQUIRES(stream_.mutex());
  void FollowOthers(BootTime now) GANNET_REQUIRES(stream_.mutex());
  // Applies the tail, if that is to be done now, and then takes clients.
  void Open(bool applies, BootTime now);
  Seen::Backup LookAt(const Follower& follower, BootTime now) const
      GANNET_REQUIRES(stream_.mutex());

  const GroupContext& context_;
  PrimaryOpener* const opener_;
  const GroupTimes times_;
  const RingTail tail_;
  PrimaryStream stream_;
  PrimaryMoves moves_;
  PublishedLsn published_;
  bool has_joiners_ = false;
  BootTime beacon_at_;
  BootTime next_at_;
  uint64_t told_safe_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_PRIMARY_H_
