#ifndef GANNET_SERVER_GROUP_BACKUP_H_
#define GANNET_SERVER_GROUP_BACKUP_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/auth/auth_file.h"
#include "common/base/clock.h"
#include "common/protocol/replica.h"
#include "common/rdma/device.h"
#include "server/group/applier.h"
#include "server/group/backup_link.h"
#include "server/group/joiner.h"
#include "server/group/primary_address.h"
#include "server/replica/backup_log.h"
#include "server/replica/config_store.h"
#include "server/replica/group_directory.h"
#include "server/replica/neighbours.h"
#include "server/replica/takeover.h"
#include "server/store/store.h"

namespace gannet {

// Returns the first key for the servers of a group, or nullopt. Reads the file again if it was
// changed, so that each link shows the key of today.
std::optional<AuthKey> ReplicaKeyOf(AuthFile* file);

// What a server does until it is primary: joins, then follows the primary's stream, and takes over
// when that is over (docs/group.md). It connects, sends and applies what Takeover decides.
//
//   begin --register names nobody--> found a group
//   begin --connected, welcome--> joining --all items, in sync--> backup --takeover--> lead
//
// Owner thread only.
class Backup {
 public:
  struct Options {
    Device device;
    Store* store = nullptr;
    ConfigStore* config_store = nullptr;
    GroupDirectory* directory = nullptr;
    GroupTerms terms;
    GroupMember self;
    AuthFile* keys = nullptr;  // its first key with "replica" proves who this is; nullptr: none
    uint64_t memory_bytes = 0;
    uint32_t workers = 0;
    std::string kept_at;  // where an earlier run kept items; empty: there are none
    // Makes the earlier run count as one of this process, if the register gets this history and
    // epoch by it (MemberDisk::Claim).
    std::function<absl::Status(uint64_t history, uint64_t epoch)> claim;
    // The store has all items. Returns whether the primary may count on this member, and is called
    // until it does. Empty: at once.
    std::function<bool()> may_be_ready;
    std::function<uint64_t()> random;
    uint64_t (*machine_ms)() = nullptr;          // the machine's wall clock, for handshakes
    std::function<void(uint64_t)> follow_clock;  // sets the clock by which items expire
    std::function<uint64_t()> now_ms;            // that clock
    std::function<int64_t()> clock;              // CLOCK_BOOTTIME, in ns
    std::function<void()> idle;                  // as that of Server::Options
  };
  explicit Backup(Options options);
  ~Backup();

  enum class Outcome : uint8_t {
    kGoesOn,
    kLead,  // be primary, of known(), with TakeTail()
    kEnd,   // execute this process again; why() says why
  };
  Outcome Poll(int64_t now);
  // This server is to stop: leaves those in sync, so that nobody counts on it. Call it between
  // Polls, which say kEnd once there is a primary that has the items.
  void Leave(int64_t now);

  // REQUIRES: the last Poll said kLead.
  const GroupRegister& known() const { return known_; }
  RingTail TakeTail();
  // What the clock begins with for the new primary. 0: it goes on as it is.
  uint64_t ClockAtTakeover(int64_t now) const;
  Applier& applier() { return applier_; }
  // Of the items that it has from a primary; 0: it has none.
  uint64_t history() const { return history_; }

  const std::string& why() const { return why_; }
  // Whether it has all that is committed.
  bool in_sync() const { return whole() && !takeover_->out(); }
  // Whether it is in sync, or was, and has what it had then.
  bool whole() const { return takeover_.has_value(); }
  // Whether others may count on what it has: it may be in sync, and not know it yet.
  bool may_count() const { return whole() || ready_; }
  // Whether it follows a primary that it has heard of late.
  bool Hears(int64_t now) const;
  // When the primary counts as gone, if it stays silent; GroupStanding::kNever: never.
  int64_t SilentFrom() const;
  uint64_t applied() const { return log_ ? log_->applied() : 0; }
  // How much of the primary's items it has copied.
  uint8_t joined_percent() const {
    if (copied_ || whole()) return 100;
    return joiner_ ? static_cast<uint8_t>(100 * std::clamp(joiner_->done(), 0.0, 1.0)) : 0;
  }

  // To sleep: as BackupLink.
  absl::Status Arm(int64_t now);
  void Woken();
  std::vector<int> fds() const;
  int64_t next_ns() const { return next_ns_; }

 private:
  static constexpr int64_t kRetryNs = 50 * kNsPerMs;
  // While records come, the ring is looked at so often.
  static constexpr int64_t kLookNs = kNsPerMs;

  Outcome End(std::string why);
  // Steps before it is in sync.
  Outcome JoinTurn(int64_t now);
  Outcome OnRegister(const GroupRegister& known, int64_t now);
  void Found(const GroupRegister& known);
  std::string BestFormerDisk() const;
  // Asks to be primary with the items of an earlier run, if all who were in sync are gone, and that
  // run is the one to begin with. Returns whether it asks.
  bool TryToBeginAgain(const GroupRegister& known, int64_t now);
  // Copies the primary's items. Tells the primary when that is done.
  Outcome CopyItems(int64_t now);
  Outcome TellThatItIsReady(int64_t now);
  // Steps of one that is in sync.
  Outcome BackupTurn(int64_t now);
  void ConnectAsSurvivor(int64_t now);
  Outcome KeepUntilAPrimaryLives(int64_t now);
  void TellWhyItLeaves(int64_t now);
  void Fence();

  void Connect(const GroupMember& primary, int64_t now);
  void SendHello(uint64_t epoch);
  void PollLink(int64_t now);
  void OnMessage(std::span<const std::byte> message, int64_t now);
  void OnWelcome(const ReplicaWelcome& welcome, int64_t now);
  void OnBeacon(const Beacon& beacon, bool last);
  void Apply();
  void Retire();
  void Tell(const std::string& line);

  const Options options_;
  GroupTimes times_;  // of the primary that welcomed it last; before, by the register
  GroupRegister known_;
  PrimaryAddress primary_address_;
  Applier applier_;
  StoreJoinTarget join_target_;
  ExpiryClock clock_;
  std::optional<BackupLog> log_;
  std::optional<Takeover> takeover_;
  std::unique_ptr<BackupLink> link_;
  std::unique_ptr<BackupLink> retired_;  // is being flushed
  bool hello_sent_ = false;
  bool welcomed_ = false;
  bool lost_ = false;        // the link cannot be used any more
  uint64_t left_epoch_ = 0;  // the last one that was told of by TellWhyItLeaves
  uint64_t link_epoch_ = 0;  // of the primary that the link leads to
  uint64_t primary_ = 0;     // its incarnation
  SpokenVersions versions_;
  SocketAddress primary_at_;
  bool founding_ = false;  // a transaction that names this member is under way
  bool reading_ = false;
  // Whether there was a link since the register was asked. Who joins may have become one of those
  // in sync then, and the answer does not say so.
  bool followed_since_read_ = false;
  std::unique_ptr<Joiner> joiner_;  // copies the primary's items
  bool published_ = false;          // all before the stream's begin
  bool left_ = false;               // it is out, and its last link is fenced
  bool copied_ = false;             // all items are there
  bool ready_ = false;              // the primary was told that this member has all items
  uint64_t begins_ = 0;             // LSN of the stream, for a joiner
  uint64_t history_ = 0;            // of the items that the stream brings
  uint64_t next_history_ = 0;       // of the group, if this process begins it again
  uint64_t claimed_epoch_ = 0;      // for which the earlier run was claimed
  bool claim_failed_ = false;
  int64_t alone_since_ = 0;  // no primary has answered since; 0: one has
  int64_t heard_ = 0;
  int64_t try_at_ = 0;  // not before this
  int64_t next_ns_ = 0;
  // The primary's clock, and what has to be applied before it holds here.
  uint64_t told_clock_ms_ = 0;
  uint64_t told_committed_ = 0;
  int64_t busy_until_ = 0;  // the ring is looked at often until then
  std::string why_;
  std::string told_;  // the last line
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_BACKUP_H_
