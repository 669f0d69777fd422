#ifndef GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_
#define GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "server/memory/store/item_leaser.h"
#include "server/memory/store/item_leases.h"
#include "server/memory/store/store.h"
#include "server/rpc/now.h"

namespace gannet {

// Keeps the leases of a server's items: renews them, and has popular items leased. One owner
// thread.
class ItemLeaseKeeper {
 public:
  // The store outlives it, and leases items.
  explicit ItemLeaseKeeper(Store& store)
      : store_(store), leases_(*store.leases()), leaser_(store) {}

  // Does what is due.
  void Poll(const Now& now);
  BootTime due() const { return due_; }
  // Ends all leases, and begins none any more.
  void BeginStop();

 private:
  Store& store_;
  ItemLeases& leases_;
  ItemLeaser leaser_;
  bool stopping_ = false;
  BootTime due_;
  BootTime choose_at_;
  BootTime cool_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_
