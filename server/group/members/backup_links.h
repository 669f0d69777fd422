#ifndef GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINKS_H_
#define GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/protocol/replica.h"
#include "server/group/members/backup_link.h"
#include "server/group/members/group_context.h"
#include "server/group/members/joiner.h"
#include "server/group/members/line_log.h"
#include "server/group/members/link_dialer.h"
#include "server/group/replica/neighbours.h"

namespace gannet {

// A backup's links to one primary after the other: there is at most one, and a former one that is
// still being flushed.
//
//   none --Connect--> link --Fence, Drop, or Retire--> none
//
// 1. No link begins before the former one is flushed.
// 2. A link that is lost stays here, with its ring, until it is retired or dropped.
//
// Owner thread only.
class BackupLinks {
 public:
  // `keys` as LinkDialer has them. All outlive this.
  BackupLinks(const GroupContext& context, AuthFile* keys, LineLog* log)
      : context_(context), log_(log), dialer_(context, keys) {}

  // Begins a link to `primary`, which is to be open within its lease. Does nothing while there is
  // one, while a former one is flushed, or soon after the last try.
  void Connect(const GroupMember& primary, int64_t lease_ns, BootTime now);
  void SayHello(uint64_t epoch, uint64_t history, uint64_t applied);
  // Follows the stream of a welcome that came. Returns false if the link is lost by that.
  bool Accept(const ReplicaWelcome& welcome, BootTime now);
  // The primary lives.
  void Hear(BootTime now) { heard_ = now; }
  // The link cannot be used any more.
  void Lose() { link_->lost = true; }
  // The link is over, and nobody wants what its ring has. No other one begins before `again`.
  void Retire(BootTime again);
  // Lets the primary write no more. Returns whether it cannot, so that the ring stays as it is.
  bool Fence();
  // REQUIRES: Fence returned true.
  void Drop() { link_.reset(); }

  void Poll(BootTime now);
  // Returns the next welcome or beacon that came. Once there is none, sees whether the link is
  // lost.
  std::optional<BackupLink::Message> Take();
  // As LinkDialer, from the primary of the link.
  absl::StatusOr<std::unique_ptr<Joiner>> BeginWalk(Joiner::Options options) const {
    return dialer_.BeginWalk(*link_->end, std::move(options));
  }

  // nullptr: there is none.
  BackupLink* link() const { return link_ ? link_->end.get() : nullptr; }
  // Whether there is a link that is not lost.
  bool usable() const { return link_ && !link_->lost; }
  bool IsUsableFor(const GroupMember& primary) const {
    return usable() && link_->primary == primary.incarnation;
  }
  // Whether a former link is being flushed.
  bool flushes() const { return retired_ != nullptr; }
  // Of the primary that was sent the last hello; 0: none was.
  uint64_t epoch() const { return epoch_; }
  // When the last link began, or its primary was heard.
  BootTime heard() const { return heard_; }

 private:
  static constexpr int64_t kRetryNs = 50 * kNsPerMs;
  static constexpr int64_t kLookUpNs = kNsPerMs;  // a primary waits for survivors

  struct Link {
    std::unique_ptr<BackupLink> end;  // never null
    uint64_t primary = 0;             // its incarnation
    bool lost = false;                // it cannot be used any more
  };

  // What is neither a welcome nor a beacon, or comes out of place.
  void OnOther(const BackupLink::Message& message);

  const GroupContext& context_;
  LineLog* const log_;
  LinkDialer dialer_;
  std::optional<Link> link_;
  std::unique_ptr<BackupLink> retired_;  // is being flushed
  uint64_t epoch_ = 0;
  SpokenVersions versions_;
  BootTime heard_;
  BootTime connect_at_;  // not before this
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINKS_H_
