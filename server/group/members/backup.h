#ifndef GANNET_SERVER_GROUP_MEMBERS_BACKUP_H_
#define GANNET_SERVER_GROUP_MEMBERS_BACKUP_H_

#include <cstdint>
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
#include "server/group/members/backup_copy.h"
#include "server/group/members/backup_link.h"
#include "server/group/members/backup_links.h"
#include "server/group/members/backup_state.h"
#include "server/group/members/group_context.h"
#include "server/group/members/group_entry.h"
#include "server/group/members/line_log.h"
#include "server/group/replica/takeover.h"

namespace gannet {

// What a server does until it is primary: joins, then follows the primary's stream, and takes over
// when that is over (docs/group.md). BackupState has its states, and the steps between them. Its
// parts:
//
//   GroupEntry   what is asked of the register until it is in sync
//   Takeover     whom it follows from then on, and whether it takes over
//   BackupLinks  the link to the primary
//   BackupCopy   the items, the records behind them, and the clock
//
// Each Poll carries what came by the link to the copy, and then does with both what the state, or
// Takeover, asks for.
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
  const GroupRegister& known() const { return takeover_ ? takeover_->known() : entry_.known(); }
  BackupCopy& copy() { return copy_; }
  const BackupCopy& copy() const { return copy_; }
  // Returns what was received and not applied. REQUIRES: the last Poll said kLead.
  RingTail TakeTail();
  // What the clock begins with for the new primary. None: it goes on as it is.
  ServerTime ClockAtTakeover(BootTime now) const { return copy_.ClockAtTakeover(times_, now); }

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

  // To sleep: as BackupLink.
  absl::Status Arm(BootTime now);
  void Woken();
  std::vector<int> fds() const;
  BootTime next_at() const { return next_at_; }

 private:
  static constexpr int64_t kRetryNs = 50 * kNsPerMs;
  // While records come, the ring is looked at so often.
  static constexpr int64_t kLookNs = kNsPerMs;

  // The only way from one state to the next. Ends the process if there is none.
  void To(BackupState next);
  void End(std::string why);
  void Turn(BootTime now);
  // Steps before it is in sync.
  void JoinTurn(BootTime now);
  void OnRegister(BootTime now);
  // Copies the primary's items. Tells the primary when that is done, and the disk has them.
  void CopyItems(BootTime now);
  // Makes a joiner's link anew over another rail, if it is to be. Returns whether that is under
  // way.
  bool MakesLinkAnew(BootTime now);
  // Steps of one that is in sync, or was.
  void BackupTurn(BootTime now);
  void ConnectAsSurvivor(BootTime now);
  void KeepUntilAPrimaryLives(BootTime now);
  void TellWhyItLeaves(BootTime now);
  void Fence();

  void OnWelcome(const ReplicaWelcome& welcome, BootTime now);
  void OnBeacon(const BackupLink::ToldBeacon& told);
  void SayHello();

  const GroupContext& context_;
  CheckedState<BackupState> state_{BackupState::kSeeks};
  GroupTimes times_;  // of the primary that welcomed it last; before, by the register
  LineLog log_;
  GroupEntry entry_;
  BackupLinks links_;
  BackupCopy copy_;                     // destroyed before the ring that it reads
  std::optional<Takeover> takeover_;    // from kInSync on
  std::optional<BootTime> anew_since_;  // a joiner's link was lost. Until it is welcomed again
  std::optional<RingReader::Begin> goes_on_at_;  // what the link's hello said, if it goes on
  uint64_t left_epoch_ = 0;                      // the last one that was told of by TellWhyItLeaves
  BootTime next_at_;
  std::string why_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_BACKUP_H_
