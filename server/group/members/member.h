#ifndef GANNET_SERVER_GROUP_MEMBERS_MEMBER_H_
#define GANNET_SERVER_GROUP_MEMBERS_MEMBER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/protocol/member_standing.h"
#include "server/group/members/backup.h"
#include "server/group/members/directory_news.h"
#include "server/group/members/group_context.h"
#include "server/group/members/group_stream.h"
#include "server/group/members/member_inbox.h"
#include "server/group/members/member_task.h"
#include "server/group/members/primary.h"
#include "server/group/members/replica_arrival.h"
#include "server/group/replica/group_standing.h"

namespace gannet {

// A server's life in its group: it joins or founds it, is a backup, then primary, and ends. It
// never goes back. A server that ended executes itself again, and joins.
//
// Its parts:
//
//   Backup         what it does before it leads
//   Primary        what it does from then on
//   MemberInbox    what the listener's thread has for it
//   DirectoryNews  what those who answer clients are told of the group
//
// Thread safety: Poll and what it takes to sleep by one thread, the member's.
class Member : private PrimaryOpener {
 public:
  // Announces the server. `first_version`: of its items, by the clock. `task`: of a primary; null:
  // none. What is pointed to outlives the member. The errors are those of AuthFile::Open.
  static absl::StatusOr<std::unique_ptr<Member>> Create(const GroupContext& context,
                                                        GroupStream* stream, uint64_t first_version,
                                                        MemberTask* task);
  ~Member() override;

  // Returns whether workers should look at what is published.
  bool Poll(BootTime now);
  // What the listener's thread has for it. Any thread.
  MemberInbox& inbox() { return inbox_; }

  // What a member waits for that is to stop.
  enum class Leaving : uint8_t {
    kDone,         // for nothing: nobody counts on what it has
    kHandsOver,    // a backup that is to be primary
    kAwaitsOthers  // others that have what it has, or that know that they must not count on it
  };
  // Makes a primary hand over as soon as a backup is in sync and heard, and a backup leave those in
  // sync. Either then ends. Call it again until it returns kDone. Any thread.
  Leaving Leave();

  // Whether this process has no place in the group any more; why() says why.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  const std::string& why() const { return why_; }
  // REQUIRES: ended(). Whether another process has its name, so that it must not start again.
  bool replaced() const {
    GANNET_CHECK(ended(), "its end is not known yet");
    return replaced_;
  }

  // To sleep: Arm, Poll once more, wait until one of fds() is readable or for next_at(); Woken.
  absl::Status Arm(BootTime now);
  void Woken();
  std::vector<int> fds() const;
  BootTime next_at() const;

  // For observers.
  using Role = MemberRole;
  struct Seen {
    Role role = Role::kJoining;
    std::string node;
    uint64_t incarnation = 0;
    std::string primary;
    uint64_t epoch = 0;
    uint64_t applied = 0;              // LSN, of a backup
    uint8_t joined_percent = 0;        // of a joining one: how much it has copied
    std::vector<std::string> members;  // nodes that may be in sync, as operators have set it
    bool open = false;                 // a primary takes clients
    std::string not_announced = {};    // why the register takes nothing; empty: it does
    Primary::Seen as_primary{};
    std::optional<MoveProgress> moves;  // of a primary; a backup need not copy it at each Poll
  };
  Seen Look() const;
  // Whether there is somebody to hand over to.
  static bool MayStepDown(const Seen& seen);

 private:
  Member(const GroupContext& context, GroupStream* stream, uint64_t first_version, MemberTask* task)
      : context_(context),
        stream_(stream),
        first_version_(first_version),
        task_(task),
        inbox_(context.server),
        news_(context) {}
  void TakeInbox(BootTime now);
  void Refuse(ReplicaArrival arrival);
  // Takes the items of an earlier run, if an operator says that the group begins with them.
  absl::Status Restore(uint64_t history, uint64_t epoch);
  // With --sync=always, nobody is a member whose disk has failed.
  void LeaveIfTheDiskFailed(BootTime now);
  // Whether others may count on what it has.
  bool MayBeCountedOn() const;
  void Announce(BootTime now);
  void NoteWhyNotAnnounced();
  Role RoleNow() const;
  void Lead(BootTime now);
  void Open(const RingTail& tail) override;
  bool MayOpen(BootTime now) override;
  bool HasPartitions() const;
  // Steps of one that is to stop.
  void LeaveTurn(BootTime now);
  // Whether it has a task, as a primary that takes clients.
  bool HasTask() const {
    return task_ != nullptr && primary_ != nullptr && primary_->open() && !ended();
  }
  void End(const std::string& why);
  void TellMembers();
  BootTime AwaitsPrimaryFrom() const;
  void TellOthers(const GroupConfiguration& configuration);
  void TellObservers(const GroupConfiguration& configuration);

  const GroupContext& context_;
  GroupStream* const stream_;
  const uint64_t first_version_;
  MemberTask* const task_;
  MemberInbox inbox_;
  DirectoryNews news_;
  std::optional<AuthFile> keys_;
  std::unique_ptr<Backup> backup_;    // before it leads
  std::unique_ptr<Primary> primary_;  // from then on
  uint64_t led_epoch_ = 0;            // in which it became primary
  // Until then clients of a former primary may answer from copies of its items.
  BootTime former_leases_end_;
  BootTime announce_at_;
  std::pair<Role, uint64_t> announced_as_ = {Role::kEnded, 0};  // and in which epoch
  std::string not_announced_;
  BootTime news_at_;                    // when the directory is looked at
  std::optional<uint64_t> seen_epoch_;  // that seen_ has
  Role seen_role_ = Role::kJoining;     // that seen_ has
  std::string why_;
  bool replaced_ = false;
  std::atomic<bool> ended_{false};     // release: after why_
  std::atomic<bool> leaves_{false};    // relaxed, as the next: it tells nothing but itself
  std::atomic<bool> may_stop_{false};  // nobody counts on what it has

  // What a backup has applied; it is newer than seen_. Relaxed: a figure.
  std::atomic<uint64_t> applied_{0};
  std::atomic<uint8_t> joined_percent_{0};  // the same, of the walk

  mutable Mutex mutex_;
  Seen seen_ GANNET_GUARDED_BY(mutex_);
  std::vector<std::string> members_ GANNET_GUARDED_BY(mutex_);  // of Seen; changes seldom
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_MEMBER_H_
