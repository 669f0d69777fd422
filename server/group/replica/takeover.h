#ifndef GANNET_SERVER_GROUP_REPLICA_TAKEOVER_H_
#define GANNET_SERVER_GROUP_REPLICA_TAKEOVER_H_

#include <cstdint>
#include <optional>

#include "common/base/boot_time.h"
#include "common/base/check.h"
#include "common/base/server_time.h"
#include "server/group/replica/config_store.h"
#include "server/group/replica/group_times.h"
#include "server/group/replica/primary_watch.h"
#include "server/group/replica/register.h"

namespace gannet {

// The side of a backup that is in sync: whom it follows, and whether it takes over (docs/group.md,
// "Takeover"). It decides only. Whoever owns it has the link, and does what Poll says:
//
//   kFollow   answer beacons if OnBeacon says so, and apply what is committed
//   kFence    move the link's queue pairs to the error state, flush them, read the ring to its end;
//             then OnFenced
//   kWait     a transaction is under way
//   kConnect  connect to known().configuration.primary: OnHello, then a hello
//   kLead     be primary, of known()
//   kEnd      execute this process again, once there is a primary to join. An operator may force
//             this member to be primary until then
//
// One that is to stop calls Leave between Polls, as long as it hears its primary. Then Poll says
// kEnd, or it becomes primary first. If fewer members stay than the group wants copies, it first
// answers no beacon until the primary's lease is over for certain. Otherwise the primary, which
// learns of it later than the register, would count as a copy what is in sync no more.
//
// Invariants:
//   1. Once a beacon was not answered, none of that link is answered any more.
//   2. No transaction is sent, and nobody is connected to, before the former link is fenced. But
//      one that leaves, and enough others in sync, sends its transaction without that.
//   3. It ends only if the register names a configuration without it. A lost transaction alone says
//      nothing: this copy may be the only one. So it also stays what it is while it leaves.
//
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME.
class Takeover {
 public:
  enum class Step : uint8_t { kFollow, kFence, kWait, kConnect, kLead, kEnd };

  // `self` is in sync in `known`, as it learned now. A hand-over may name it already. `link_epoch`:
  // of the primary that it is connected to; 0 = it is not connected. `answered`: when it took the
  // newest beacon that it answered while it joined. The primary counts on that answer, so G begins
  // no sooner, also if the caller's Poll began before it and was stopped in between. `config_store`
  // outlives this, and is used by nobody else meanwhile.
  Takeover(const GroupTimes& times, ConfigStore* config_store, const GroupMember& self,
           const GroupRegister& known, uint64_t link_epoch, BootTime answered, BootTime now);

  Step Poll(BootTime now);

  // A beacon came on the link. Returns whether to answer it, and to believe what it says.
  bool OnBeacon(BootTime now);
  // Asks the register to take this member out of those in sync, if it follows the primary that the
  // register names, and no other transaction is under way. `min_copies` is the group's.
  void Leave(uint32_t min_copies);
  // The link is to be made anew, to the same primary: it broke, or nothing comes by it. From now on
  // Poll says kFence, and then kConnect. G goes on from the last beacon.
  void MakeLinkAnew() { makes_anew_ = link_epoch_ != 0; }
  bool makes_link_anew() const { return makes_anew_; }
  // The link can be written to by nobody any more, and its ring was read to the end.
  void OnFenced() {
    link_epoch_ = 0;
    makes_anew_ = false;
  }
  // A hello is sent now. From now on the primary may write, so this has to be fenced, too.
  // REQUIRES: the last Poll said kConnect.
  void OnHello() {
    GANNET_CHECK(link_epoch_ == 0, "the former link is not fenced");
    link_epoch_ = known_.configuration.epoch;
  }

  // The primary that it has connected to has a lease that lasts so long. G is of that one, whatever
  // the register says now: a primary keeps its lease's length. REQUIRES: comes before the first
  // beacon of that link is answered.
  void OnWelcome(const GroupTimes& times) { times_ = times; }

  const GroupRegister& known() const { return known_; }
  // Whether the register names a configuration without this member.
  bool out() const { return out_; }
  // Whether it answers no beacon because it leaves.
  bool leaves_silently() const { return leaves_silently_; }

 private:
  void Learn(const GroupRegister& now_known, BootTime now);
  bool leads() const { return known_.configuration.primary == self_; }

  GroupTimes times_;
  ConfigStore* const config_store_;
  const GroupMember self_;
  GroupRegister known_;
  std::optional<PrimaryWatch> watch_;
  uint64_t link_epoch_;
  BootTime told_;           // when a beacon came last, answered or not
  bool candidate_ = false;  // of the epoch that is known
  bool leaves_silently_ = false;
  bool busy_ = false;  // a transaction is under way
  bool out_ = false;
  bool makes_anew_ = false;  // the link, which is to be fenced
};

// The clock by which a member judges expiries if it takes over. It is not behind the last time by
// which the former primary judged, so nothing that had expired comes back. It does not depend on
// this machine's wall clock.
//
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME.
class ExpiryClock {
 public:
  // A welcome, or a beacon that Takeover believes, said what the primary's clock was. One that
  // comes behind a newer one says nothing. `last`: the primary has stopped for a hand-over, and
  // judges by no later time.
  void OnPrimary(ServerTime clock, BootTime now, bool last = false) {
    last_ = last;
    if (clock < told_) return;
    told_ = clock;
    heard_ = now;
  }
  // Returns what a new primary's clock begins with. `times` are the former one's.
  ServerTime AtTakeover(const GroupTimes& times, BootTime now) const;

 private:
  bool last_ = false;
  ServerTime told_;
  BootTime heard_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_TAKEOVER_H_
