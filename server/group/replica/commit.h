#ifndef GANNET_SERVER_GROUP_REPLICA_COMMIT_H_
#define GANNET_SERVER_GROUP_REPLICA_COMMIT_H_

#include <cstdint>
#include <map>

#include "common/base/boot_time.h"
#include "server/group/replica/primary_lease.h"

namespace gannet {

// Up to where a primary's stream is committed: all counted backups have it, and the lease was valid
// when that was seen (docs/group.md, "The stream"). Only what is committed is published, answered,
// and told to backups.
//
//   poll the links;  commit.OnCompleted(backup, lsn);
//   commit.Advance(writer.end().lsn, lease, clock());     // the clock is read after the polls
//
// Thread safety: one thread.
class Commit {
 public:
  // Everything that ends at `lsn` or before is committed already.
  explicit Commit(uint64_t lsn) : committed_(lsn) {}

  // From now on a record is committed only when the backup has it, too. A joiner is counted before
  // the transaction that adds it is sent.
  void Count(uint64_t backup, uint64_t completed) { completed_[backup] = completed; }
  // REQUIRES: its removal is known to have won.
  void Uncount(uint64_t backup) { completed_.erase(backup); }
  // A WRITE has completed: the backup has all that ends there or before.
  void OnCompleted(uint64_t backup, uint64_t lsn);
  // Whether a counted backup has all that is committed. Then it may be added to those in sync.
  bool HasAllCommitted(uint64_t backup) const;

  // Returns the committed LSN. `end` is the stream's. REQUIRES: `now` was read after the
  // completions were polled. A stopped primary's copy into the ring of a backup that has fenced it
  // completes, too; only the lease tells that it came too late.
  uint64_t Advance(uint64_t end, const PrimaryLease& lease, BootTime now);

 private:
  uint64_t committed_;
  std::map<uint64_t, uint64_t> completed_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_COMMIT_H_
