#ifndef GANNET_SERVER_GROUP_MEMBERS_BACKUP_COPY_H_
#define GANNET_SERVER_GROUP_MEMBERS_BACKUP_COPY_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/server_time.h"
#include "common/protocol/replica.h"
#include "server/group/members/applier.h"
#include "server/group/members/backup_link.h"
#include "server/group/members/backup_links.h"
#include "server/group/members/group_context.h"
#include "server/group/members/join_target.h"
#include "server/group/members/joiner.h"
#include "server/group/replica/backup_log.h"
#include "server/group/replica/takeover.h"

namespace gannet {

// What a backup has of its group: the items in its store, which a walk and the stream bring there,
// the records behind them that are not committed, and the primary's clock as far as it holds here.
//
//   Begin, with the first welcome                  // of this process
//   Follow, for each welcome                       // of a survivor's next primary, too
//   OnBeacon; Apply at each Poll; Walk until it is over
//   Seal, after the fence of each link
//   TakeTail, to be the next primary
//
// Owner thread only.
class BackupCopy {
 public:
  // `context` outlives this.
  explicit BackupCopy(const GroupContext& context)
      : context_(context), applier_(context), join_target_(context.store) {}

  // The welcome of the link's primary is the first one. The walk's filter hears of all that the
  // stream brings, so the joiner is there when that begins. The errors are those of Joiner::Begin.
  absl::Status Begin(const BackupLinks& links, const ReplicaWelcome& welcome, BootTime now);
  // A primary has said what its clock is, and above which versions it goes on.
  void OnWelcome(const ReplicaWelcome& welcome, BootTime now);
  // Lays the stream of `link` behind what is here. Returns false if it does not fit. REQUIRES:
  // Begin was called, and the former link is sealed.
  bool Follow(const BackupLink& link);
  // What a beacon says is committed now, and of the clock. Takeover believes it.
  void OnBeacon(const BackupLink::ToldBeacon& told, BootTime now);
  void Apply(BootTime now);
  // Returns whether all that the primary had is here. An error is that of the joiner, for good.
  absl::StatusOr<bool> Walk(BootTime now);
  // Nothing more is wanted of the primary's items.
  void EndWalk();
  // As BackupLog.
  bool Seal() { return log_->Seal(); }
  RingTail TakeTail() { return log_ ? log_->TakeTail() : RingTail(0); }

  // What the clock begins with for a new primary, if `times` are the former one's. None: it goes on
  // as it is.
  ServerTime ClockAtTakeover(const GroupTimes& times, BootTime now) const {
    return log_ ? clock_.AtTakeover(times, now) : ServerTime();
  }

  Applier& applier() { return applier_; }
  const Applier& applier() const { return applier_; }
  // nullptr: there is none, or it is over.
  Joiner* walk() const { return walk_.get(); }
  // Of the items that it has from a primary; 0: it has none.
  uint64_t history() const { return history_; }
  uint64_t applied() const { return log_ ? log_->applied() : 0; }
  // Where a new link to the primary of this epoch goes on with its stream, the former one of which
  // is sealed; nullopt: none of this primary was followed.
  std::optional<RingReader::Begin> GoesOnAt(uint64_t epoch) const {
    return log_ && stream_epoch_ == epoch ? log_->sealed_at() : std::nullopt;
  }
  // Up to where the primary may write the ring again.
  uint64_t consumed() const { return log_ ? log_->consumed() : 0; }
  // Returns up to which LSN it has all that the primary of this epoch may have committed. All of
  // that is here if it leads, though it is not applied yet.
  uint64_t Received(uint64_t epoch);
  // How much of the primary's items it has copied.
  uint8_t joined_percent() const;
  // Whether records came of late, so that the ring is to be looked at often.
  bool busy(BootTime now) const { return now < busy_until_; }

 private:
  const GroupContext& context_;
  Applier applier_;
  StoreJoinTarget join_target_;
  std::optional<BackupLog> log_;  // from Begin on
  uint64_t history_ = 0;          // of the items that the stream brings
  uint64_t stream_epoch_ = 0;     // of the stream that it followed last
  std::unique_ptr<Joiner> walk_;
  ExpiryClock clock_;
  // The primary's clock, and what has to be applied before it holds here.
  ServerTime told_clock_;
  uint64_t told_committed_ = 0;
  BootTime busy_until_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_BACKUP_COPY_H_
