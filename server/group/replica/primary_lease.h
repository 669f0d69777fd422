#ifndef GANNET_SERVER_GROUP_REPLICA_PRIMARY_LEASE_H_
#define GANNET_SERVER_GROUP_REPLICA_PRIMARY_LEASE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "common/base/boot_time.h"
#include "server/group/replica/group_times.h"

namespace gannet {

// A primary's lease, and who of its backups is silent. Backups are named by the incarnations of
// their processes.
//
//   sequence = lease.OnSend(now);              // a beacon, to all
//   lease.OnAnswer(backup, sequence, now);
//   if (lease.Valid(clock())) ...              // commit, grant, reply
//
// The lease lasts L from when the primary *sent* the newest beacon that all counted backups have
// answered. A counted backup that has not connected yet has answered none, so without it there is
// no lease. A primary that counts nobody has a lease at any time.
//
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME.
class PrimaryLease {
 public:
  // The newest beacons, and all whose lease is not over yet. Answers to older ones say nothing.
  // There may be many of them: while a ring is half full, one is sent every millisecond.
  static constexpr size_t kBeaconsLeast = 16;

  // `rails`: backups may make their links anew over another rail. So a link that broke says
  // nothing, and who is silent gets more time.
  explicit PrimaryLease(const GroupTimes& times, bool rails = false)
      : times_(times), silence_ns_(rails ? times.silence_with_rails_ns() : times.silence_ns()) {}

  // From now on the lease needs its answers. REQUIRES: before the transaction that adds it is sent.
  void Count(uint64_t backup, BootTime now);
  // REQUIRES: its removal is known to have won.
  void Uncount(uint64_t backup) { counted_.erase(backup); }

  // Returns the number of a beacon that is sent now.
  uint64_t OnSend(BootTime now);
  // Returns false if no such beacon was sent: then the link is to be broken.
  bool OnAnswer(uint64_t backup, uint64_t sequence, BootTime now);
  // Its link has broken, so it is silent from now on.
  void OnBroken(uint64_t backup);
  // It is to be removed, whoever else is heard.
  void Expel(uint64_t backup);

  bool Valid(BootTime now) const { return LeftNs(now) > 0; }
  // Whether all counted backups have answered a beacon that was sent after that time. So none of
  // them had fenced this primary by then.
  bool AnsweredSince(BootTime time) const;
  // How long the lease still lasts; 0: it is over. This is what clients are told.
  int64_t LeftNs(BootTime now) const;
  // Whether a beacon may be sent. Not once nobody has answered for G, so that backups notice that
  // only one direction works.
  bool MaySend(BootTime now) const;
  // Whether a counted backup answers, or had no time yet to do so.
  bool IsHeard(uint64_t backup, BootTime now) const;
  // Whether a counted backup has answered a beacon that was sent after `sent`.
  bool HasAnsweredSince(uint64_t backup, BootTime sent) const;
  // Returns whom to remove. A primary that hears nobody may be the one that is ill, so it waits
  // until its backups had time to take over.
  std::vector<uint64_t> Silent(BootTime now) const;

 private:
  struct Backup {
    bool answered = false;
    bool broken = false;
    bool expelled = false;
    BootTime sent;   // when the newest beacon was sent that it answered
    BootTime heard;  // when its last answer came, or it was counted
  };

  bool Hears(const Backup& backup, BootTime now) const;

  const GroupTimes times_;
  const int64_t silence_ns_;  // how long a backup that answered may be silent
  std::map<uint64_t, Backup> counted_;
  uint64_t newest_ = 0;        // beacon
  std::deque<BootTime> sent_;  // the newest beacons' times
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_PRIMARY_LEASE_H_
