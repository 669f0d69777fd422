#ifndef GANNET_SERVER_GROUP_REPLICA_MEMBERSHIP_H_
#define GANNET_SERVER_GROUP_REPLICA_MEMBERSHIP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/boot_time.h"
#include "server/group/replica/commit.h"
#include "server/group/replica/config_store.h"
#include "server/group/replica/primary_lease.h"
#include "server/group/replica/register.h"

namespace gannet {

// A primary's side of who is in sync: adds joiners, removes silent backups, and names a successor,
// by transactions on the register (docs/group.md, "Who is in sync").
//
//   membership.Poll(now);
//   if (membership.deposed()) ...              // this process executes itself again
//   if (!membership.Counts(link.member)) ...   // its link is closed
//   if (membership.MayCommit()) commit.Advance(...)
//
// Invariants:
//   1. Counted, in the lease and in the commits, is everybody who is in sync in a configuration
//      that the register has or may still get by a transaction of this primary, and each joiner.
//      So somebody who may take over is always counted.
//   2. A transaction of unknown result may win until the revision has changed. If nothing else is
//      to be changed, a transaction that changes nothing does that.
//   3. If the register is lost, nothing is changed. It is adopted as this primary knows it, once
//      all who are counted have answered a beacon that was sent after the loss was seen, and no
//      successor may have been named: then nobody had taken over, and nobody can any more.
//
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME.
class Membership {
 public:
  // `known` names `self` as primary. Counts all who are in sync. The other three outlive this, and
  // `config_store` is used by nobody else meanwhile.
  Membership(ConfigStore* config_store, PrimaryLease* lease, Commit* commit,
             const GroupMember& self, const GroupRegister& known, BootTime now);

  // The joiner has all items but those that its stream still brings, and has all of the stream that
  // ends at `completed` or before. Counts it, and adds it once it has all that is committed and the
  // lease, with its answers, is valid.
  void Join(const GroupMember& joiner, uint64_t completed, BootTime now);
  // The link of a joiner or of a backup has broken.
  void OnBroken(const GroupMember& member, BootTime now);
  // Removes a backup, whether or not another one is heard. It stays counted until that is known.
  void Expel(const GroupMember& member) { lease_->Expel(member.incarnation); }
  // Names the successor, if it is in sync and heard, once it has answered a beacon that was sent
  // after `now`: such a beacon tells it the last of this primary's clock. From when the transaction
  // is sent, nothing may be committed until its result is known. REQUIRES: no client believes this
  // primary any more.
  void Name(const GroupMember& successor, BootTime now) {
    successor_ = successor;
    named_at_ = now;
  }

  void Poll(BootTime now);

  // Whether the register is lost, and may be adopted as this primary knows it.
  bool MayAdopt() const;
  // Somebody else is primary, or this member is not in sync any more.
  bool deposed() const { return deposed_; }
  bool Counts(uint64_t incarnation) const { return counted_.contains(incarnation); }
  // Whether no transaction that names a successor may have won or win.
  bool MayCommit() const;
  // Returns how many members are in sync at least, whichever transactions have won. They have all
  // that is committed now: whoever is counted has it. REQUIRES: MayCommit, or it is of no use.
  size_t copies() const;
  // Whether a successor is named, or is still to be named.
  bool naming() const { return successor_.has_value() || !MayCommit(); }
  const GroupRegister& known() const { return known_; }
  // How many left those in sync while this one was primary.
  uint64_t removed() const { return removed_; }

 private:
  void OnAnswer(const ConfigStore::Answer& answer, BootTime now);
  // The register has changed.
  void Adopt(const GroupRegister& now_known, BootTime now);
  // Steps while the register is lost.
  void FollowLoss(bool unfounded, BootTime now);
  // Counts whom invariant 1 demands.
  void Recount(BootTime now);
  // Returns what to change, if anything.
  std::optional<GroupConfiguration> Wanted(BootTime now);
  std::optional<GroupConfiguration> WithJoiner(BootTime now) const;

  ConfigStore* const config_store_;
  PrimaryLease* const lease_;
  Commit* const commit_;
  const GroupMember self_;
  GroupRegister known_;
  // What the register may get on the revision that is known: transactions that are under way or of
  // unknown result.
  std::vector<GroupConfiguration> may_win_;
  std::map<uint64_t, GroupMember> joiners_;  // that are counted
  std::set<uint64_t> counted_;
  std::optional<GroupMember> successor_;
  BootTime named_at_;
  std::optional<BootTime> lost_since_;  // when the register was seen to be lost
  bool busy_ = false;                   // a request is under way
  bool deposed_ = false;
  uint64_t removed_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_MEMBERSHIP_H_
