#ifndef GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_
#define GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_

#include <cstdint>

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
  int64_t due_ns() const { return due_ns_; }
  // Ends all leases, and begins none any more.
  void BeginStop();

 private:
  Store& store_;
  ItemLeases& leases_;
  ItemLeaser leaser_;
  bool stopping_ = false;
  int64_t due_ns_ = 0;
  int64_t choose_ns_ = 0;
  int64_t cool_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_ITEM_LEASE_KEEPER_H_
