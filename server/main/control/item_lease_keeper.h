#ifndef GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_
#define GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "server/group/replica/group_standing.h"
#include "server/main/control/server_workers.h"
#include "server/memory/store/item_leaser.h"
#include "server/memory/store/item_leases.h"
#include "server/memory/store/store.h"
#include "server/rpc/now.h"

namespace gannet {

// Keeps the leases of a server's items: renews them, and has popular items leased. In a group only
// the primary does so, while it takes clients, and only of the partitions that it serves. What it
// has leased may stay when it ceases to: clients answer from copies only under its lease as primary
// (docs/item-leases.md). One owner thread.
class ItemLeaseKeeper {
 public:
  // The workers outlive it, and their store leases items.
  explicit ItemLeaseKeeper(const ServerWorkers& workers)
      : workers_(workers),
        standing_(workers.context().standing),
        store_(workers.context().store),
        leases_(*store_.leases()),
        leaser_(store_) {}

  // Does what is due.
  void Poll(const Now& now);
  BootTime due() const { return due_; }
  // Ends all leases, and begins none any more.
  void BeginStop();

 private:
  // Whether clients are taken.
  bool serves() const { return standing_ == nullptr || standing_->serves(); }
  void Choose(const Now& now);

  const ServerWorkers& workers_;
  const GroupStanding* const standing_;
  Store& store_;
  ItemLeases& leases_;
  ItemLeaser leaser_;
  bool stopping_ = false;
  uint64_t announcements_ = 0;
  BootTime due_;
  BootTime choose_at_;
  BootTime cool_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_
