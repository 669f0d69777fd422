#ifndef GANNET_SERVER_GROUP_MEMBERS_BACKUP_H_
#define GANNET_SERVER_GROUP_MEMBERS_BACKUP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "common/base/checked_state.h"
#include "common/base/clock.h"
#include "common/base/server_time.h"
#include "common/protocol/replica.h"
#include "server/group/members/applier.h"
#include "server/group/members/backup_link.h"
#include "server/group/members/backup_state.h"
#include "server/group/members/group_context.h"
#include "server/group/members/joiner.h"
#include "server/group/members/link_dialer.h"
#include "server/group/replica/backup_log.h"
#include "server/group/replica/neighbours.h"
#include "server/group/replica/takeover.h"

namespace gannet {

// What a server does until it is primary: joins, then follows the primary's stream, and takes over
// when that is over (docs/group.md). It connects, sends and applies what Takeover decides.
// BackupState has its states, and the steps between them.
//
// Owner thread only.
class Backup {
 public:
  // `keys`: the first one with "replica" proves who this is; nullptr: none. Both outlive the
  // backup.
  Backup(const GroupContext& context, AuthFile* keys);
  ~Backup();

  enum class Outcome : uint8_t {
    kGoesOn,
    kLead,  // be primary, of known(), with TakeTail()
    kEnd,   // execute this process again; why() says why
  };
  Outcome Poll(BootTime now);
  // This server is to stop: leaves those in sync, so that nobody counts on it. Call it between
  // Polls, which say kEnd once there is a primary that has the items.
  void Leave(BootTime now);

  // What the register said last.
  const GroupRegister& known() const { return known_; }
  // Returns what was received and not applied. REQUIRES: the last Poll said kLead.
  RingTail TakeTail();
  // What the clock begins with for the new primary. None: it goes on as it is.
  ServerTime ClockAtTakeover(BootTime now) const;
  Applier& applier() { return applier_; }
  // Of the items that it has from a primary; 0: it has none.
  uint64_t history() const { return history_; }

  const std::string& why() const { return why_; }
  // Whether it has all that is committed.
  bool in_sync() const { return whole() && !takeover_->out(); }
  // Whether it is in sync, or was, and has what it had then.
  bool whole() const { return takeover_.has_value(); }
  // Whether others may count on what it has: it may be in sync, and not know it yet.
  bool may_count() const { return whole() || state_.now() == BackupState::kReady; }
  // Whether it follows a primary that it has heard of late.
  bool Hears(BootTime now) const;
  // When the primary counts as gone, if it stays silent.
  BootTime SilentFrom() const;
  uint64_t applied() const { return log_ ? log_->applied() : 0; }
  // Returns up to which LSN it has all that its epoch's primary may have committed. All of that is
  // here if it leads, though it is not applied yet.
  uint64_t Received();
  // How much of the primary's items it has copied.
  uint8_t joined_percent() const;

  // To sleep: as BackupLink.
  absl::Status Arm(BootTime now);
  void Woken();
  std::vector<int> fds() const;
  BootTime next_at() const { return next_at_; }

 private:
  static constexpr int64_t kRetryNs = 50 * kNsPerMs;
  // While records come, the ring is looked at so often.
  static constexpr int64_t kLookNs = kNsPerMs;

  // A link to a primary.
  struct Link {
    std::unique_ptr<BackupLink> end;  // never null
    uint64_t primary = 0;             // its incarnation
    bool lost = false;                // it cannot be used any more
  };
  // What was asked of the register before the member is in sync. Who joins may have become one of
  // those in sync while it had a link, and an answer to what was asked before does not say so.
  enum class Asked : uint8_t { kNothing, kNow, kBeforeALink };
  // Of kSeeks: what it takes to begin the group again with the items of an earlier run.
  struct Search {
    BootTime alone_since;        // no primary answers since; none: it was not asked yet
    uint64_t history = 0;        // the same in all tries, as each of them may still win
    uint64_t claimed_epoch = 0;  // for which the earlier run was claimed
    bool claim_failed = false;
  };

  // The only way from one state to the next. Ends the process if there is none.
  void To(BackupState next);
  void End(std::string why);
  void Turn(BootTime now);
  // Steps before it is in sync.
  void JoinTurn(BootTime now);
  // Returns whether the register was read while there was no link.
  bool TakeAnswer();
  void OnRegister(const GroupRegister& known, BootTime now);
  void Found(const GroupRegister& known);
  // Asks to be primary with the items of an earlier run, if all who were in sync are gone, and that
  // run is the one to begin with. Returns whether it asks.
  bool TryToBeginAgain(const GroupRegister& known, BootTime now);
  void BeginToFollow(const ReplicaWelcome& welcome, BootTime now);
  // Copies the primary's items. Tells the primary when that is done.
  void CopyItems(BootTime now);
  void TellThatItIsReady(BootTime now);
  // Steps of one that is in sync, or was.
  void BackupTurn(BootTime now);
  void ConnectAsSurvivor(BootTime now);
  void KeepUntilAPrimaryLives(BootTime now);
  void TellWhyItLeaves(BootTime now);
  void Fence();

  void Connect(const GroupMember& primary, BootTime now);
  void SendHello(uint64_t epoch);
  void PollLink(BootTime now);
  void OnMessage(const BackupLink::Message& message, BootTime now);
  void OnWelcome(const ReplicaWelcome& welcome, BootTime now);
  void OnBeacon(const BackupLink::ToldBeacon& told);
  void Apply();
  void Retire();
  void Tell(const std::string& line);

  const GroupContext& context_;
  const std::string kept_at_;  // where an earlier run kept items; empty: there are none
  CheckedState<BackupState> state_{BackupState::kSeeks};
  GroupTimes times_;  // of the primary that welcomed it last; before, by the register
  GroupRegister known_;
  LinkDialer dialer_;
  Applier applier_;
  StoreJoinTarget join_target_;
  ExpiryClock clock_;
  std::optional<Link> link_;
  std::unique_ptr<BackupLink> retired_;  // is being flushed
  uint64_t link_epoch_ = 0;              // of the primary that was sent the last hello
  uint64_t stream_epoch_ = 0;            // of the stream that it followed last
  SpokenVersions versions_;
  Asked asked_ = Asked::kNothing;
  Search search_;
  std::optional<BackupLog> log_;      // from kFollows on
  uint64_t history_ = 0;              // of the items that the stream brings
  std::unique_ptr<Joiner> joiner_;    // of kFollows and kCopies: copies the primary's items
  std::optional<Takeover> takeover_;  // from kInSync on
  uint64_t left_epoch_ = 0;           // the last one that was told of by TellWhyItLeaves
  BootTime heard_;
  BootTime try_at_;  // not before this
  BootTime next_at_;
  // The primary's clock, and what has to be applied before it holds here.
  ServerTime told_clock_;
  uint64_t told_committed_ = 0;
  BootTime busy_until_;  // the ring is looked at often until then
  std::string why_;
  std::string told_;  // the last line
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_BACKUP_H_
