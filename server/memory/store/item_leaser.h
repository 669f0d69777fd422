#ifndef GANNET_SERVER_MEMORY_STORE_ITEM_LEASER_H_
#define GANNET_SERVER_MEMORY_STORE_ITEM_LEASER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/server_time.h"
#include "server/memory/store/store.h"

namespace gannet {

// Begins the leases of a store's items, and forgets them (item_leases.h).
//
// One owner thread.
class ItemLeaser {
 public:
  // REQUIRES: the store leases items. It outlives this.
  explicit ItemLeaser(Store& store) : store_(store), leases_(*store.leases()) {}

  // Whether clients may be served a key here. Called under the key's lock.
  using Serves = absl::FunctionRef<bool(std::string_view key)>;

  // Announces that the items are to be leased that clients READ most. If all words are taken, ends
  // the leases of others. Returns whether it announced any: then call LeaseAnnounced, and not this
  // again before. REQUIRES: announced() is false.
  bool Choose();
  bool announced() const { return !announced_.empty(); }
  // Leases what is announced. REQUIRES: no fast path of a PUT is under way that began before, and
  // does not know (Store::Guess).
  void LeaseAnnounced(ServerTime now, Serves serves);
  // Leases the item at an offset of the region. Returns false if none lies there, or it may not be
  // leased now. REQUIRES: no fast path of a PUT is under way.
  bool Lease(uint64_t offset, ServerTime now, Serves serves);
  // Forgets leases that ended without a change, and are over.
  void Forget(ServerTime now);

 private:
  struct Announced {
    KeyHash hash;
    uint64_t offset;  // of the region, where its item was
  };

  // Returns what lies where the commit word of an item would be.
  uint64_t CommitWordAt(uint64_t offset) const;
  // The same of its version.
  uint64_t VersionAt(uint64_t offset) const;
  std::optional<KeyHash> GuessHashAt(uint64_t offset) const;
  bool LeaseOf(KeyHash hash, uint64_t offset, ServerTime now, Serves serves);

  Store& store_;
  ItemLeases& leases_;
  std::vector<Announced> announced_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_ITEM_LEASER_H_
