#ifndef GANNET_SERVER_MEMORY_STORE_ITEM_LEASER_H_
#define GANNET_SERVER_MEMORY_STORE_ITEM_LEASER_H_

#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "common/base/server_time.h"
#include "server/memory/store/store.h"

namespace gannet {

// Begins the leases of a store's items, and forgets them (item_leases.h).
//
// Thread safety: as the store's.
class ItemLeaser {
 public:
  // REQUIRES: the store leases items. It outlives this.
  explicit ItemLeaser(Store& store) : store_(store), leases_(*store.leases()) {}

  // Whether clients may be served a key here. Called under the key's lock.
  using Serves = absl::FunctionRef<bool(std::string_view key)>;

  // Leases the items that clients READ most. If all words are taken, ends the leases of others.
  void Choose(ServerTime now, Serves serves);
  // Leases the item at an offset of the region. Returns false if none lies there, or it may not be
  // leased now.
  bool Lease(uint64_t offset, ServerTime now, Serves serves);
  // Forgets leases that ended without a change, and are over.
  void Forget(ServerTime now);

 private:
  // Returns what lies where the commit word of an item would be.
  uint64_t CommitWordAt(uint64_t offset) const;
  // The same of its version.
  uint64_t VersionAt(uint64_t offset) const;

  Store& store_;
  ItemLeases& leases_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_ITEM_LEASER_H_
